package dul_test

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// One layer at a typical and at an improbable input: the noise has variance
// gamma E(h) + beta, with gamma = beta = 0.01 and E(h) = |h|^2 / 2 at the start.
func ExampleDensity_Dense() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	layer := dul.Density{InitStd: 0.1}
	out, err := model.CallOnceN(backend, model.NewStore(), func(s *model.Scope, h *graph.Node) []*graph.Node {
		y := layer.Dense(s.In("layer"), h, 3)
		return []*graph.Node{y, stochastic.LayerLossesOf(h.Graph()).Energies[0]}
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

// One layer at a typical and at an improbable image of 3 channels and 4 x 4
// pixels: at the start the energy of a pixel is half its square.
func ExampleDensity_Conv() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	layer := dul.Density{InitStd: 0.1}
	spec := conv.Spec{Filters: 8, Window: conv.Same(3, 2)}
	out, err := model.CallOnceN(backend, model.NewStore(), func(s *model.Scope, pixels *graph.Node) []*graph.Node {
		images := graph.BroadcastToDims(graph.Reshape(pixels, 1, 2, 1, 1), 3, 2, 4, 4)
		y := layer.Conv(s.In("layer"), images, spec)
		return []*graph.Node{y, stochastic.LayerLossesOf(y.Graph()).Energies[0]}
	}, []float64{1, 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("output:", out[0].Shape())
	for _, e := range out[1].Value().([][]float64) {
		fmt.Printf("mean energy %g\n", e[0])
	}
	// Output:
	// output: (Float64)[8, 2, 2, 2]
	// mean energy 1.5
	// mean energy 150
}

// isotropic is the Gaussian N(0, s^2 I) with one trained variance, as an energy
// model of your own: E(h) = |h|^2 / (2 s^2).
type isotropic struct{}

func (isotropic) Dense(s *model.Scope, h *graph.Node) energy.Terms {
	d := float64(h.Shape().Dim(-1))
	logVariance := params.New(s, h, "log_variance", params.Generative, params.Constant(0), 1, 1)
	squares := ops.SumColumns(graph.Mul(h, h))
	e := graph.MulScalar(graph.Mul(squares, graph.Exp(graph.Neg(logVariance))), 0.5)
	logZ := graph.MulScalar(graph.AddScalar(logVariance, math.Log(2*math.Pi)), d/2)
	return energy.Terms{Energy: e, LogLikelihood: graph.Neg(graph.Add(e, logZ))}
}

func (m isotropic) Conv(s *model.Scope, x *graph.Node, w conv.Window) energy.ConvTerms {
	return energy.Pixelwise(m, s, x, w)
}

// A layer with an energy model of your own.
func ExampleEnergyModel() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	layer := dul.Density{Energy: isotropic{}}
	out, err := model.CallOnceN(backend, model.NewStore(), func(s *model.Scope, h *graph.Node) []*graph.Node {
		y := layer.Dense(s.In("layer"), h, 3)
		losses := stochastic.LayerLossesOf(h.Graph())
		return []*graph.Node{y, losses.Energies[0], losses.LogLikelihood}
	}, [][]float64{{0, 0}, {3, 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	e, logLikelihood := out[1].Value().([][]float64), out[2].Value().([][]float64)
	for i := range e {
		fmt.Printf("energy %.1f, log-likelihood %.4f\n", e[i][0], logLikelihood[i][0])
	}
	// Output:
	// energy 0.0, log-likelihood -1.8379
	// energy 12.5, log-likelihood -14.3379
}
