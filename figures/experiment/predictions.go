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

	load func() (Data, error) // nil where the experiment is not known
}

// A Prediction is the prediction of one set, in the network's units, with the answers where the set has some.
type Prediction struct {
	Set     string
	Targets []float64
	Labels  []int
	// Prediction has the draws: a mixture of Gaussians, class probabilities, or the outputs of the networks, whichever
	// the likelihood says of its outputs. See predict.Prediction.
	predict.Prediction
	// LogDensity is log p(y_i | x_i), the logarithm of the mean over the draws, [N]. It is kept where Prediction has
	// outputs alone, whose likelihood only the network knows, and where there are answers. See LogDensities.
	LogDensity []float64
	// Extra are the numbers of Task.Probe, by their names, [N] each.
	Extra map[string][]float64
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
func (p *Predictions) Data() (Data, error) {
	if p.load == nil {
		return Data{}, errors.New("experiment: these predictions were read from a file without their experiment, and so have no data; use Store.Predictions or Measure")
	}
	return p.load()
}

// load loads the data of the experiment.
func (e Experiment) load(ctx context.Context) func() (Data, error) {
	return func() (Data, error) { return e.Task.Data.Load(ctx, e.Split) }
}

// NLL is the mean negative log-likelihood of the answers, in nats, whatever the likelihood. unit is the size of a
// target of 1 in the data's own units, in which the density of real targets then is.
func (p *Prediction) NLL(unit float64) (float64, error) {
	switch {
	case p.Mean != nil && p.Targets != nil:
		return metrics.MonteCarloNLL(p.Targets, p.Mean, p.Variances(), unit)
	case p.Probabilities != nil && p.Labels != nil:
		return metrics.CategoricalNLL(p.Probabilities, p.Width, p.Labels)
	case p.LogDensity != nil:
		columns := float64(len(p.Targets)) / float64(len(p.LogDensity)) // 0 for labels
		return -stat.Mean(p.LogDensity, nil) + columns*math.Log(unit), nil
	}
	return 0, fmt.Errorf("experiment: the set %q has no answers", p.Set)
}

// LogDensities are log p(y_i | x_i) of each example, the logarithm of the mean over the draws, [N], in the network's
// units and whatever the likelihood. They are nil for a set without answers.
func (p *Prediction) LogDensities() []float64 {
	switch {
	case p.Mean != nil && p.Targets != nil:
		variances, found, draws := p.Variances(), make([]float64, len(p.Targets)), make([]float64, len(p.Mean))
		for i, y := range p.Targets {
			for m := range draws {
				draws[m] = distuv.Normal{Mu: p.Mean[m][i], Sigma: math.Sqrt(variances[m][i])}.LogProb(y)
			}
			found[i] = floats.LogSumExp(draws) - math.Log(float64(len(draws)))
		}
		return found
	case p.Probabilities != nil && p.Labels != nil:
		found := make([]float64, len(p.Labels))
		for i, label := range p.Labels {
			found[i] = math.Log(p.Probabilities[i*p.Width+label])
		}
		return found
	}
	return p.LogDensity
}

// NoiseDeviation is the root of the mean noise variance of a mixture's components at the first input: the deviation of
// a noise that is the same at all inputs.
func (p *Prediction) NoiseDeviation() float64 {
	var noise []float64
	for _, component := range p.NoiseStd {
		noise = append(noise, component[0])
	}
	return floats.Norm(noise, 2) / math.Sqrt(float64(len(noise)))
}

// Quantile is a quantile of the function of a regression at each input, [N], without observation noise: of the Gaussian
// where the mixture has one component with a deviation, and else of the draws.
func (p *Prediction) Quantile(q float64) []float64 {
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
	for _, values := range slices.Concat(p.Mean, p.Std, p.NoiseStd, p.Outputs, [][]float64{p.Probabilities, p.MutualInformation, p.LogDensity}) {
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
