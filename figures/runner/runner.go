// Package runner trains and evaluates experiments: it joins the data sets, the
// networks, the training loop, the prediction and the metrics.
package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/render"
	"densityuncertainty/figures/results"
)

// Runner trains experiments on one compute backend.
type Runner struct {
	backend compute.Backend
	info    environment.Info
	// Choice is the line in which the environment says which backend it chose.
	Choice string
	// Work is the folder in which image experiments keep their checkpoints, each in
	// its WorkFolder; "" keeps none. The runner removes nothing there.
	Work string
	// Predictions is the folder in which image experiments keep what their model
	// said of each image; "" keeps nothing.
	Predictions string
	// WithoutSVHN lets the image experiments that the table of out-of-distribution
	// detection is made of go on where the test part of SVHN cannot be had.
	WithoutSVHN bool
	// Notes, if not nil, hears what the user should know though a run goes on.
	Notes func(string)

	images imageCache
}

// New returns a runner on the backend that the environment chooses.
func New() (*Runner, error) {
	backend, choice, err := environment.Open()
	if err != nil {
		return nil, err
	}
	return &Runner{backend: backend, info: environment.Describe(backend), Choice: choice, images: newImageCache(officialFiles())}, nil
}

// Run carries out a batch of experiments that differ in split and seed only, as
// replicas of one graph; classifiers one after the other. See run.Runner for
// the contract.
func (r *Runner) Run(ctx context.Context, batch []experiment.Experiment, progress func(done float64, note string)) (found []results.Result, err error) {
	if len(batch) == 0 {
		return nil, errors.New("runner: an empty batch")
	}
	defer recoverTo(&err, batch[0])
	if batch[0].Study == experiment.Images {
		return r.runImages(ctx, batch, progress)
	}
	if batch[0].Dataset == experiment.TwoMoons {
		return r.runMoons(ctx, batch, progress)
	}
	recipe, err := RecipeOf(batch[0])
	if err != nil {
		return nil, err
	}
	prepare, evaluate := uciTask, evaluateUCI
	if batch[0].Study == experiment.Toy {
		prepare, evaluate = toyTask, evaluateToy
	}
	tasks := make([]task, len(batch))
	for i, e := range batch {
		if tasks[i], err = prepare(ctx, e); err != nil {
			return nil, err
		}
	}
	var failures []error
	for _, group := range equalEpochs(tasks) {
		part, err := r.train(ctx, recipe, group, evaluate, func(done float64, note string) {
			progress((float64(len(found))+done*float64(len(group)))/float64(len(batch)), note)
		})
		found = append(found, part...)
		switch {
		case errors.Is(err, linalg.ErrNotPositiveDefinite): // is some tasks' alone
			failures = append(failures, err)
		case err != nil:
			return found, err
		}
	}
	return found, errors.Join(failures...)
}

// recoverTo, deferred, turns a panic into an error: GoMLX reports what is wrong
// with a graph by panicking. A panic of the Go runtime is a mistake in this
// code, so its error says where.
func recoverTo(err *error, e experiment.Experiment) {
	problem := recover()
	if problem == nil {
		return
	}
	*err = fmt.Errorf("runner: %v: %v", e, problem)
	if _, mistake := problem.(runtime.Error); mistake {
		*err = fmt.Errorf("%w\n%s", *err, debug.Stack())
	}
}

// A task is one experiment with its data: standardised training data, and the
// inputs at which to predict.
type task struct {
	experiment experiment.Experiment
	train      train.Dataset
	inputs     []float64 // standardised, row-major
	target     []float64 // standardised targets at inputs; nil for the toy
	scale      datasets.Scaler
	grid       []float64            // the toy's inputs in their own units
	raw        *datasets.Regression // the toy's data
}

// features is the number of features of a set's inputs.
func features(set train.Dataset) int { return set.Inputs.(nets.Floats).Size() }

// equalEpochs groups tasks whose epochs have the same number of batches, which
// is what replicas of one graph need, or for SNGP, which counts them, of examples.
func equalEpochs(tasks []task) [][]task {
	var groups [][]task
	steps := func(t task) int {
		if t.experiment.Method == experiment.SNGP {
			return t.train.Len()
		}
		return (t.train.Len() + batchSize - 1) / batchSize
	}
	for _, t := range tasks {
		i := slices.IndexFunc(groups, func(group []task) bool { return steps(group[0]) == steps(t) })
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], t)
	}
	return groups
}

// train fits tasks as replicas of one graph. Where some of them have a Gaussian
// process without a Cholesky factor it returns the results of the others, and an
// error that names these and wraps linalg.ErrNotPositiveDefinite.
func (r *Runner) train(ctx context.Context, recipe Recipe, tasks []task, evaluate func(task, prediction) (results.Result, error), progress func(float64, string)) ([]results.Result, error) {
	wall, cpu := time.Now(), cpuTime()
	network, run, err := recipe.regression(tasks[0].experiment)
	if err != nil {
		return nil, err
	}
	run.Progress = func(p train.Progress) {
		what := "training"
		if p.Pretraining {
			what = "generative pretraining"
		}
		progress(float64(p.Step)/float64(p.Steps), fmt.Sprintf("%s, epoch %d of %d, loss %.3g", what, p.Epoch, p.Epochs, p.Losses.Total))
	}
	predictions, err := r.fit(ctx, network, run, tasks)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", tasks[0].experiment, err)
	}
	var found []results.Result
	var failures []error
	for i, t := range tasks {
		line := results.Result{Diverged: true}
		switch p := predictions[i]; {
		case !p.finite(): // whatever else is wrong with it
		case p.failed != nil:
			failures = append(failures, fmt.Errorf("%v: %w", t.experiment, p.failed))
			continue
		default:
			if line, err = evaluate(t, p); err != nil {
				return nil, fmt.Errorf("%v: evaluating: %w", t.experiment, err)
			}
		}
		line.ID, line.Experiment = t.experiment.ID(), t.experiment
		found = append(found, line)
	}
	count := float64(len(tasks))
	for i := range found {
		f := &found[i]
		f.Backend, f.Device, f.Version = r.info.Backend, r.info.Device, r.info.Version
		f.WallSeconds, f.CPUSeconds = time.Since(wall).Seconds()/count, (cpuTime()-cpu).Seconds()/count
		f.Batched, f.Finished = len(tasks), time.Now().UTC().Truncate(time.Second)
	}
	return found, errors.Join(failures...)
}

// trainingSeed makes one seed of an experiment's seed and split, so that splits
// do not share initial values and noise. (The multiplier is the golden ratio's
// of 64 bits, which spreads neighbouring numbers.)
func trainingSeed(e experiment.Experiment) uint64 {
	return e.Seed + uint64(e.Split+1)*0x9e3779b97f4a7c15
}

// uciTask loads one split of a UCI set and standardises it by its training part.
func uciTask(ctx context.Context, e experiment.Experiment) (task, error) {
	load := func() (*datasets.Regression, error) { return datasets.UCI(e.Dataset) }
	if e.Dataset == experiment.Year { // may be downloaded, which Ctrl-C must be able to stop
		load = func() (*datasets.Regression, error) { return datasets.Year(ctx, nil) }
	}
	data, err := load()
	if err != nil {
		return task{}, err
	}
	var splits []datasets.Split
	if e.Splits == experiment.RandomSplits {
		splits = datasets.RandomSplits(data.N, e.Split+1)
	} else if splits, err = datasets.GalSplits(e.Dataset); err != nil {
		return task{}, err
	}
	if e.Split >= len(splits) {
		return task{}, fmt.Errorf("experiment %v: the set has %d splits", e, len(splits))
	}
	split := splits[e.Split]
	features := datasets.FitScaler(data.X, data.D, split.Train)
	target := datasets.FitScaler(data.Y, 1, split.Train)
	trainX, trainY := data.Take(split.Train)
	testX, testY := data.Take(split.Test)
	return task{
		experiment: e,
		train:      train.Dataset{Inputs: nets.Rows(features.Transform(trainX), data.D), Targets: target.Transform(trainY)},
		inputs:     features.Transform(testX),
		target:     target.Transform(testY),
		scale:      target,
	}, nil
}

// evaluateUCI computes RMSE and Monte Carlo NLL on the test part, in the
// target's own units.
func evaluateUCI(t task, p prediction) (results.Result, error) {
	mean, std := p.moments()
	rmse, err := metrics.RMSE(mean, t.target)
	if err != nil {
		return results.Result{}, err
	}
	scale := t.scale.Std[0]
	nll, err := metrics.MonteCarloNLL(t.target, p.mean, p.variances(), scale)
	if err != nil {
		return results.Result{}, err
	}
	return results.Result{Metrics: map[string]float64{
		"rmse":      rmse * scale,
		"nll":       nll,
		"noise_std": p.noiseStd() * scale,
		"model_std": stat.Mean(std, nil) * scale,
	}}, nil
}

// The toy problem of Figure 1: the paper states neither N, the noise nor the
// training; these are the settings under which the figure comes out.
const (
	toyN        = 100
	toyNoiseStd = 3.0
	toyRate     = 1e-3
	gridEnd     = 6.0
	gridStep    = 0.05
)

// toyTask draws the cubic data of a seed; it predicts on an even grid.
func toyTask(_ context.Context, e experiment.Experiment) (task, error) {
	data := datasets.ToyCubic(toyN, toyNoiseStd, e.Seed)
	rows := make([]int, data.N)
	for i := range rows {
		rows[i] = i
	}
	inputs, target := datasets.FitScaler(data.X, 1, rows), datasets.FitScaler(data.Y, 1, rows)
	var grid []float64
	for i := range int(2*gridEnd/gridStep) + 1 {
		grid = append(grid, -gridEnd+gridStep*float64(i))
	}
	return task{
		experiment: e,
		train:      train.Dataset{Inputs: nets.Rows(inputs.Transform(data.X), 1), Targets: target.Transform(data.Y)},
		inputs:     inputs.Transform(grid),
		scale:      target,
		grid:       grid,
		raw:        data,
	}, nil
}

// evaluateToy summarises the draws of the mean function along the grid.
func evaluateToy(t task, p prediction) (results.Result, error) {
	mean, std := p.moments()
	for i := range std {
		std[i] *= t.scale.Std[0]
	}
	r := results.Result{
		Metrics: map[string]float64{"noise_std": p.noiseStd() * t.scale.Std[0]},
		Series: map[string][]float64{
			render.SeriesX:      t.grid,
			render.SeriesMean:   t.scale.Inverse(mean),
			render.SeriesStd:    std,
			render.SeriesTrainX: t.raw.X,
			render.SeriesTrainY: t.raw.Y,
		},
	}
	quantiles := map[string]float64{
		render.SeriesQ005: 0.005, render.SeriesQ025: 0.025,
		render.SeriesQ975: 0.975, render.SeriesQ995: 0.995,
	}
	curves := p.quantiles(quantiles)
	for name, curve := range curves {
		r.Series[name] = t.scale.Inverse(curve)
	}
	return r, nil
}

// cpuTime is the CPU time that this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // Linux fails only for a bad argument
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
