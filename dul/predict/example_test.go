package predict_test

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"

	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
)

// A regression on targets with an outlier: with Student's t in the place of a Gaussian
// it hardly moves the median, and the intervals have heavy tails.
func ExamplePrediction_Predictive() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	l := likelihood.StudentT{Nu: 3}
	m, err := nets.New(backend, nets.MLP{Layers: dul.Density{InitStd: 0.01}}, l, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := []float64{-1, -0.5, 0, 0.5, 1, 0.2}, []float64{-2, -1, 0, 1, 2, 30} // y = 2x, but for the last
	fit := train.Trainer{Settings: train.Settings{
		Epochs: 500, BatchSize: len(x), LogLikelihoodScale: 1, Schedule: train.Cosine{Start: 0.02},
		Groups: []train.Group{{Roles: []params.Role{params.Weight, params.Variational, params.Generative, params.Likelihood}, Optimizer: train.Adam{}}},
	}}
	ctx := context.Background()
	if err := fit.Fit(ctx, m, train.Dataset{Inputs: nets.Rows(x, 1), Targets: y}); err != nil {
		fmt.Println(err)
		return
	}
	p, err := predict.Sample(ctx, m, nets.Rows([]float64{1}, 1), predict.Options{Samples: 25})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := p.Predictive()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, level := range []float64{0.05, 0.5, 0.95} {
		q, err := d.Quantile(level)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("quantile at %.2f: %.1f\n", level, q[0])
	}
	// Output:
	// quantile at 0.05: 1.8
	// quantile at 0.50: 2.0
	// quantile at 0.95: 2.2
}
