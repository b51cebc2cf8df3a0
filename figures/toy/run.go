package toy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// Run trains methods, one's own too, as the protocol says, and returns the result lines in the order of
// Protocol.Experiments, with the curves or maps of what they predict. It computes on the backend that the
// environment chooses, and stores nothing: give the lines to a results.Store to keep them. Beside an error are the
// lines of what was finished before.
//
// On the pure Go backend methods are trained beside each other, as many as there are cores. What several of one's own
// share, as a layer behind a pointer, is then used by several goroutines.
func Run(ctx context.Context, p Protocol, list ...methods.Method) ([]results.Result, error) {
	if err := methods.List(list).Validate(); err != nil {
		return nil, err
	}
	if err := jobs.Distinct("seed", p.Seeds); err != nil {
		return nil, fmt.Errorf("toy: %w", err)
	}
	on := func(machine jobs.Machine) jobs.Runner { return Runner{Machine: machine, Methods: list} }
	return jobs.LiveFor(ctx, on, p.Experiments(list...), p.Progress)
}

// Runner carries out experiments of the study; it implements jobs.Runner.
type Runner struct {
	jobs.Machine
	Methods methods.List // those that experiments may name
	// Curves says whether a result on the cubic keeps its series; nil keeps those of all.
	Curves func(results.Experiment) bool
}

// Cost implements jobs.Runner: the examples that the networks of a run see, of an ensemble those of each member.
func (r Runner) Cost(e results.Experiment) float64 {
	examples := cubicN
	if e.Dataset == MoonsName {
		examples = moonsN
	}
	m, _ := r.Methods.Named(e.Method)
	return float64(m.Networks()) * float64(examples) * float64(e.Epochs)
}

// Run carries out a batch of experiments that differ in the seed only. See jobs.Runner for the contract.
func (r Runner) Run(ctx context.Context, batch []results.Experiment, progress func(done float64, note string)) (found []results.Result, err error) {
	defer jobs.Recover(&err, batch[0])
	p, m, err := ProtocolOf(batch[0], r.Methods)
	if err != nil {
		return nil, err
	}
	if p.Problem == MoonsName {
		return r.moons(ctx, p, m, batch, progress)
	}
	return r.cubic(ctx, p, m, batch, progress)
}

// The cubic problem.
const (
	cubicN        = 100
	cubicNoiseStd = 3.0
	gridEnd       = 6.0
	gridStep      = 0.05
)

// cubicData is the data of a seed, standardised, and the grid along which to predict.
type cubicData struct {
	experiment results.Experiment
	raw        *datasets.Regression
	train      train.Dataset
	grid       []float64   // in the data's own units
	inputs     nets.Floats // the grid, standardised
	target     datasets.Scaler
}

func cubicOf(e results.Experiment) cubicData {
	data := datasets.ToyCubic(cubicN, cubicNoiseStd, e.Seed)
	rows := make([]int, data.N)
	for i := range rows {
		rows[i] = i
	}
	inputs, target := datasets.FitScaler(data.X, 1, rows), datasets.FitScaler(data.Y, 1, rows)
	var grid []float64
	for i := range int(2*gridEnd/gridStep) + 1 {
		grid = append(grid, -gridEnd+gridStep*float64(i))
	}
	return cubicData{
		experiment: e, raw: data, grid: grid, inputs: nets.Rows(inputs.Transform(grid), 1), target: target,
		train: train.Dataset{Inputs: nets.Rows(inputs.Transform(data.X), 1), Targets: target.Transform(data.Y)},
	}
}

// trainer is the training run on n examples.
func (p Protocol) trainer(m methods.Method, n int) train.Trainer {
	t := train.Trainer{
		LogLikelihoodScale: 1, Epochs: p.Steps, BatchSize: n, Schedule: train.Cosine(p.LearningRate),
		Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}},
	}
	if m.HasEnergies {
		t.PretrainEpochs, t.WeightEnergies = p.PretrainSteps, p.GenerativeWeights
		t.PretrainGroups = t.Groups // attached, the generative objective moves the weights too
	}
	return t
}

// cubic trains a batch as replicas of one graph.
func (r Runner) cubic(ctx context.Context, p Protocol, m methods.Method, batch []results.Experiment, progress func(done float64, note string)) ([]results.Result, error) {
	watch := jobs.StartStopwatch()
	fit := methods.Regressions{Method: m, Trainer: p.trainer(m, cubicN), Network: m.Network(p.Options, p.Width, p.HiddenLayers), Experiments: batch}
	fit.Trainer.Progress = func(at train.Progress) { progress(methods.Describe(at)) }
	data := make([]cubicData, len(batch))
	for i, e := range batch {
		data[i] = cubicOf(e)
		fit.Sets, fit.Inputs = append(fit.Sets, data[i].train), append(fit.Inputs, data[i].inputs)
	}
	predictions, err := fit.Fit(ctx, r.Backend)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", batch[0], err)
	}
	var found []results.Result
	var failures []error
	for i, d := range data {
		line := r.Line(d.experiment, len(batch))
		switch {
		case !predictions[i].Finite():
			line.Diverged = true
		case predictions[i].Failed != nil:
			failures = append(failures, fmt.Errorf("%v: %w", d.experiment, predictions[i].Failed))
			continue
		default:
			line.Metrics, line.Series = d.summary(predictions[i])
			if r.Curves != nil && !r.Curves(d.experiment) {
				line.Series = nil
			}
		}
		found = append(found, line)
	}
	watch.StopShared(found, len(batch))
	return found, errors.Join(failures...)
}

// summary is the draws of the mean function along the grid, in the data's own units.
func (d cubicData) summary(p methods.Prediction) (measured map[string]float64, series map[string][]float64) {
	mean, std := p.Moments()
	scale := d.target.Std[0]
	for i := range std {
		std[i] *= scale
	}
	series = map[string][]float64{
		results.SeriesX:      d.grid,
		results.SeriesMean:   d.target.Inverse(mean),
		results.SeriesStd:    std,
		results.SeriesTrainX: d.raw.X,
		results.SeriesTrainY: d.raw.Y,
	}
	for name, curve := range p.Quantiles(map[string]float64{
		results.SeriesQ005: 0.005, results.SeriesQ025: 0.025, results.SeriesQ975: 0.975, results.SeriesQ995: 0.995,
	}) {
		series[name] = d.target.Inverse(curve)
	}
	measured = map[string]float64{
		results.MetricNoiseStd:    p.NoiseDeviation() * scale,
		results.MetricGapCoverage: gapCoverage(d.grid, series[results.SeriesQ025], series[results.SeriesQ975]),
	}
	if slices.Max(std) > 0 { // a single network has no spread
		measured[results.MetricGapRatio] = gapRatio(d.grid, std)
	}
	return measured, series
}
