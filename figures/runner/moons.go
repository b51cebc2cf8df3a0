package runner

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/render"
	"densityuncertainty/figures/results"
)

// The problem of two moons, which the paper does not have.
const (
	moonsN, moonsTestN = 500, 2000
	moonsNoise         = 0.1
	moonsClasses       = 2
	moonsRate          = 1e-2
	// The map is the square of this side with this corner; it has so many points
	// along either axis.
	moonsLeft, moonsLow, moonsSide = -2.5, -2.75, 6.0
	moonsPoints                    = 52
	// Points at least this far from all training points count as far away.
	moonsFar = 1.0
)

// runMoons trains classifiers of two moons one after the other.
func (r *Runner) runMoons(ctx context.Context, batch []experiment.Experiment, progress func(done float64, note string)) (found []results.Result, err error) {
	for i, e := range batch {
		line, err := r.moons(ctx, e, func(done float64, note string) { progress((float64(i)+done)/float64(len(batch)), note) })
		if err != nil {
			return found, fmt.Errorf("%v: %w", e, err)
		}
		found = append(found, line)
	}
	return found, nil
}

// moons trains one method and maps the entropy of its predictions.
func (r *Runner) moons(ctx context.Context, e experiment.Experiment, progress func(done float64, note string)) (results.Result, error) {
	wall, cpu := time.Now(), cpuTime()
	recipe, err := RecipeOf(e)
	if err != nil {
		return results.Result{}, err
	}
	points, labels := datasets.TwoMoons(moonsN, moonsNoise, e.Seed)
	unseen, answers := datasets.TwoMoons(moonsTestN, moonsNoise, ^e.Seed)
	scale := datasets.FitScaler(points, 2, datasets.Order(0, 0, moonsN))
	data := train.Dataset{Inputs: nets.Rows(scale.Transform(points), 2), Labels: labels}
	xs, ys := axisOf(moonsLeft), axisOf(moonsLow)
	asked := nets.Rows(scale.Transform(slices.Concat(gridOf(xs, ys), points, unseen)), 2)
	probabilities, err := r.classifyMoons(ctx, recipe, e, data, asked, progress)
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
	line := results.Result{
		ID: e.ID(), Experiment: e, Backend: r.info.Backend, Device: r.info.Device, Version: r.info.Version, Batched: 1,
		Metrics: map[string]float64{
			"accuracy":     accuracy,
			"entropy_data": stat.Mean(entropy[cells:cells+moonsN], nil),
			"entropy_far":  stat.Mean(farOf(entropy[:cells], xs, ys, points), nil),
		},
		Series: map[string][]float64{
			render.SeriesX: xs, render.SeriesY: ys,
			render.SeriesEntropy: make([]float64, cells),
			render.SeriesTrainX:  make([]float64, moonsN), render.SeriesTrainY: make([]float64, moonsN),
			render.SeriesLabel: make([]float64, moonsN),
		},
	}
	for i, h := range entropy[:cells] { // what a picture shows, in few digits
		line.Series[render.SeriesEntropy][i] = math.Round(h*1e4) / 1e4
	}
	for i, label := range labels {
		line.Series[render.SeriesTrainX][i], line.Series[render.SeriesTrainY][i] = points[2*i], points[2*i+1]
		line.Series[render.SeriesLabel][i] = float64(label)
	}
	line.WallSeconds, line.CPUSeconds = time.Since(wall).Seconds(), (cpuTime() - cpu).Seconds()
	line.Finished = time.Now().UTC().Truncate(time.Second)
	return line, nil
}

// classifyMoons trains the method's classifier, for an ensemble all its members, and
// returns the probabilities at the points that are asked for, [N*2].
func (r *Runner) classifyMoons(ctx context.Context, recipe Recipe, e experiment.Experiment, data train.Dataset, asked nets.Floats, progress func(done float64, note string)) ([]float64, error) {
	members := membersOf(e)
	var all [][]float64
	for m := range members {
		c, err := r.fitMoons(ctx, recipe, e, memberSeed(e, m), data, func(p train.Progress) {
			done := float64(p.Step) / float64(p.Steps)
			progress((float64(m)+done)/float64(members), fmt.Sprintf("step %d of %d, loss %.3g", p.Step, p.Steps, p.Losses.Total))
		})
		if err != nil {
			return nil, err
		}
		classes, err := predict.Sample(ctx, c, asked, predict.Options{Samples: drawsOf(e), BatchSize: moonsN})
		if err != nil {
			return nil, fmt.Errorf("predicting: %w", err)
		}
		all = append(all, classes.Probabilities)
	}
	probabilities, _, err := baselines.MixClasses(all, moonsClasses)
	return probabilities, err
}

// fitMoons trains one classifier.
func (r *Runner) fitMoons(ctx context.Context, recipe Recipe, e experiment.Experiment, seed uint64, data train.Dataset, progress func(train.Progress)) (*nets.Model, error) {
	network, run, err := recipe.regression(e) // which a classifier has too
	if err != nil {
		return nil, err
	}
	finish := func(*nets.Model) error { return nil }
	switch e.Method {
	case experiment.SNGP:
		// Two standardised inputs.
		head := baselines.SNGP{Examples: data.Len(), RandomFeatures: randomFeatures, Plain: true,
			LengthScale: math.Sqrt2, FeatureScale: math.Sqrt(float64(randomFeatures) / 2)}
		network = withHead(network, head)
		finish = func(c *nets.Model) error { return head.Posterior(c.Store, processHead) }
	case experiment.DUE:
		untrained, err := nets.New(r.backend, withHead(network, baselines.Headless{}), nil, seed)
		if err != nil {
			return nil, err
		}
		found, err := predict.Sample(ctx, untrained, data.Inputs, predict.Options{Samples: 1, Training: true})
		if err != nil {
			return nil, fmt.Errorf("features of the untrained network: %w", err)
		}
		start, err := baselines.StartFrom(found.Outputs[0], found.Width, toyInducingPoints, seed)
		if err != nil {
			return nil, err
		}
		head := baselines.DUE{Start: []baselines.Inducing{start}}
		network = withHead(network, head)
		finish = func(c *nets.Model) error { return head.Check(c.Store, processHead) }
	}
	c, err := nets.New(r.backend, network, likelihood.Categorical{Classes: moonsClasses}, seed)
	if err != nil {
		return nil, err
	}
	run.BatchSize, run.Schedule, run.Progress = data.Len(), train.Cosine(moonsRate), progress
	if err := run.Fit(ctx, c, data); err != nil {
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
