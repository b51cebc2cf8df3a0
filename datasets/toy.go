package datasets

import (
	"math"
	"math/rand/v2"
)

// ToyCubic draws n points of the one-dimensional problem of the paper's section "Toy Regression":
//
//	x ~ Uniform([-4, -2] ∪ [2, 4]),  y = x³ + ε,  ε ~ N(0, noiseStd²)
//
// There are no data in the gap (-2, 2). The paper states neither n nor the noise; n = 100 and noiseStd = 3 are usual.
// The result depends only on the arguments.
func ToyCubic(n int, noiseStd float64, seed uint64) *Regression {
	const stream = 0x746f79 // "toy": sets these draws apart from other uses of the same seed
	rng := rand.New(rand.NewPCG(seed, stream))
	r := &Regression{
		Name:     "toy-cubic",
		Features: []string{"x"},
		X:        make([]float64, n),
		Y:        make([]float64, n),
		N:        n,
		D:        1,
	}
	for i := range n {
		// u is uniform on [0, 4): its lower half moves to [-4, -2), its upper
		// half already is [2, 4).
		u := 4 * rng.Float64()
		if u < 2 {
			u -= 4
		}
		r.X[i] = u
		r.Y[i] = u*u*u + noiseStd*rng.NormFloat64()
	}
	return r
}

// TwoMoons draws n points of two classes in the plane, on two interleaved half circles of radius 1. Both classes are
// equally probable:
//
//	class 0: (cos t, sin t) + ε,  class 1: (1 - cos t, 1/2 - sin t) + ε,
//	t ~ Uniform[0, π),  ε ~ N(0, noiseStd² I).
//
// The problem usually shows whether a classifier knows how far an input is from its data (van Amersfoort et al. 2021;
// Liu et al. 2020). The result depends only on the arguments. points is [n, 2] row-major, labels [n].
func TwoMoons(n int, noiseStd float64, seed uint64) (points []float64, labels []int) {
	const stream = 0x6d6f6f6e73 // "moons": sets these draws apart from other uses of the same seed
	rng := rand.New(rand.NewPCG(seed, stream))
	points, labels = make([]float64, 2*n), make([]int, n)
	for i := range n {
		label, t := rng.IntN(2), math.Pi*rng.Float64()
		x, y := math.Cos(t), math.Sin(t)
		if label == 1 {
			x, y = 1-x, 0.5-y
		}
		points[2*i], points[2*i+1] = x+noiseStd*rng.NormFloat64(), y+noiseStd*rng.NormFloat64()
		labels[i] = label
	}
	return points, labels
}
