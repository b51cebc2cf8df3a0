package toy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// The problem of two moons, which the paper does not have.
const (
	moonsN, moonsTestN = 500, 2000
	moonsNoise         = 0.1
	moonsClasses       = 2
	// The map is the square of this side with this corner; it has so many points
	// along either axis.
	moonsLeft, moonsLow, moonsSide = -2.5, -2.75, 6.0
	moonsPoints                    = 52
	// Points at least this far from all training points count as far away.
	moonsFar = 1.0
)

// moons trains classifiers of two moons one after the other.
func (r Runner) moons(ctx context.Context, p Protocol, m methods.Method, batch []results.Experiment, progress func(done float64, note string)) (found []results.Result, err error) {
	for i, e := range batch {
		line, err := r.oneMoons(ctx, p, m, e, func(done float64, note string) { progress((float64(i)+done)/float64(len(batch)), note) })
		if err != nil {
			return found, fmt.Errorf("%v: %w", e, err)
		}
		found = append(found, line)
	}
	return found, nil
}

// oneMoons trains one classifier and maps the entropy of its predictions.
func (r Runner) oneMoons(ctx context.Context, p Protocol, m methods.Method, e results.Experiment, progress func(done float64, note string)) (results.Result, error) {
	watch := jobs.StartStopwatch()
	points, labels := datasets.TwoMoons(moonsN, moonsNoise, e.Seed)
	unseen, answers := datasets.TwoMoons(moonsTestN, moonsNoise, ^e.Seed)
	scale := datasets.FitScaler(points, 2, datasets.Order(0, 0, moonsN))
	data := train.Dataset{Inputs: nets.Rows(scale.Transform(points), 2), Labels: labels}
	xs, ys := axisOf(moonsLeft), axisOf(moonsLow)
	asked := nets.Rows(scale.Transform(slices.Concat(gridOf(xs, ys), points, unseen)), 2)
	probabilities, err := r.classifyMoons(ctx, p, m, e, data, asked, progress)
	if errors.Is(err, train.ErrDiverged) {
		line := r.Line(e, 1)
		line.Diverged = true
		watch.Stop(&line)
		return line, nil
	}
	if err != nil {
		return results.Result{}, err
	}
	entropy, err := metrics.Entropy(probabilities, moonsClasses)
	if err != nil {
		return results.Result{}, err
	}
	cells := len(xs) * len(ys)
	accuracy, err := metrics.Accuracy(probabilities[(cells+moonsN)*moonsClasses:], moonsClasses, answers)
	if err != nil {
		return results.Result{}, err
	}
	line := r.Line(e, 1)
	line.Metrics = map[string]float64{
		results.MetricAccuracy:    accuracy,
		results.MetricEntropyData: stat.Mean(entropy[cells:cells+moonsN], nil),
		results.MetricEntropyFar:  stat.Mean(farOf(entropy[:cells], xs, ys, points), nil),
	}
	line.Series = map[string][]float64{
		results.SeriesX: xs, results.SeriesY: ys,
		results.SeriesEntropy: make([]float64, cells),
		results.SeriesTrainX:  make([]float64, moonsN), results.SeriesTrainY: make([]float64, moonsN),
		results.SeriesLabel: make([]float64, moonsN),
	}
	for i, h := range entropy[:cells] { // what a picture shows, in few digits
		line.Series[results.SeriesEntropy][i] = math.Round(h*1e4) / 1e4
	}
	for i, label := range labels {
		line.Series[results.SeriesTrainX][i], line.Series[results.SeriesTrainY][i] = points[2*i], points[2*i+1]
		line.Series[results.SeriesLabel][i] = float64(label)
	}
	watch.Stop(&line)
	return line, nil
}

// classifyMoons trains the method's classifier, for an ensemble all its members, and
// returns the probabilities at the points that are asked for, [N*2].
func (r Runner) classifyMoons(ctx context.Context, p Protocol, m methods.Method, e results.Experiment, data train.Dataset, asked nets.Floats, progress func(done float64, note string)) ([]float64, error) {
	members := m.Networks()
	var all [][]float64
	for member := range members {
		c, err := r.fitMoons(ctx, p, m, methods.Seed(e, member), data, func(at train.Progress) {
			done := float64(at.Step) / float64(at.Steps)
			progress((float64(member)+done)/float64(members), fmt.Sprintf("step %d of %d, loss %.3g", at.Step, at.Steps, at.Losses.Total))
		})
		if err != nil {
			return nil, err
		}
		classes, err := predict.Sample(ctx, c, asked, predict.Options{Samples: m.SamplesOf(e.Samples), BatchSize: moonsN})
		if err != nil {
			return nil, fmt.Errorf("predicting: %w", err)
		}
		all = append(all, classes.Probabilities)
	}
	probabilities, _, err := predict.MixClasses(all, moonsClasses)
	return probabilities, err
}

// fitMoons trains one classifier.
func (r Runner) fitMoons(ctx context.Context, p Protocol, m methods.Method, seed uint64, data train.Dataset, progress func(train.Progress)) (*nets.Model, error) {
	network := m.Network(p.Options, p.Width, p.HiddenLayers)
	finish := func(*nets.Model) error { return nil }
	if m.Process != nil {
		task := methods.Task{Kind: methods.Points, Examples: data.Len(), Inputs: 2, Classes: moonsClasses, Seeds: []uint64{seed}}
		task.Features = func() ([][]float64, int, error) {
			untrained, err := nets.New(r.Backend, methods.WithHead(network, baselines.Headless{}), nil, seed)
			if err != nil {
				return nil, 0, err
			}
			found, err := predict.Sample(ctx, untrained, data.Inputs, predict.Options{Samples: 1, Training: true})
			if err != nil {
				return nil, 0, fmt.Errorf("features of the untrained network: %w", err)
			}
			return found.Outputs, found.Width, nil
		}
		head, err := m.Process.Head(task)
		if err != nil {
			return nil, err
		}
		network = methods.WithHead(network, head.Layers)
		finish = func(c *nets.Model) error { return head.Finish(c.Store) }
	}
	c, err := nets.New(r.Backend, network, likelihood.Categorical{Classes: moonsClasses}, seed)
	if err != nil {
		return nil, err
	}
	trainer := p.trainer(m, data.Len()) // as a regression is trained
	trainer.Progress = progress
	if err := trainer.Fit(ctx, c, data); err != nil {
		return nil, err
	}
	return c, finish(c)
}

// axisOf are the coordinates of the map along the axis that begins at low.
func axisOf(low float64) []float64 {
	return floats.Span(make([]float64, moonsPoints), low, low+moonsSide)
}

// gridOf are all points of the map, row by row from below.
func gridOf(xs, ys []float64) []float64 {
	var grid []float64
	for _, y := range ys {
		for _, x := range xs {
			grid = append(grid, x, y)
		}
	}
	return grid
}

// farOf are the values of the map at points far from all of the given ones.
func farOf(values, xs, ys, points []float64) []float64 {
	var far []float64
	for i, v := range values {
		nearest := math.Inf(1)
		for k := 0; k < len(points); k += 2 {
			nearest = min(nearest, math.Hypot(xs[i%len(xs)]-points[k], ys[i/len(xs)]-points[k+1]))
		}
		if nearest >= moonsFar {
			far = append(far, v)
		}
	}
	return far
}
