package datasets

import (
	"fmt"
	"math/rand/v2"
)

// ToyCubic draws n points of the one-dimensional problem of the paper's section
// "Toy Regression":
//
//	x ~ Uniform([-4, -2] ∪ [2, 4]),  y = x³ + ε,  ε ~ N(0, noiseStd²)
//
// leaving the gap (-2, 2) without data. The paper states neither n nor the
// noise; n = 100 and noiseStd = 3 are the values customary for this cubic
// benchmark. The result depends only on the arguments. X has shape [n, 1].
//
// ToyCubic panics if n < 0 or noiseStd < 0.
func ToyCubic(n int, noiseStd float64, seed uint64) *Regression {
	if n < 0 || !(noiseStd >= 0) {
		panic(fmt.Sprintf("datasets: ToyCubic: n = %d and noiseStd = %v must not be negative", n, noiseStd))
	}
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
