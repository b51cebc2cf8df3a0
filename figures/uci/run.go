package uci

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// Run trains and evaluates methods, one's own too, as the protocol says, and returns the result lines in the order
// of Protocol.Experiments. The splits of a data set are trained together. It computes on the backend that the
// environment chooses, and stores nothing: give the lines to a results.Store to keep them. Beside an error are the
// lines of the batches that were finished before.
//
// On the pure Go backend methods and data sets are trained beside each other, as many as there are cores. What several
// methods of one's own share, such as a layer behind a pointer, is then used by several goroutines.
func Run(ctx context.Context, p Protocol, list ...methods.Method) ([]results.Result, error) {
	if err := methods.List(list).Validate(); err != nil {
		return nil, err
	}
	if err := p.check(list); err != nil {
		return nil, err
	}
	on := func(machine jobs.Machine) jobs.Runner { return Runner{Machine: machine, Methods: list, Own: p.Own} }
	return jobs.LiveFor(ctx, on, p.Experiments(list...), p.Progress)
}

// Runner carries out experiments of the study; it implements jobs.Runner.
type Runner struct {
	jobs.Machine
	Methods methods.List           // those that experiments may name
	Own     []*datasets.Regression // data sets that experiments may name, beside Datasets
	// Work is the folder in which batches keep their checkpoints, each in the jobs.WorkFolder of its last experiment;
	// "" keeps none. The runner removes nothing there.
	Work string
	// Notes, if not nil, hears what the user should know though a run goes on, such as a checkpoint that cannot be written.
	Notes func(string)
}

// checkpointEvery is the most that a killed run loses.
const checkpointEvery = 2 * time.Minute

// checkpoints are those of splits that are trained together. Others that end with the same one, as where the size of
// a batch was changed, have others.
func (r Runner) checkpoints(splits []splitData) train.Checkpoints {
	if r.Work == "" {
		return train.Checkpoints{}
	}
	all := fnv.New64a()
	for _, s := range splits {
		_, _ = io.WriteString(all, s.experiment.ID()) // a hash takes everything
	}
	folder := jobs.WorkFolder(r.Work, splits[len(splits)-1].experiment)
	return train.Checkpoints{Folder: filepath.Join(folder, fmt.Sprintf("%016x", all.Sum64())), Every: checkpointEvery, Version: r.Info.Version}
}

// Cost implements jobs.Runner: the examples that the networks of a run see, of an ensemble those of each member.
func (r Runner) Cost(e results.Experiment) float64 {
	examples, _, _, err := datasets.UCISize(e.Dataset)
	if set := ownData(r.Own).named(e.Dataset); set != nil {
		examples, err = set.N, nil
	}
	if err != nil {
		return 0 // what is wrong is said when it is run
	}
	m, _ := r.Methods.Named(e.Method)
	return float64(m.Networks()) * float64(examples) * float64(e.Epochs)
}

// Run trains a batch of experiments that differ in the split only as replicas of one graph. See jobs.Runner for the
// contract. Stopped and called again it goes on with the training where it was, given a folder for work.
func (r Runner) Run(ctx context.Context, batch []results.Experiment, progress func(done float64, note string)) (found []results.Result, err error) {
	defer jobs.Recover(&err, batch[0])
	p, m, err := ProtocolOf(batch[0], r.Methods, r.Own...)
	if err != nil {
		return nil, err
	}
	splits := make([]splitData, len(batch))
	for i, e := range batch {
		if splits[i], err = load(ctx, e, p.EarlyStopping, r.Own...); err != nil {
			return nil, err
		}
	}
	var failures []error
	for _, group := range p.replicas(m, splits) {
		part, err := r.train(ctx, p, m, group, func(done float64, note string) {
			progress((float64(len(found))+done*float64(len(group)))/float64(len(batch)), note)
		})
		found = append(found, part...)
		switch {
		case errors.Is(err, linalg.ErrNotPositiveDefinite): // is some splits' alone
			failures = append(failures, err)
		case err != nil:
			return found, err
		}
	}
	return found, errors.Join(failures...)
}

// replicas groups splits that can be replicas of one graph: their epochs must have the same number of batches, and
// for a process that counts them, of examples.
func (p Protocol) replicas(m methods.Method, splits []splitData) [][]splitData {
	length := func(s splitData) int {
		if m.Process != nil && m.Process.CountsExamples() {
			return s.train.Len()
		}
		return (s.train.Len() + p.BatchSize - 1) / p.BatchSize
	}
	var groups [][]splitData
	for _, s := range splits {
		i := slices.IndexFunc(groups, func(group []splitData) bool { return length(group[0]) == length(s) })
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}

// train fits splits as replicas of one graph. Where some of them have a Gaussian
// process without a Cholesky factor it returns the results of the others, and an
// error that names these and wraps linalg.ErrNotPositiveDefinite.
func (r Runner) train(ctx context.Context, p Protocol, m methods.Method, splits []splitData, progress func(float64, string)) ([]results.Result, error) {
	watch := jobs.StartStopwatch()
	fit := methods.Regressions{Method: m, Trainer: p.trainer(m), Network: m.Network(p.Options, p.Width, p.HiddenLayers)}
	fit.Trainer.Checkpoints = r.checkpoints(splits)
	fit.Trainer.Progress = func(at train.Progress) { progress(methods.Describe(at)) }
	if r.Notes != nil {
		fit.Trainer.Notes = func(text string) { r.Notes(fmt.Sprintf("%v: %s", splits[len(splits)-1].experiment, text)) }
	}
	for _, s := range splits {
		fit.Experiments, fit.Sets, fit.Inputs = append(fit.Experiments, s.experiment), append(fit.Sets, s.train), append(fit.Inputs, s.inputs)
		if p.EarlyStopping {
			fit.HeldOut = append(fit.HeldOut, s.heldOut)
		}
	}
	predictions, err := fit.Fit(ctx, r.Backend)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", splits[0].experiment, err)
	}
	var found []results.Result
	var failures []error
	for i, s := range splits {
		line := r.Line(s.experiment, len(splits))
		switch prediction := predictions[i]; {
		case !prediction.Finite(): // whatever else is wrong with it
			line.Diverged = true
		case prediction.Failed != nil:
			failures = append(failures, fmt.Errorf("%v: %w", s.experiment, prediction.Failed))
			continue
		default:
			if line.Metrics, err = s.evaluate(prediction); err != nil {
				return nil, fmt.Errorf("%v: evaluating: %w", s.experiment, err)
			}
		}
		found = append(found, line)
	}
	watch.StopShared(found, len(splits))
	return found, errors.Join(failures...)
}

// sharpness is the mean standard deviation of the target, of noise and of the function, whose deviations are given.
func sharpness(p methods.Prediction, std []float64) float64 {
	sum := 0.0
	for i, s := range std {
		noise := 0.0
		for _, component := range p.NoiseStd {
			noise += component[i] * component[i] / float64(len(p.NoiseStd))
		}
		sum += math.Sqrt(s*s + noise)
	}
	return sum / float64(len(std))
}

// evaluate computes RMSE, Monte Carlo NLL and the other metrics on the test part, in the target's own units: with s the standard
// deviation of the training targets, RMSE = s RMSE_z and NLL = NLL_z + log s of the standardised ones.
func (s splitData) evaluate(p methods.Prediction) (map[string]float64, error) {
	mean, std := p.Moments()
	rmse, err := metrics.RMSE(mean, s.target)
	if err != nil {
		return nil, err
	}
	scale := s.scale.Std[0]
	nll, err := metrics.MonteCarloNLL(s.target, p.Mean, p.Variances(), scale)
	if err != nil {
		return nil, err
	}
	crps, err := metrics.MonteCarloCRPS(s.target, p.Mean, p.Variances(), scale)
	if err != nil {
		return nil, err
	}
	coverage, err := metrics.MonteCarloCoverage(s.target, p.Mean, p.Variances(), 0.95)
	if err != nil {
		return nil, err
	}
	found := map[string]float64{
		results.MetricRMSE:      rmse * scale,
		results.MetricNLL:       nll,
		results.MetricCRPS:      crps,
		results.MetricCoverage:  coverage,
		results.MetricSharpness: sharpness(p, std) * scale,
		results.MetricNoiseStd:  p.NoiseDeviation() * scale,
		results.MetricModelStd:  stat.Mean(std, nil) * scale,
	}
	// The noise has the same variance everywhere, so that the function's deviations are in the order of all.
	if slices.Min(std) < slices.Max(std) {
		distance := make([]float64, len(mean))
		for i := range mean {
			distance[i] = math.Abs(mean[i] - s.target[i])
		}
		if found[results.MetricSpearman], err = metrics.Spearman(std, distance); err != nil {
			return nil, err
		}
	}
	return found, nil
}
