package datasets

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// TwoMoons draws n points of two classes in the plane, interleaved half circles
// of radius 1, each point of class 0 or 1 with equal probability:
//
//	class 0: (cos t, sin t) + ε,  class 1: (1 - cos t, 1/2 - sin t) + ε,
//	t ~ Uniform[0, π),  ε ~ N(0, noiseStd² I).
//
// It is the usual problem to show whether a classifier knows how far from its
// data an input is (van Amersfoort et al. 2021; Liu et al. 2020). The result
// depends only on the arguments. points has shape [n, 2], row-major; labels [n].
//
// TwoMoons panics if n < 0 or noiseStd < 0.
func TwoMoons(n int, noiseStd float64, seed uint64) (points []float64, labels []int) {
	if n < 0 || !(noiseStd >= 0) {
		panic(fmt.Sprintf("datasets: TwoMoons: n = %d and noiseStd = %v must not be negative", n, noiseStd))
	}
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
