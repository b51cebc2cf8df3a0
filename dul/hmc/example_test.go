package hmc_test

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/hmc"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
)

// The posterior of a small network after three observations, drawn by four chains.
func Example() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Finalize()
	network := nets.MLP{Layers: hmc.Prior{Layers: baselines.Deterministic{}}, Widths: []int{10}}
	m, err := nets.NewReplicas(backend, network, likelihood.KnownNoise{Std: 0.1}, 1, 2, 3, 4) // a replica for each chain
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := hmc.NewPosterior(m, train.Dataset{Inputs: nets.Rows([]float64{-1, 0, 1}, 1), Targets: []float64{-1, 0, 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	start, err := p.Start(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	chains, err := hmc.Sample(context.Background(), p.Density, start, hmc.Options{Warmup: 300, Draws: 300, Leapfrogs: 20, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	rHat := metrics.SplitRHat(chains.LogDensity)
	fmt.Printf("%d chains of %d parameters, %d divergences; they agree: %t\n", len(chains.Draws), len(start[0]), chains.Divergences, rHat < 1.05)
	// Output:
	// 4 chains of 31 parameters, 0 divergences; they agree: true
}
