package cifar

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gomlx/compute"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
)

// StepCosts trains steps of stepBatch images. The first of stepCount steps compiles and is not timed. There are as many
// classes as CIFAR-10 has.
const stepBatch, stepCount, stepClasses = 32, 4, 10

// StepCosts trains ResNet-14 with several families of layers for a few steps of 32 images of noise, on this machine, and
// returns a table of what that takes:
//
//   - trainable numbers (nets.Parameters);
//   - operations for one image of a step (nets.ResNet.CostOf, which leaves out what a Gaussian process does on top, less
//     than 2%);
//   - megabytes of all that is kept from step to step, with statistics and what optimizers remember;
//   - seconds for a step, the fastest of three, since other work may slow some of them, and their ratio to the plain
//     network's;
//   - how often the network is evaluated for a prediction.
//
// The costs of an ensemble are those of the plain network times the number of its members. StepCosts calls progress with
// the part that is done and the family's name.
func StepCosts(ctx context.Context, backend compute.Backend, progress func(done float64, note string)) (report.Table, error) {
	return stepCosts(ctx, backend, stepBatch, stepCount, progress)
}

func stepCosts(ctx context.Context, backend compute.Backend, batch, steps int, progress func(done float64, note string)) (report.Table, error) {
	t := prose.Table("step-costs", batch)
	t.Columns = []string{"Layers", "Parameters", "GFLOP, one image", "MB kept", fmt.Sprintf("s, step of %d", batch), "ratio", "passes"}
	plain := Family{"Plain", baselines.Deterministic{}}
	due := baselines.DUE{Start: []baselines.Inducing{anywhere(stepClasses)}}
	rows := []struct {
		Family
		networks, passes int
	}{
		{plain, 1, 1},
		{Family{fmt.Sprintf("Ensemble of %d plain", methods.EnsembleMembers), plain.Layers}, methods.EnsembleMembers, methods.EnsembleMembers},
		{Family{"SNGP", baselines.SNGP{Examples: trainingImages, Orthogonal: true}}, 1, 1},
		{Family{"DUE", due}, 1, 1},
		{Family{"Density, LDL", dul.Density{}}, 1, paperDraws},
		{Family{"Density, rank-1 mixture of 1.25%", dul.Density{Energy: energy.Rank1Mixture{Fraction: 0.0125}}}, 1, paperDraws},
	}
	var single stepCost // of the plain network
	for i, r := range rows {
		cost := single
		if r.networks == 1 {
			var err error
			cost, err = stepCostOf(ctx, backend, nets.ResNet14(r.Layers), batch, steps, func(part float64) {
				progress((float64(i)+part)/float64(len(rows)), r.Name)
			})
			if err != nil {
				return report.Table{}, fmt.Errorf("cifar: %s: %w", r.Name, err)
			}
		}
		if i == 0 {
			single = cost
		}
		times := float64(r.networks)
		t.Rows = append(t.Rows, report.Row{Name: r.Name, Cells: report.TextCells(
			grouped(r.networks*cost.parameters), fmt.Sprintf("%.3f", times*cost.operations/1e9), fmt.Sprintf("%.1f", times*cost.bytes/1e6),
			fmt.Sprintf("%.2f", times*cost.seconds), fmt.Sprintf("%.1f", times*cost.seconds/single.seconds), fmt.Sprint(r.passes),
		)})
	}
	return t, nil
}

// A stepCost is what training a network takes.
type stepCost struct {
	parameters                 int
	operations, bytes, seconds float64
}

// stepCostOf measures it, and tells progress the part that is done.
func stepCostOf(ctx context.Context, backend compute.Backend, network nets.ResNet, batch, steps int, progress func(part float64)) (stepCost, error) {
	counts, err := nets.Parameters(backend, network, datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, stepClasses)
	if err != nil {
		return stepCost{}, err
	}
	c, err := nets.New(backend, network, likelihood.Categorical{Classes: stepClasses}, 1)
	if err != nil {
		return stepCost{}, err
	}
	cost := stepCost{operations: network.CostOf(datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, stepClasses).Training}
	for _, n := range counts {
		cost.parameters += n
	}
	// The groups of parameters that density layers have: other families lack some of them.
	const rate = 0.1
	sgd := train.SGD{Momentum: 0.9, Decay: 1e-4}
	run := train.Trainer{Settings: train.Settings{Epochs: 1, BatchSize: batch, Schedule: train.Cosine{Start: rate}, LogLikelihoodScale: 1, Groups: []train.Group{
		{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{Decay: energyDecay}, Rate: energyRate / rate},
		{Roles: []params.Role{params.Weight}, Optimizer: sgd}, {Roles: []params.Role{params.Variational}, Optimizer: train.SGD{Momentum: 0.9}},
	}}}
	cost.seconds = math.Inf(1)
	var before time.Time
	run.Progress = func(p train.Progress) {
		now := time.Now()
		if p.Step > 1 {
			cost.seconds = min(cost.seconds, now.Sub(before).Seconds())
		}
		before = now
		progress(float64(p.Step) / float64(p.Steps))
	}
	if err := run.Fit(ctx, c, noise(batch*steps, stepClasses)); err != nil {
		return stepCost{}, err
	}
	for v := range c.Store.IterVariables() {
		cost.bytes += float64(v.Shape().ByteSize())
	}
	return cost, nil
}

// features are the inputs of ResNet-14's last layer.
const features = 64

// anywhere are inducing points that cost what any others do.
func anywhere(count int) baselines.Inducing {
	rng := rand.New(rand.NewPCG(3, 4))
	start := baselines.Inducing{Points: make([]float64, count*features), LengthScale: math.Sqrt(features)}
	for i := range start.Points {
		start.Points[i] = rng.NormFloat64()
	}
	return start
}

// noise are images of random bytes, with labels in turn.
func noise(n, classes int) train.Dataset {
	rng := rand.New(rand.NewPCG(1, 2))
	images := nets.Pixels{
		Bytes: make([]byte, n*datasets.ImageSize), Height: datasets.ImageSide, Width: datasets.ImageSide,
		Standardization: nets.Standardization{Mean: []float64{0.5, 0.5, 0.5}, Std: []float64{0.3, 0.3, 0.3}},
	}
	for i := range images.Bytes {
		images.Bytes[i] = byte(rng.Uint32())
	}
	labels := make([]int, n)
	for i := range labels {
		labels[i] = i % classes
	}
	return train.Dataset{Inputs: images, Labels: labels}
}
