package dul_test

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/stochastic"
)

// One layer at a typical and at an improbable input: the noise has variance
// gamma E(h) + beta D/2, with gamma = beta = 0.01 and E(h) = |h|^2 / 2 at the start.
func ExampleDensity_Dense() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	layer := dul.Density{InitStd: 0.1}
	out, err := model.CallOnceN(backend, model.NewStore(), func(s *model.Scope, h *graph.Node) []*graph.Node {
		y := layer.Dense(s.In("layer"), h, 3)
		return []*graph.Node{y, stochastic.TallyOf(h.Graph()).Energies[0]}
	}, [][]float64{{1, 1}, {10, -10}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("output:", out[0].Shape())
	for _, e := range out[1].Value().([][]float64) {
		fmt.Printf("energy %g, noise variance %.2f\n", e[0], 0.01*e[0]+0.01)
	}
	// Output:
	// output: (Float64)[2, 3]
	// energy 1, noise variance 0.02
	// energy 100, noise variance 1.01
}
