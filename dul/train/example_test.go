package train_test

import (
	"context"
	"fmt"
	"math"
	"os"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
)

// A density uncertainty network learns y = 2x and predicts it.
func Example() {
	ctx := context.Background()
	backend, err := compute.NewWithConfig("go:ops_sequential")
	check(err)
	data := train.Dataset{Inputs: nets.Rows([]float64{-1, -0.5, 0, 0.5, 1}, 1), Targets: []float64{-2, -1, 0, 1, 2}}
	m, err := nets.New(backend, nets.MLP{Layers: dul.Density{}, Widths: []int{20}}, likelihood.Gaussian{}, 1)
	check(err)
	run := train.Trainer{Settings: train.Settings{
		Epochs: 300, BatchSize: 5, LogLikelihoodScale: 1, Schedule: train.Cosine{Start: 0.02},
		Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}},
	}}
	check(run.Fit(ctx, m, data))
	p, err := predict.Sample(ctx, m, nets.Rows([]float64{0.75}, 1), predict.Options{Samples: 100})
	check(err)
	mean, _ := p.Moments()
	fmt.Printf("y(0.75) is about %.1f\n", mean[0])
	// Output: y(0.75) is about 1.5
}

// poisson is y ~ Poisson(e^output), a likelihood of counts:
// -log p(y) = e^output - y output + log y!, the last of which is a constant.
type poisson struct{}

func (poisson) Outputs() int { return 1 }

func (poisson) NLL(_ *model.Scope, outputs, targets *graph.Node) *graph.Node {
	return graph.Sub(graph.Exp(outputs), graph.Mul(targets, outputs))
}

// A likelihood of your own is a type with two methods.
func Example_likelihood() {
	ctx := context.Background()
	backend, err := compute.NewWithConfig("go:ops_sequential")
	check(err)
	data := train.Dataset{Inputs: nets.Rows([]float64{0, 0, 1, 1}, 1), Targets: []float64{1, 3, 7, 9}}
	m, err := nets.New(backend, nets.MLP{Layers: baselines.Deterministic{}}, poisson{}, 1)
	check(err)
	run := train.Trainer{Settings: train.Settings{
		Epochs: 500, BatchSize: 4, Schedule: train.Cosine{Start: 0.1},
		Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}},
	}}
	check(run.Fit(ctx, m, data))
	p, err := predict.Sample(ctx, m, nets.Rows([]float64{0, 1}, 1), predict.Options{Samples: 1})
	check(err)
	fmt.Printf("rates %.2f and %.2f\n", math.Exp(p.Outputs[0][0]), math.Exp(p.Outputs[0][1]))
	// Output: rates 2.00 and 8.00
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A network without noise fits eight noisy targets ever better, and those that are
// held out worse; early stopping keeps the parameters that did best on the latter.
func ExampleKeepBest() {
	ctx := context.Background()
	backend, err := compute.NewWithConfig("go:ops_sequential")
	check(err)
	data := train.Dataset{Inputs: nets.Rows([]float64{-1, -0.7, -0.4, -0.1, 0.2, 0.5, 0.8, 1}, 1), Targets: []float64{0.6, -0.5, 0.4, -0.6, 0.5, -0.4, 0.6, -0.3}}
	heldOut := train.Dataset{Inputs: nets.Rows([]float64{-0.9, -0.3, 0.4, 0.9}, 1), Targets: []float64{0.1, -0.2, 0.1, 0}}
	score := func(ctx context.Context, m *nets.Model) ([]float64, error) {
		p, err := predict.Sample(ctx, m, heldOut.Inputs, predict.Options{Samples: 1})
		if err != nil {
			return nil, err
		}
		return []float64{metrics.MonteCarloNLL(heldOut.Targets, p.Mean, p.Variances(), 1)}, nil
	}
	of := func(early train.KeepBest) float64 {
		m, err := nets.New(backend, nets.MLP{Layers: baselines.Deterministic{}, Widths: []int{50}}, likelihood.Gaussian{}, 1)
		check(err)
		run := train.Trainer{Settings: train.Settings{
			Epochs: 1000, BatchSize: 8, Schedule: train.Cosine{Start: 0.02},
			Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}}},
			KeepBest: early,
		}
		check(run.Fit(ctx, m, data))
		scores, err := score(ctx, m)
		check(err)
		return scores[0]
	}
	fmt.Println("better on held-out examples:", of(train.KeepBest{Every: 10, Score: score}) < of(train.KeepBest{})-1)
	// Output: better on held-out examples: true
}

// A run with checkpoints is stopped and started again; the second call of Fit resumes.
func ExampleTrainer() {
	folder, err := os.MkdirTemp("", "run")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }() // scratch: what is left harms nobody
	fit := func(ctx context.Context, progress func(train.Progress)) error {
		backend, err := compute.NewWithConfig("go:ops_sequential")
		if err != nil {
			return err
		}
		network := nets.ResNet{Layers: dul.Density{}, Blocks: []int{1}, Widths: []int{2}, Stem: 2}
		classifier, err := nets.New(backend, network, likelihood.Categorical{Classes: 3}, 1)
		if err != nil {
			return err
		}
		run := train.Trainer{Settings: train.Settings{
			Epochs: 3, BatchSize: 16, PretrainEpochs: 1, Schedule: train.Cosine{Start: 0.01}, LogLikelihoodScale: 1,
			Groups:         []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}},
			PretrainGroups: []train.Group{{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{}}}},
			Checkpoints: train.Checkpoints{Folder: folder},
			Progress:    progress,
		}
		return run.Fit(ctx, classifier, noiseImages(40, 8, 3))
	}

	ctx, stop := context.WithCancel(context.Background())
	err = fit(ctx, func(p train.Progress) {
		if p.Step == 5 {
			stop()
		}
	})
	fmt.Println(err)
	err = fit(context.Background(), func(p train.Progress) {
		fmt.Printf("step %d of %d, epoch %d of %d\n", p.Step, p.Steps, p.Epoch, p.Epochs)
	})
	fmt.Println(err)
	// Output:
	// training: stopped after 5 of 12 steps: context canceled
	// step 6 of 12, epoch 2 of 4
	// step 7 of 12, epoch 2 of 4
	// step 8 of 12, epoch 2 of 4
	// step 9 of 12, epoch 3 of 4
	// step 10 of 12, epoch 3 of 4
	// step 11 of 12, epoch 3 of 4
	// step 12 of 12, epoch 4 of 4
	// <nil>
}
