package toy

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

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

// Stretch draws what networks of features do to distances, in a panel for each. Each is trained on all 300 points to tell two moons
// apart: a linear layer on top regresses the class as -1 or 1, in 1000 steps of Adam, whose learning rate falls from 1e-2 along one
// half cosine. Distances are between 45 training points, standardised as the networks see them. A network is asked for 50 outputs.
// The seed fixes the points and where training starts. It calls progress with the part that is done.
func Stretch(ctx context.Context, backend compute.Backend, seed uint64, progress func(done float64, note string), networks ...Features) (report.Figure, error) {
	var panels []pairs
	for i, n := range networks {
		p, err := stretch(ctx, backend, seed, n, func(p train.Progress) {
			progress((float64(i)+float64(p.Step)/float64(p.Steps))/float64(len(networks)), fmt.Sprintf("%s, loss %.3g", n.Name, p.Losses.Total))
		})
		if err != nil {
			return report.Figure{}, fmt.Errorf("toy: stretch of %s: %w", n.Name, err)
		}
		panels = append(panels, p)
	}
	return drawStretch(panels)
}

// stretch trains one network and returns the distances of the pairs.
func stretch(ctx context.Context, backend compute.Backend, seed uint64, n Features, progress func(train.Progress)) (pairs, error) {
	points, labels := datasets.TwoMoons(stretchPoints, stretchNoise, seed)
	x := datasets.FitScaler(points, 2, datasets.Order(0, 0, stretchPoints)).Transform(points)
	var y []float64
	for _, label := range labels {
		y = append(y, float64(2*label-1))
	}
	network := topped{n.Network}
	m, err := nets.New(backend, network, likelihood.Gaussian{}, seed)
	if err != nil {
		return pairs{}, err
	}
	recipe := experiment.Adam(stretchSteps, stretchPoints, stretchRate)
	recipe.LogLikelihoodScale = 1
	fit := train.Trainer{Settings: recipe.Settings, Progress: progress}
	if err := fit.Fit(ctx, m, train.Dataset{Inputs: nets.Rows(x, 2), Targets: y}); err != nil {
		return pairs{}, err
	}
	x = x[:2*stretchPairs]
	found, err := predict.Sample(ctx, m.With(bare{network}), nets.Rows(x, 2), predict.Options{Samples: 1})
	if err != nil {
		return pairs{}, err
	}
	h, width := found.Outputs[0], found.Width
	p := pairs{title: n.Name}
	for i := range stretchPairs {
		for j := range i {
			p.inputs = append(p.inputs, floats.Distance(x[2*i:2*i+2], x[2*j:2*j+2], 2))
			p.features = append(p.features, floats.Distance(h[i*width:(i+1)*width], h[j*width:(j+1)*width], 2))
			p.across = append(p.across, labels[i] != labels[j])
		}
	}
	return p, nil
}

// pairs are the distances of pairs of inputs of two classes, and those of their features.
type pairs struct {
	title            string
	inputs, features []float64
	across           []bool // the pair is of both classes
}

// drawStretch draws, in a panel for each network, the distance of the features over the distance of the inputs, and lines
// of the smallest and the largest ratio, which the title has too.
func drawStretch(panels []pairs) (report.Figure, error) {
	f := report.Figure{Name: "stretch", Panels: [][]*plot.Plot{nil}, Width: vg.Points(float64(205*len(panels)) + 20), Height: 220,
		Caption: prose.Caption("stretch", nil)}
	for i, pairs := range panels {
		least, most := math.Inf(1), 0.0
		var x, y [2][]float64 // within a class, across
		for j, d := range pairs.inputs {
			k := 0
			if pairs.across[j] {
				k = 1
			}
			x[k], y[k] = append(x[k], d), append(y[k], pairs.features[j])
			least, most = min(least, pairs.features[j]/d), max(most, pairs.features[j]/d)
		}
		farthest, highest := slices.Max(pairs.inputs), slices.Max(pairs.features)
		p := report.New(fmt.Sprintf("%s\nstretched %.2g to %.2g times", pairs.title, least, most), "distance of inputs", "distance of features")
		names := map[bool][2]string{true: {"same class", "different classes"}}[i == 0]
		for k, c := range report.Palette()[:2] {
			if len(x[k]) > 0 {
				if err := report.Points(p, names[k], x[k], y[k], c, 0.8*report.DotRadius); err != nil {
					return f, fmt.Errorf("toy: stretch: %w", err)
				}
			}
		}
		for _, slope := range []float64{least, most} {
			end := min(farthest, 1.1*highest/slope)
			if err := report.Dashes(p, "", []float64{0, end}, []float64{0, slope * end}, report.Grey); err != nil {
				return f, fmt.Errorf("toy: stretch: %w", err)
			}
		}
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, farthest, 0, 1.1*highest
		f.Panels[0] = append(f.Panels[0], p)
	}
	return f, nil
}
