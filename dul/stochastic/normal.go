package stochastic

import (
	"math"
	"math/rand/v2"
)

// Draws of N(0, 1) by the ziggurat of Marsaglia & Tsang (2000), with 32 random
// bits for each: half the time of rand.Rand.NormFloat64, which takes 64. Noise is
// a tenth of a training step.
//
// The area under f(x) = exp(-x^2/2), x >= 0, is covered by layers of equal area.
// Layer i is the rectangle 0 <= x < edges[i] between the heights f(edges[i]) and
// f(edges[i+1]); nearly all of it lies under the curve. The lowest layer is the
// rectangle up to f(tailStart) with all of the tail beyond tailStart; its edge is
// that of a rectangle of the same area. A point of a random layer is a draw
// where it lies under the curve.
const (
	layers    = 256
	tailStart = 3.6541528853610088 // so that the uppermost of 256 layers ends at f(0)
	positions = 1 << 23            // across half a layer
)

var (
	edges   [layers + 1]float64
	heights [layers + 1]float64 // f(edges)
	widths  [layers]float64     // of one position
	inside  [layers]int32       // positions that lie under the curve at every height of the layer
)

func density(x float64) float64 { return math.Exp(-x * x / 2) }

func init() {
	area := tailStart*density(tailStart) + math.Sqrt(math.Pi/2)*math.Erfc(tailStart/math.Sqrt2)
	edges[0], edges[1] = area/density(tailStart), tailStart
	for i := 2; i < layers; i++ {
		edges[i] = math.Sqrt(-2 * math.Log(density(edges[i-1])+area/edges[i-1]))
	}
	for i, edge := range edges {
		heights[i] = density(edge)
	}
	for i := range layers {
		widths[i] = edges[i] / positions
		inside[i] = int32(edges[i+1] / edges[i] * positions)
	}
}

// fillNormal fills noise with independent draws of N(0, 1).
func fillNormal[T float32 | float64](stream *rand.Rand, noise []T) {
	var word uint64
	for i := range noise {
		word = nextBits(stream, i, word)
		layer, x, under := pointOf(int32(word))
		if !under {
			x = normalNearCurve(stream, layer, x)
		}
		noise[i] = T(x)
	}
}

// pointOf is a random point of a random layer: 8 bits choose the layer, 24 the
// position on either side of 0. It says whether the point surely lies under the curve.
func pointOf(bits int32) (layer int32, x float64, under bool) {
	layer, position := bits&(layers-1), bits>>8
	return layer, (float64(position) + 0.5) * widths[layer], max(position, ^position) < inside[layer]
}

// normalNearCurve decides on a point x of a layer that may lie outside the
// curve, one in a hundred, and goes on to other points where it does.
func normalNearCurve(stream *rand.Rand, layer int32, x float64) float64 {
	for under := false; !under; layer, x, under = pointOf(int32(stream.Uint64())) {
		if layer == 0 {
			return math.Copysign(normalTail(stream), x)
		}
		low, high := heights[layer], heights[layer+1]
		if low+(high-low)*stream.Float64() < density(x) {
			return x
		}
	}
	return x
}

// normalTail draws from N(0, 1) beyond tailStart (Marsaglia 1964).
func normalTail(stream *rand.Rand) float64 {
	for {
		x := stream.ExpFloat64() / tailStart
		if 2*stream.ExpFloat64() > x*x {
			return tailStart + x
		}
	}
}
