package predict

import (
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
)

// NLL returns the mean negative log-likelihood in nats of the targets, [N, columns] row-major, or of the labels, [N];
// the other is nil. If targets were divided by a unit for training, pass it to get the NLL of the original targets,
// else 1. It is an error with likelihood.Quantiles, which has no density, and if unit is not positive.
func (p *Prediction) NLL(targets []float64, labels []int, unit float64) (float64, error) {
	if !(unit > 0) {
		return 0, fmt.Errorf("the unit of the targets is %g; it must be positive", unit)
	}
	if len(p.Mean) > 0 && labels == nil && len(targets) == len(p.Mean[0]) {
		return metrics.MonteCarloNLL(targets, p.Mean, p.Variances(), unit), nil
	}
	densities, err := p.LogDensities(targets, labels)
	if err != nil {
		return 0, err
	}
	columns := float64(len(targets)) / float64(len(densities)) // 0 for labels
	return -stat.Mean(densities, nil) + columns*math.Log(unit), nil
}

// LogDensities returns log p(y_i | x_i) of the targets, [N, columns] row-major, or of the labels, [N]; the other is
// nil. The result, [N], is the logarithm of the mean over the samples, in nats and the units of the training targets. A
// likelihood that has only an NLL is evaluated with the parameters that it had when the prediction was made. It is an error with likelihood.Quantiles.
func (p *Prediction) LogDensities(targets []float64, labels []int) ([]float64, error) {
	switch {
	case (targets == nil) == (labels == nil):
		return nil, errors.New("the log density of no answers, or of both targets and labels, was asked for; give one of them")
	case p.Probabilities != nil && labels != nil:
		if n := len(p.Probabilities) / p.Width; len(labels) != n {
			return nil, fmt.Errorf("there are %d labels for a prediction at %d inputs", len(labels), n)
		}
		for i, label := range labels {
			if label < 0 || label >= p.Width {
				return nil, fmt.Errorf("example %d has label %d; the model has classes 0 to %d", i, label, p.Width-1)
			}
		}
		found := metrics.CategoricalNLLs(p.Probabilities, p.Width, labels)
		floats.Scale(-1, found)
		return found, nil
	case p.members != nil:
		var each [][]float64
		for _, member := range p.members {
			logs, err := member.LogDensities(targets, labels)
			if err != nil {
				return nil, err
			}
			each = append(each, logs)
		}
		return logMeanExp(each), nil
	case p.model != nil:
		return p.byModel(targets, labels)
	}
	d, err := p.Predictive()
	if err != nil {
		return nil, err
	}
	return d.LogDensity(targets)
}

// saysNoMore says whether a likelihood has an NLL alone, for which a prediction keeps the outputs.
func saysNoMore(l likelihood.Likelihood) bool {
	switch l.(type) {
	case likelihood.Regression, likelihood.Distribution, likelihood.Classification, likelihood.Quantiles:
		return false
	}
	return true
}

// byModel are LogDensities by the model.
func (p *Prediction) byModel(targets []float64, labels []int) ([]float64, error) {
	m := p.model
	defer m.Lock()()
	n := len(p.Outputs[0]) / p.Width
	var answers *tensors.Tensor
	switch {
	case len(labels) == n:
		numbers := make([]int32, n)
		for i, label := range labels {
			numbers[i] = int32(label)
		}
		answers = tensors.FromFlatDataAndDimensions(numbers, n, 1)
	case len(targets) > 0 && len(targets)%n == 0:
		answers = params.FromFloat64(shapes.Make(m.DType, n, len(targets)/n), targets)
	default:
		return nil, fmt.Errorf("there are %d labels and %d targets for a prediction at %d inputs", len(labels), len(targets), n)
	}
	exec, err := model.NewExec(m.Backend, m.Store, func(root *model.Scope, outputs, answers *graph.Node) *graph.Node {
		return m.NLL(m.Scope(root), outputs, answers)
	})
	if err != nil {
		return nil, err
	}
	defer exec.Finalize()
	var logs [][]float64 // [M][N]
	for _, outputs := range p.Outputs {
		nll, err := exec.Call1(params.FromFloat64(shapes.Make(m.DType, n, p.Width), outputs), answers)
		if err != nil {
			return nil, fmt.Errorf("log p(y | x) by the likelihood of type %T: %w", m.Likelihood, nets.Cause(err))
		}
		each, err := params.ToFloat64(nll)
		if err != nil {
			return nil, err
		}
		floats.Scale(-1, each)
		logs = append(logs, each)
	}
	return logMeanExp(logs), nil
}

// logMeanExp is the logarithm of the mean of densities, whose logarithms are given, [M][N], at each of N inputs.
func logMeanExp(logs [][]float64) []float64 {
	found, draws := make([]float64, len(logs[0])), make([]float64, len(logs))
	for i := range found {
		for m := range logs {
			draws[m] = logs[m][i]
		}
		found[i] = floats.LogSumExp(draws) - math.Log(float64(len(draws)))
	}
	return found
}

// ConformalIntervals returns intervals [low, high] of a real target at each input, [N], by split conformal prediction with
// scaled residuals (Lei et al. 2018, "Distribution-free predictive inference for regression"):
//
//	m(x) ± q s(x),   q the ceil((n + 1) level)-th smallest |y_i - m(x_i)| / s(x_i) of n examples to calibrate by.
//
// m and s are the mean and the standard deviation of the predictive distribution, with the observation noise. calibration is a
// prediction by the same model at n other inputs, and targets are their targets, [n]. They must not have been trained on, nor used
// to choose an epoch or a setting. If its examples and the new one are exchangeable, the interval contains the new target with at least the probability
// level, whatever the model. This holds on average over inputs and calibration examples, not at each input, and not for other
// inputs, as in a hole of the data. With fewer than level/(1 - level) examples intervals are infinite. Targets and intervals
// are in the units of training. It is an error if level is not between 0 and 1, if numbers of examples differ, if there are no
// moments (Predictive), or if an s is not positive and finite, as of likelihood.StudentT with Nu <= 2.
func (p *Prediction) ConformalIntervals(calibration *Prediction, targets []float64, level float64) (low, high []float64, err error) {
	if !(level > 0 && level < 1) {
		return nil, nil, fmt.Errorf("the level of conformal intervals is %g; it must be between 0 and 1", level)
	}
	seen, seenStd, err := calibration.moments()
	if err != nil {
		return nil, nil, err
	}
	if len(targets) != len(seen) || len(targets) == 0 {
		return nil, nil, fmt.Errorf("there are %d targets to calibrate by for a prediction at %d inputs; give one for each, and at least one", len(targets), len(seen))
	}
	low, std, err := p.moments()
	if err != nil {
		return nil, nil, err
	}
	scores := make([]float64, len(targets))
	for i, y := range targets {
		scores[i] = math.Abs(y-seen[i]) / seenStd[i]
	}
	q := metrics.ConformalQuantile(scores, level)
	for i, m := range low {
		low[i], high = m-q*std[i], append(high, m+q*std[i])
	}
	return low, high, nil
}

// moments returns the predictive distribution's mean and standard deviation, which is positive and finite.
func (p *Prediction) moments() (mean, std []float64, err error) {
	d, err := p.Predictive()
	if err == nil {
		mean, std, err = d.Moments()
	}
	for i, s := range std {
		if !(s > 0) || math.IsInf(s, 1) {
			return nil, nil, fmt.Errorf("the standard deviation of the target at input %d is %g; conformal intervals need one that is positive and finite", i, s)
		}
	}
	return mean, std, err
}
