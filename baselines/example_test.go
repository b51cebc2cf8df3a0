package baselines_test

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/compute/gobackend"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
)

// A Gaussian process on the features of a network: the standard deviation of the function at a training input and far away.
func ExampleSNGP() {
	ctx := context.Background()
	backend, err := gobackend.New("")
	check(err)
	network, err := nets.MLP{Widths: []int{20, 20}}.Over(baselines.SNGP{}) // or baselines.DUE{Inducing: 20}
	check(err)
	m, err := nets.New(backend, network, likelihood.Gaussian{}, 1)
	check(err)
	var x, y []float64
	for i := range 50 {
		x = append(x, float64(i)/25-1)
		y = append(y, math.Sin(3*x[i]))
	}
	fit := train.Trainer{Settings: train.Settings{
		Epochs: 100, BatchSize: 10, Schedule: train.Cosine{Start: 0.01},
		Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}, Rate: 1}},
	}}
	check(fit.Fit(ctx, m, train.Dataset{Inputs: nets.Rows(x, 1), Targets: y}))

	found, err := predict.Marginals(ctx, m, nets.Rows([]float64{0, 10}, 1))
	check(err)
	std := found[0].Std[0]
	fmt.Println("less certain far away:", std[1] > 10*std[0])
	// Output:
	// less certain far away: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// The uncertainty of the last layer of a trained network, at a training input and far away.
func ExampleLaplace() {
	ctx := context.Background()
	backend, err := gobackend.New("")
	check(err)
	network := nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{20}}
	m, err := nets.New(backend, network, likelihood.Gaussian{}, 1)
	check(err)
	var x, y []float64
	for i := range 50 {
		x = append(x, float64(i)/25-1)
		y = append(y, math.Sin(3*x[i]))
	}
	fit := train.Trainer{Settings: train.Settings{
		Epochs: 100, BatchSize: 10, Schedule: train.Cosine{Start: 0.01},
		Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}, Rate: 1}},
	}}
	check(fit.Fit(ctx, m, train.Dataset{Inputs: nets.Rows(x, 1), Targets: y}))

	features := func(x ...float64) (features []float64, width int) {
		p, err := predict.Sample(ctx, m.With(nets.Headless{Network: network}), nets.Rows(x, 1), predict.Options{Samples: 1})
		check(err)
		return p.Outputs[0], p.Width
	}
	weights, _, err := params.Values(m.Store, nets.HeadScope+"/weights")
	check(err)
	bias, _, err := params.Values(m.Store, nets.HeadScope+"/bias")
	check(err)
	noise, err := m.NoiseVariances()
	check(err)
	trained, width := features(x...)
	last, err := baselines.Laplace{}.Regression(trained, width, append(weights, bias...), noise[0])
	check(err)

	at, _ := features(0, 4)
	_, variances := last.Moments(at)
	fmt.Println("less certain far away:", variances[1] > 100*variances[0])
	// Output:
	// less certain far away: true
}
