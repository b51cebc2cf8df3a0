package toy

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// The training run of Stretch, and of how many of its points it takes the distances.
const (
	stretchPoints, stretchPairs = 300, 45
	stretchNoise                = 0.1
	stretchSteps                = 1000
	stretchRate                 = 0.01
	stretchWidth                = 50
)

// topped is a network of features, of stretchWidth outputs where it is asked for
// some, with a linear layer that it is trained through.
type topped struct{ features nets.Network }

// Apply implements nets.Network.
func (n topped) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	h := n.features.Apply(s.In("features"), x, stretchWidth)
	return baselines.Deterministic{}.Dense(s.In("top"), h, outputs)
}

// bare is that network without the layer.
type bare struct{ topped }

// Apply implements nets.Network.
func (n bare) Apply(s *model.Scope, x *graph.Node, _ int) *graph.Node {
	return n.features.Apply(s.In("features"), x, stretchWidth)
}

// Features is a network of features with the name of its panel.
type Features struct {
	Name    string
	Network nets.Network
}

// Stretch is the figure report.Distances of what networks of features do to
// distances: each is trained to tell two moons apart, by a linear layer on top that
// regresses the class as -1 or 1, in 1000 steps of Adam, whose learning rate falls from 1e-2 along one half
// cosine, on all 300 points. The pairs
// are those of 45 training points, standardised as the networks see them. A network
// is asked for 50 outputs. The seed fixes the points and where training starts. It
// calls progress with the part that is done.
func Stretch(ctx context.Context, backend compute.Backend, seed uint64, progress func(done float64, note string), networks ...Features) (report.Figure, error) {
	var panels []report.Pairs
	for i, n := range networks {
		pairs, err := stretch(ctx, backend, seed, n, func(p train.Progress) {
			progress((float64(i)+float64(p.Step)/float64(p.Steps))/float64(len(networks)), fmt.Sprintf("%s, loss %.3g", n.Name, p.Losses.Total))
		})
		if err != nil {
			return report.Figure{}, fmt.Errorf("toy: stretch of %s: %w", n.Name, err)
		}
		panels = append(panels, pairs)
	}
	return report.Distances("stretch", panels...)
}

// stretch trains one network and returns the distances of the pairs.
func stretch(ctx context.Context, backend compute.Backend, seed uint64, n Features, progress func(train.Progress)) (report.Pairs, error) {
	points, labels := datasets.TwoMoons(stretchPoints, stretchNoise, seed)
	x := datasets.FitScaler(points, 2, datasets.Order(0, 0, stretchPoints)).Transform(points)
	var y []float64
	for _, label := range labels {
		y = append(y, float64(2*label-1))
	}
	network := topped{n.Network}
	m, err := nets.New(backend, network, likelihood.Gaussian{}, seed)
	if err != nil {
		return report.Pairs{}, err
	}
	recipe := experiment.Adam(stretchSteps, stretchPoints, stretchRate)
	recipe.LogLikelihoodScale = 1
	fit := train.Trainer{Settings: recipe.Settings, Progress: progress}
	if err := fit.Fit(ctx, m, train.Dataset{Inputs: nets.Rows(x, 2), Targets: y}); err != nil {
		return report.Pairs{}, err
	}
	x = x[:2*stretchPairs]
	found, err := predict.Sample(ctx, m.With(bare{network}), nets.Rows(x, 2), predict.Options{Samples: 1})
	if err != nil {
		return report.Pairs{}, err
	}
	h, width := found.Outputs[0], found.Width
	pairs := report.Pairs{Title: n.Name}
	for i := range stretchPairs {
		for j := range i {
			pairs.Inputs = append(pairs.Inputs, floats.Distance(x[2*i:2*i+2], x[2*j:2*j+2], 2))
			pairs.Features = append(pairs.Features, floats.Distance(h[i*width:(i+1)*width], h[j*width:(j+1)*width], 2))
			pairs.Across = append(pairs.Across, labels[i] != labels[j])
		}
	}
	return pairs, nil
}
