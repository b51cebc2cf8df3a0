package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/predict"
)

// Predictions are what the networks of one experiment say of all its sets: everything that a Metric needs.
type Predictions struct {
	Experiment string // the experiment's identity
	Split      int    // the split of the data
	Sets       []Prediction
	// Diverged says that training or prediction gave numbers that are not finite. Sets may then be missing.
	Diverged bool
	// A target t stands for t Unit + Zero in the data's own units.
	Unit, Zero float64
	// Inspected is what Task.Inspect measured.
	Inspected map[string]float64

	experiment *Experiment // nil where it is not known
	probed     bool        // whether Task.Probe was asked, which may have nothing to say
}

// A Prediction is the prediction of one set, in the network's units, with the answers where the set has some.
type Prediction struct {
	Set     string
	Targets []float64
	Labels  []int
	// Prediction has the draws: a mixture of Gaussians, the parameters of another distribution, class probabilities, or the
	// outputs of the networks, whichever the likelihood says of its outputs. See predict.Prediction.
	predict.Prediction
	// LogLikelihood is log p(y_i | x_i), the logarithm of the mean over the draws, [N]. It is kept where Prediction has
	// outputs alone, whose meaning only the likelihood knows, and where there are answers. See LogDensities.
	LogLikelihood []float64
	// Extra are the numbers of Task.Probe, by their names, [N] each.
	Extra map[string][]float64

	likelihood likelihood.Likelihood // nil where the experiment is not known
}

// Set returns the prediction of a set, or an error that names the sets that there are.
func (p *Predictions) Set(name string) (*Prediction, error) {
	var names []string
	for i := range p.Sets {
		if p.Sets[i].Set == name {
			return &p.Sets[i], nil
		}
		names = append(names, p.Sets[i].Set)
	}
	return nil, fmt.Errorf("experiment: there are no predictions of a set %q; there are some of %s", name, strings.Join(names, ", "))
}

// Data loads the data of the experiment. It is an error where the predictions were read without their experiment.
func (p *Predictions) Data(ctx context.Context) (Data, error) {
	if p.experiment == nil {
		return Data{}, errors.New("experiment: these predictions were read from a file without their experiment, and so have no data; use Store.Predictions or Measure")
	}
	return p.experiment.Task.Data.Load(ctx, p.experiment.Split)
}

// of tells the predictions which experiment made them, and with it their likelihood and data.
func (p *Predictions) of(e Experiment) {
	p.experiment = &e
	for i := range p.Sets {
		p.Sets[i].likelihood = e.Task.Likelihood
	}
}

// NLL is the mean negative log-likelihood of the answers, in nats, whatever the likelihood. unit is the size of a
// target of 1 in the data's own units, in which the density of real targets then is. Quantiles have no likelihood; of
// them it is an error.
func (p *Prediction) NLL(unit float64) (float64, error) {
	switch {
	case p.Mean != nil && p.Targets != nil:
		return metrics.MonteCarloNLL(p.Targets, p.Mean, p.Variances(), unit)
	case p.Probabilities != nil && p.Labels != nil:
		return metrics.CategoricalNLL(p.Probabilities, p.Width, p.Labels)
	}
	densities, err := p.LogDensities()
	if err != nil {
		return 0, err
	}
	columns := float64(len(p.Targets)) / float64(len(densities)) // 0 for labels
	return -stat.Mean(densities, nil) + columns*math.Log(unit), nil
}

// LogDensities are log p(y_i | x_i) of each example, the logarithm of the mean over the draws, [N], in the network's
// units and whatever the likelihood. It is an error for a set without answers, and for quantiles.
func (p *Prediction) LogDensities() ([]float64, error) {
	switch {
	case p.LogLikelihood != nil:
		return p.LogLikelihood, nil
	case p.Targets != nil:
		d, err := p.Predictive()
		if err != nil {
			return nil, err
		}
		return d.LogDensity(p.Targets)
	case p.Labels != nil && p.Probabilities != nil:
		found := make([]float64, len(p.Labels))
		for i, label := range p.Labels {
			found[i] = math.Log(p.Probabilities[i*p.Width+label])
		}
		return found, nil
	}
	return nil, fmt.Errorf("experiment: the set %q has no answers", p.Set)
}

// Predictive is the predictive distribution of a real target: its densities, quantiles, moments, coverage and draws, in
// the network's units. It is an error for other targets, and for predictions that were read without their experiment.
func (p *Prediction) Predictive() (*predict.Predictive, error) {
	if p.likelihood == nil {
		return nil, errors.New("experiment: these predictions were read from a file without their experiment, and so have no likelihood; use Store.Predictions or Measure")
	}
	return p.Prediction.Predictive(p.likelihood)
}

// loss is what early stopping compares: the NLL, or of quantiles their pinball loss.
func (p *Prediction) loss() (float64, error) {
	if l, is := p.likelihood.(likelihood.Quantiles); is {
		return p.pinball(l)
	}
	return p.NLL(1)
}

// pinball is the pinball loss of the mean quantiles, summed over the levels and averaged over the examples.
func (p *Prediction) pinball(l likelihood.Quantiles) (float64, error) {
	d, err := p.Predictive()
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, level := range l.Levels {
		quantile, err := d.Quantile(level)
		if err != nil {
			return 0, err
		}
		for i, y := range p.Targets {
			sum += max(level*(y-quantile[i]), (level-1)*(y-quantile[i])) / float64(len(p.Targets))
		}
	}
	return sum, nil
}

// NoiseDeviation is the root of the mean noise variance of a mixture, over components and inputs. It is the deviation of
// noise that is the same at all inputs.
func (p *Prediction) NoiseDeviation() float64 {
	var noise []float64
	for _, component := range p.NoiseStd {
		if p.noiseVaries() {
			noise = append(noise, component...)
		} else {
			noise = append(noise, component[0])
		}
	}
	return floats.Norm(noise, 2) / math.Sqrt(float64(len(noise)))
}

// noiseVaries says whether the noise of some component differs between inputs, as of likelihood.Heteroscedastic.
func (p *Prediction) noiseVaries() bool {
	return slices.ContainsFunc(p.NoiseStd, func(component []float64) bool { return slices.Min(component) < slices.Max(component) })
}

// deviations are the standard deviations of the target at each input: of the noise, and of the function, whose
// deviations are given.
func (p *Prediction) deviations(function []float64) []float64 {
	all := make([]float64, len(function))
	for i, d := range function {
		noise := 0.0
		for _, component := range p.NoiseStd {
			noise += component[i] * component[i] / float64(len(p.NoiseStd))
		}
		all[i] = math.Sqrt(d*d + noise)
	}
	return all
}

// FunctionQuantile is a quantile of the function of a regression at each input, [N], without observation noise. If the
// mixture has one component with a deviation, it is the Gaussian's quantile, and else the quantile of the draws. See
// Predictive for quantiles of the target.
func (p *Prediction) FunctionQuantile(q float64) []float64 {
	curve, draws := make([]float64, len(p.Mean[0])), make([]float64, len(p.Mean))
	for i := range curve {
		if p.Std != nil {
			curve[i] = distuv.Normal{Mu: p.Mean[0][i], Sigma: p.Std[0][i]}.Quantile(q)
			continue
		}
		for m := range p.Mean {
			draws[m] = p.Mean[m][i]
		}
		slices.Sort(draws)
		curve[i] = stat.Quantile(q, stat.LinInterp, draws, nil)
	}
	return curve
}

// finite says whether all numbers are finite, and no variance of a mixture is so small that the log density of a target
// of order 1 is infinite.
func (p *Prediction) finite() bool {
	infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v*v, 0) }
	for _, values := range slices.Concat(p.Mean, p.Std, p.NoiseStd, p.Outputs, p.Parameters, [][]float64{p.Probabilities, p.MutualInformation, p.LogLikelihood}) {
		if slices.ContainsFunc(values, infinite) {
			return false
		}
	}
	for _, layer := range p.Energies {
		if slices.ContainsFunc(layer.Mean, infinite) || slices.ContainsFunc(layer.One, infinite) {
			return false
		}
	}
	for m, variances := range p.Variances() {
		for i, v := range variances {
			if infinite((1 + math.Abs(p.Mean[m][i])) / math.Sqrt(v)) {
				return false
			}
		}
	}
	return true
}
