package experiment

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
)

// The metrics of a result, by their names in the store. Those of predictions out of distribution, such as
// "ood_svhn_auroc_energy", are made by the package of the image study.
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

// attempt turns what a metric panics with into an error.
func attempt(metric Metric, p *Predictions) (found map[string]float64, err error) {
	defer recovered(&err)
	return metric(p)
}

// Measure computes metrics from kept predictions: the given ones, or else the metrics of the experiment's task. It trains
// nothing. The numbers of Task.After are among the results. If some are not finite, the error wraps ErrNotFinite; all numbers are
// returned beside it.
func Measure(e Experiment, p *Predictions, list ...Metric) (map[string]float64, error) {
	if len(list) == 0 {
		list = e.Task.Metrics
	}
	all, err := measure(e, p, list)
	if bad := notFinite(all); err == nil && len(bad) > 0 {
		err = e.problem(fmt.Errorf("metrics %v: %w", bad, ErrNotFinite))
	}
	return all, err
}

// measure is Measure by exactly these metrics, whose numbers need not be finite.
func measure(e Experiment, p *Predictions, list []Metric) (map[string]float64, error) {
	if p.Diverged {
		return nil, e.problem(fmt.Errorf("the run diverged, so that there is nothing to measure: %w", ErrNotFinite))
	}
	p.of(e)
	all := map[string]float64{}
	maps.Copy(all, p.Inspected)
	for _, metric := range list {
		found, err := attempt(metric, p)
		if err != nil {
			return nil, e.problem(fmt.Errorf("measuring: %w", err))
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if _, has := all[name]; has {
				return nil, e.problem(fmt.Errorf("two metrics have the name %q; give one of them another", name))
			}
			all[name] = found[name]
		}
	}
	return all, nil
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

// eceBins is the number of bins of the calibration error.
const eceBins = 10

// Classification measures class probabilities on every set with labels: "accuracy", "nll", "brier" and "ece10".
func Classification(p *Predictions) (map[string]float64, error) {
	return SetMetric(func(s *Prediction) bool { return s.Labels != nil && s.Probabilities != nil },
		func(p *Predictions, s *Prediction) (map[string]float64, error) {
			nll, err := s.NLL(1)
			return map[string]float64{
				MetricAccuracy: metrics.Accuracy(s.Probabilities, s.Width, s.Labels),
				MetricNLL:      nll,
				"brier":        metrics.Brier(s.Probabilities, s.Width, s.Labels),
				MetricECE:      metrics.NewOutcomes(s.Probabilities, s.Width, s.Labels).ECE(eceBins),
			}, err
		})(p)
}
