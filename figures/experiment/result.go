package experiment

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/train"
)

// A Result has the metrics of one experiment, and where and how long it ran. See Store for how it is kept.
type Result struct {
	ID    string // Experiment.ID
	Group string // Experiment.Group
	Split int
	Seed  uint64
	// Task, Method and Preset are the names under which the experiment is shown.
	Task, Method, Preset string

	// Metrics are the numbers of Task.Metrics and Task.AfterTraining. Some may be infinite or NaN; see Metric.
	Metrics map[string]float64
	// Diverged says that training or prediction gave numbers that are not finite. There are no Metrics then; see Metric.
	Diverged bool
	// Reason says at which step training diverged, or at which row of which set prediction did, and how.
	Reason string

	Backend string
	Device  string
	Version string
	// WallSeconds is the time of the run that trained Batched experiments together, divided by Batched.
	WallSeconds float64
	Batched     int
	// ExamplesPerSecond is the speed of the training of all these networks together, without compilation; 0 where it was
	// over before it was known.
	ExamplesPerSecond float64
	Finished          time.Time
	// Experiment is the experiment; nil in a result that was read from a store without it. See Of.
	Experiment *Experiment

	predictions *Predictions // nil where a store has them
	file        string       // of the store; "" for none
	run         string       // the row of runs of the store
}

// Of returns the result with its experiment and the names that this has now. With the experiment its predictions know
// their likelihood and data.
func (r Result) Of(e Experiment) Result {
	r.Experiment, r.Task, r.Method, r.Preset = &e, e.Task.Name, e.Method.Name, e.Preset
	return r
}

// NotFinite are the metrics that are infinite or NaN.
func (r Result) NotFinite() map[string]float64 { return notFinite(r.Metrics) }

// Metric returns a number of Metrics. If there is none, it is NaN, and the error says why: it wraps train.ErrDiverged if the
// run diverged, and ErrNotFinite if the metric is NaN or infinite.
func (r Result) Metric(name string) (float64, error) {
	v, has := r.Metrics[name]
	if has && finite(v) && !r.Diverged {
		return v, nil
	}
	err := fmt.Errorf("it has %s", strings.Join(slices.Sorted(maps.Keys(r.Metrics)), ", "))
	switch {
	case !finite(v):
		err = fmt.Errorf("%v: %w", v, ErrNotFinite)
	case r.Diverged:
		err = fmt.Errorf("%w: %s", train.ErrDiverged, r.Reason)
	}
	return math.NaN(), fmt.Errorf("experiment: %s on %s, split %d, seed %d has no metric %q: %w", r.Method, r.Task, r.Split, r.Seed, name, err)
}

// ErrNoPredictions is wrapped by the error for a result whose predictions were not kept.
var ErrNoPredictions = errors.New("its predictions are not there")

// errPartial is the error for all metrics if a store keeps only a part of the predictions.
var errPartial = fmt.Errorf("the store keeps only what tables and pictures need, and not all predictions: %w", ErrNoPredictions)

// Predictions returns the predictions of the experiment, from memory or from the store. The error wraps ErrNoPredictions if
// they were not kept.
func (r Result) Predictions() (*Predictions, error) {
	p := r.predictions
	if p == nil {
		content, err := os.ReadFile(r.file)
		if errors.Is(err, fs.ErrNotExist) { // r.file is "" without a store
			return nil, fmt.Errorf("experiment: the result %s of %s on %s has no file %q: %w", r.ID, r.Method, r.Task, r.file, ErrNoPredictions)
		}
		if err != nil {
			return nil, fmt.Errorf("experiment: reading predictions: %w", err)
		}
		if p, err = decodePredictions(content); err != nil {
			return nil, fmt.Errorf("experiment: %s is no file of predictions, or damaged: %w; restore the file, or remove it and the result's row and run the experiment again", r.file, err)
		}
		if p.Experiment != r.ID {
			return nil, fmt.Errorf("experiment: the predictions in %s are of the experiment %s, not of %s", r.file, p.Experiment, r.ID)
		}
	}
	if r.Experiment != nil {
		p.of(*r.Experiment)
	}
	return p, nil
}

// With returns the result with predictions that are in no store, such as a mixture of other experiments' predictions.
func (r Result) With(p *Predictions) Result {
	r.predictions = p
	return r
}

// Difference names the metrics in which two results of one experiment differ, with both values; "" for none. It does not
// compare times.
func (r Result) Difference(other Result) string {
	if r.Diverged != other.Diverged {
		return fmt.Sprintf("diverged %t and %t", r.Diverged, other.Diverged)
	}
	names, parts := slices.AppendSeq(slices.Collect(maps.Keys(r.Metrics)), maps.Keys(other.Metrics)), []string(nil)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if a, b := r.text(name), other.text(name); a != b {
			parts = append(parts, fmt.Sprintf("%s %s and %s", name, cmp.Or(a, "none"), cmp.Or(b, "none")))
		}
	}
	return strings.Join(parts, ", ")
}

// text is a metric as a row has it, "" if there is none.
func (r Result) text(name string) string {
	if v, has := r.Metrics[name]; has {
		return number(v)
	}
	return ""
}

// number is the shortest text that is read as the same number.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// A groupLine is what all experiments of a group have in common, as a store keeps it once.
type groupLine struct {
	Group      string          `json:"group"`
	Task       string          `json:"task"`
	Method     string          `json:"method"`
	Preset     string          `json:"preset,omitempty"`
	Experiment json.RawMessage `json:"experiment"` // Experiment.Spec
}

// The metrics of a result, by their names in the store. The package of the image study adds metrics of predictions out of
// distribution, such as "ood_svhn_auroc_energy".
const (
	MetricNLL  = "nll"  // negative log likelihood in nats; of a regression in the target's own units
	MetricRMSE = "rmse" // root mean squared error in the target's own units

	MetricCRPS     = "crps"       // continuous ranked probability score, in the target's own units
	MetricCoverage = "coverage95" // part of the targets inside central 95% intervals of the predictive distribution, 0 to 1
	MetricSpearman = "spearman"   // rank correlation of predicted variance and squared error; there if the variances differ

	MetricNoiseStd  = "noise_std" // standard deviation of the observation noise, in the target's own units
	MetricSharpness = "sharpness" // mean standard deviation of the target's predictive distribution, noise and function, in the target's own units

	MetricModelStd = "model_std" // mean standard deviation of the function at the test inputs, in the target's own units

	MetricAccuracy = "accuracy" // part of the test examples, 0 to 1
	MetricECE      = "ece10"    // expected calibration error with 10 bins
)

// Measure computes the given metrics, or else the task's, from kept predictions, without training.
// The result includes the numbers of Task.AfterTraining. If some are not finite, the error wraps ErrNotFinite, and all numbers
// are returned with it. If a store keeps only a part of the predictions, the task's metrics are an error that wraps
// ErrNoPredictions.
func (e Experiment) Measure(p *Predictions, list ...Metric) (map[string]float64, error) {
	if len(list) == 0 {
		if p.partial {
			return nil, e.wrap(errPartial)
		}
		list = e.Task.Metrics
	}
	all, err := measure(e, p, list)
	if bad := notFinite(all); err == nil && len(bad) > 0 {
		err = e.wrap(fmt.Errorf("metrics %v: %w", bad, ErrNotFinite))
	}
	return all, err
}

// measure is Measure by exactly these metrics, whose numbers need not be finite.
func measure(e Experiment, p *Predictions, list []Metric) (map[string]float64, error) {
	if p.Diverged {
		return nil, e.wrap(fmt.Errorf("the run diverged, so that there is nothing to measure: %w", ErrNotFinite))
	}
	p.of(e)
	before, all := p.hash(), maps.Collect(maps.All(p.Metrics))
	for _, metric := range list {
		var found map[string]float64
		if err := attempt(func() (err error) { found, err = metric(p); return err }); err != nil {
			return nil, e.wrap(fmt.Errorf("measuring: %w", err))
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if _, has := all[name]; has {
				return nil, e.wrap(fmt.Errorf("two metrics have the name %q; give one of them another", name))
			}
			all[name] = found[name]
		}
	}
	if p.hash() != before {
		return nil, e.wrap(errors.New("a metric changed the predictions, which other metrics and the store read; let it sort or scale a copy (slices.Clone)"))
	}
	return all, nil
}

// hash is a hash of what a store keeps of the predictions.
func (p *Predictions) hash() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, attempt(func() error { return p.write(h) })) // an error counts too
	return h.Sum64()
}

// SetMetric makes a Metric of a function that measures one set. It measures every set for which has is true, and gives
// the names of its numbers the set's name as a prefix, unless that is "test". If has is true for no set, that is an error.
func SetMetric(has func(s *Prediction) bool, measure func(p *Predictions, s *Prediction) (map[string]float64, error)) Metric {
	return func(p *Predictions) (map[string]float64, error) {
		all, names := map[string]float64{}, []string(nil)
		for i := range p.Sets {
			s := &p.Sets[i]
			if !has(s) {
				names = append(names, s.Set)
				continue
			}
			found, err := measure(p, s)
			if err != nil {
				return nil, fmt.Errorf("the set %q: %w", s.Set, err)
			}
			prefix := s.Set + "_"
			if s.Set == testSet {
				prefix = ""
			}
			for name, value := range found {
				all[prefix+name] = value
			}
		}
		if len(names) == len(p.Sets) {
			return nil, fmt.Errorf("the metric fits none of the %d sets %q: they have no answers, or predictions of another kind, or a Method.Program returned none; leave the metric out", len(names), names)
		}
		return all, nil
	}
}

// Regression measures predictions of real targets on every set with targets, in the target's own units. What it measures
// depends on the likelihood:
//
//	mixtures of Gaussians                  "nll", "rmse", "crps", "coverage95", "sharpness", "noise_std", "model_std", and
//	                                       "spearman", where the deviations differ
//	other distributions, such as           "nll", "coverage95", and "rmse" of the mean
//	likelihood.StudentT
//	likelihood.Quantiles                   "pinball", the loss that they are trained by, "coverage", the part of the
//	                                       targets from the lowest to the highest level, and "crossed", the part of
//	                                       examples whose quantiles crossed and were sorted
//	a likelihood that says no more         "nll"
func Regression(p *Predictions) (map[string]float64, error) {
	return SetMetric(func(s *Prediction) bool { return s.Targets != nil },
		func(p *Predictions, s *Prediction) (map[string]float64, error) {
			if s.Mean != nil {
				return mixtures(p, s)
			}
			if l, is := s.Likelihood.(likelihood.Quantiles); is {
				return quantiles(l, p, s)
			}
			nll, err := s.NLL(p.Unit)
			if err != nil || s.Parameters == nil {
				return map[string]float64{MetricNLL: nll}, err
			}
			d, err := s.Predictive()
			if err != nil {
				return nil, err
			}
			mean, _, err := d.Moments()
			if err != nil {
				return nil, err
			}
			coverage, err := d.Coverage(s.Targets, 0.95)
			return map[string]float64{
				MetricNLL: nll, MetricCoverage: coverage, MetricRMSE: metrics.RMSE(mean, s.Targets) * p.Unit,
			}, err
		})(p)
}

// quantiles measures quantiles.
func quantiles(l likelihood.Quantiles, p *Predictions, s *Prediction) (map[string]float64, error) {
	d, err := s.Predictive()
	if err != nil {
		return nil, err
	}
	loss, err := d.Pinball(s.Targets)
	if err != nil {
		return nil, err
	}
	coverage, err := d.Between(s.Targets, l.Levels[0], l.Levels[len(l.Levels)-1])
	return map[string]float64{"pinball": loss * p.Unit, "coverage": coverage, "crossed": d.Crossed()}, err
}

// mixtures measures mixtures of Gaussians.
func mixtures(p *Predictions, s *Prediction) (map[string]float64, error) {
	nll, err := s.NLL(p.Unit)
	mean, std := s.Moments()
	variances := s.Variances()
	total, sharpness := make([]float64, len(std)), 0.0 // the target's deviations, of function and noise together
	for i, d := range std {
		noise := 0.0
		for _, component := range s.NoiseStd {
			noise += component[i] * component[i] / float64(len(s.NoiseStd))
		}
		total[i] = math.Sqrt(d*d + noise)
		sharpness += total[i]
	}
	found := map[string]float64{
		MetricRMSE:      metrics.RMSE(mean, s.Targets) * p.Unit,
		MetricNLL:       nll,
		MetricCRPS:      metrics.MonteCarloCRPS(s.Targets, s.Mean, variances, p.Unit),
		MetricCoverage:  metrics.MonteCarloCoverage(s.Targets, s.Mean, variances, 0.95),
		MetricSharpness: sharpness / float64(len(std)) * p.Unit,
		MetricNoiseStd:  s.NoiseDeviation() * p.Unit,
		MetricModelStd:  stat.Mean(std, nil) * p.Unit,
	}
	// With noise of the same variance everywhere, the function's deviations are in the order of the target's.
	if s.NoiseVaries() {
		std = total
	}
	if slices.Min(std) < slices.Max(std) {
		distance := make([]float64, len(mean))
		for i := range mean {
			distance[i] = math.Abs(mean[i] - s.Targets[i])
		}
		found[MetricSpearman] = metrics.Spearman(std, distance)
	}
	return found, err
}

// Classification measures class probabilities on every set with labels: "accuracy", "nll", "brier" and "ece10".
func Classification(p *Predictions) (map[string]float64, error) {
	return SetMetric(func(s *Prediction) bool { return s.Labels != nil && s.Probabilities != nil },
		func(p *Predictions, s *Prediction) (map[string]float64, error) {
			nll, err := s.NLL(1)
			return map[string]float64{
				MetricAccuracy: metrics.Accuracy(s.Probabilities, s.Width, s.Labels),
				MetricNLL:      nll,
				"brier":        metrics.Brier(s.Probabilities, s.Width, s.Labels),
				MetricECE:      metrics.NewOutcomes(s.Probabilities, s.Width, s.Labels).ECE(10),
			}, err
		})(p)
}
