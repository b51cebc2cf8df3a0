package predict

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/likelihood"
)

// A Predictive is the posterior predictive distribution of a real target at each of N inputs,
//
//	p(y | x_i) = 1/M sum_m p(y | theta_m(x_i)),
//
// where theta_m(x_i) are the parameters of the likelihood's distribution in sample m. It is in the units of the
// training targets.
type Predictive struct {
	n  int
	at func(i int) []likelihood.Univariate // the M components at an input
	// Of likelihood.Quantiles, which has no components, the quantiles at its levels.
	levels    []float64
	quantiles [][]float64 // [levels][N], ascending at each input
	crossed   int         // at how many inputs they were not
}

// Predictive returns the predictive distribution of a real target. With likelihood.Quantiles it has only quantiles,
// coverage and the pinball loss. It is an error if the likelihood is no likelihood.Regression, likelihood.Distribution
// or likelihood.Quantiles. A nil Likelihood is an error too, unless the prediction has a Mixture.
func (p *Prediction) Predictive() (*Predictive, error) {
	if len(p.Mean) > 0 {
		variances := p.Variances()
		return &Predictive{n: len(p.Mean[0]), at: func(i int) []likelihood.Univariate {
			all := make([]likelihood.Univariate, len(p.Mean))
			for m, mean := range p.Mean {
				all[m] = distuv.Normal{Mu: mean[i], Sigma: math.Sqrt(variances[m][i])}
			}
			return all
		}}, nil
	}
	switch l := p.Likelihood.(type) {
	case nil:
		return nil, errors.New("the prediction does not know its Likelihood, as one that was read from a file; set it to that of the model")
	case likelihood.Distribution:
		if len(p.Parameters) > 0 {
			return &Predictive{n: len(p.Parameters[0]) / p.Width, at: func(i int) []likelihood.Univariate {
				all := make([]likelihood.Univariate, len(p.Parameters))
				for m, theta := range p.Parameters {
					all[m] = l.Given(theta[i*p.Width : (i+1)*p.Width])
				}
				return all
			}}, nil
		}
	case likelihood.Quantiles:
		if len(p.Outputs) > 0 && p.Width == len(l.Levels) {
			return p.outputQuantiles(l.Levels), nil
		}
	case likelihood.Regression:
	default:
		return nil, fmt.Errorf("the likelihood of type %T says nothing of the distribution of a real target; one that does is a likelihood.Regression or a likelihood.Distribution, such as likelihood.StudentT", l)
	}
	return nil, fmt.Errorf("the prediction has nothing of a likelihood of type %T; give it the Likelihood of the model that made it", p.Likelihood)
}

// outputQuantiles are the means over the samples of the network's outputs, sorted at each input (Chernozhukov et al. 2010).
func (p *Prediction) outputQuantiles(levels []float64) *Predictive {
	d := &Predictive{n: len(p.Outputs[0]) / p.Width, levels: levels}
	for k := range levels {
		mean := make([]float64, d.n)
		for _, outputs := range p.Outputs {
			for i := range mean {
				mean[i] += outputs[i*p.Width+k] / float64(len(p.Outputs))
			}
		}
		d.quantiles = append(d.quantiles, mean)
	}
	row := make([]float64, len(levels))
	for i := range d.n {
		for k, mean := range d.quantiles {
			row[k] = mean[i]
		}
		if slices.IsSorted(row) {
			continue
		}
		d.crossed++
		slices.Sort(row)
		for k, mean := range d.quantiles {
			mean[i] = row[k]
		}
	}
	return d
}

// Crossed returns the fraction of the inputs at which the quantiles of a likelihood.Quantiles were not in ascending
// order and had to be sorted. It is 0 for other likelihoods.
func (d *Predictive) Crossed() float64 { return float64(d.crossed) / float64(d.n) }

var errNoDensity = errors.New("likelihood.Quantiles has quantiles at its Levels alone: no density or moments; for these give the model a likelihood.Distribution, such as likelihood.StudentT")

func (d *Predictive) checkTargets(targets []float64) error {
	if len(targets) != d.n {
		return fmt.Errorf("there are %d targets for a prediction at %d inputs", len(targets), d.n)
	}
	return nil
}

// LogDensity returns log p(y_i | x_i) of each target in nats, [N]: the logarithm of the mean density over the samples,
// or of the mean probability of a count. If targets were divided by s for training, log densities of the original
// targets are smaller by log s. It is an error with likelihood.Quantiles, and if there are not N targets.
func (d *Predictive) LogDensity(targets []float64) ([]float64, error) {
	if d.at == nil {
		return nil, errNoDensity
	}
	if err := d.checkTargets(targets); err != nil {
		return nil, err
	}
	all := make([]float64, d.n)
	for i, y := range targets {
		var logs []float64
		for _, c := range d.at(i) {
			logs = append(logs, c.LogProb(y))
		}
		all[i] = floats.LogSumExp(logs) - math.Log(float64(len(logs)))
	}
	return all, nil
}

// cdf is that of a mixture.
func cdf(components []likelihood.Univariate, y float64) float64 {
	sum := 0.0
	for _, c := range components {
		sum += c.CDF(y)
	}
	return sum / float64(len(components))
}

// Moments returns the mean and the standard deviation of the target at each input, [N], with the observation noise.
// They are NaN or infinite if the distribution has none. It is an error with likelihood.Quantiles.
func (d *Predictive) Moments() (mean, std []float64, err error) {
	if d.at == nil {
		return nil, nil, errNoDensity
	}
	mean, std = make([]float64, d.n), make([]float64, d.n)
	for i := range d.n {
		components := d.at(i)
		means, within := make([]float64, len(components)), 0.0
		for m, c := range components {
			means[m] = c.Mean()
			within += c.Variance() / float64(len(components))
		}
		average, between := stat.PopMeanVariance(means, nil)
		mean[i], std[i] = average, math.Sqrt(between+within)
	}
	return mean, std, nil
}

// Quantile returns the smallest y with p(Y <= y | x_i) >= level at each input, [N]; level is above 0 and below 1. With
// likelihood.Quantiles it returns the mean of the network's quantile over the samples, and level must be one of Levels;
// quantiles that cross are sorted (see Crossed).
func (d *Predictive) Quantile(level float64) ([]float64, error) {
	if !(level > 0 && level < 1) {
		return nil, fmt.Errorf("the quantile at level %g was asked for; it must be above 0 and below 1", level)
	}
	if d.at == nil {
		k := slices.IndexFunc(d.levels, func(a float64) bool { return math.Abs(a-level) <= 0x1p-52 }) // of (1+a)/2
		if k < 0 {
			return nil, fmt.Errorf("the likelihood has no quantile at level %g, but at its Levels %v; add the level before training", level, d.levels)
		}
		return slices.Clone(d.quantiles[k]), nil
	}
	all := make([]float64, d.n)
	for i := range all {
		var err error
		if all[i], err = quantile(d.at(i), level); err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
	}
	return all, nil
}

var errNoQuantile = errors.New("the distribution has no such quantile: its parameters are NaN or out of range")

// quantile finds the quantile of a mixture by bisection, until no float is between the bounds. A count's CDF may step
// one float early, where gonum adds 1 to its argument.
func quantile(components []likelihood.Univariate, level float64) (float64, error) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range components {
		low, high = math.Min(low, c.Mean()), math.Max(high, c.Mean())
	}
	if math.IsNaN(low) || math.IsInf(low, 0) || math.IsNaN(high) || math.IsInf(high, 0) {
		low, high = -1, 1 // heavy tails have no mean
	}
	for step := 1.0; !(cdf(components, low) < level); step *= 2 {
		if low -= step; math.IsInf(low, 0) {
			return 0, errNoQuantile
		}
	}
	for step := 1.0; !(cdf(components, high) >= level); step *= 2 {
		if high += step; math.IsInf(high, 0) {
			return 0, errNoQuantile
		}
	}
	for {
		middle := low/2 + high/2
		if middle <= low || middle >= high {
			break
		}
		if cdf(components, middle) >= level {
			high = middle
		} else {
			low = middle
		}
	}
	if whole := math.Round(high); math.Nextafter(high, whole) == whole {
		return whole, nil
	}
	return high, nil
}

// Pinball returns the mean pinball loss of the targets, summed over the levels (see likelihood.Quantiles.NLL), in the
// units of the training targets. It is an error with any other likelihood.
func (d *Predictive) Pinball(targets []float64) (float64, error) {
	if d.levels == nil {
		return 0, errors.New("only likelihood.Quantiles has a pinball loss, at its Levels; other distributions have LogDensity and quantiles at all levels")
	}
	if err := d.checkTargets(targets); err != nil {
		return 0, err
	}
	loss := 0.0
	for k, level := range d.levels {
		for i, y := range targets {
			u := y - d.quantiles[k][i]
			loss += max(level*u, (level-1)*u) / float64(len(targets))
		}
	}
	return loss, nil
}

// Coverage returns the fraction of the targets in the central interval of the given level, from Quantile((1-level)/2)
// to Quantile((1+level)/2), bounds included. For a calibrated prediction it is about the level. For counts it may be
// higher, because their intervals contain at least the level.
func (d *Predictive) Coverage(targets []float64, level float64) (float64, error) {
	return d.Between(targets, (1-level)/2, (1+level)/2)
}

// Between returns the fraction of the targets from Quantile(low) to Quantile(high), bounds included.
func (d *Predictive) Between(targets []float64, low, high float64) (float64, error) {
	if err := d.checkTargets(targets); err != nil {
		return 0, err
	}
	from, err := d.Quantile(low)
	if err != nil {
		return 0, err
	}
	to, err := d.Quantile(high)
	if err != nil {
		return 0, err
	}
	inside := 0
	for i, y := range targets {
		if from[i] <= y && y <= to[i] {
			inside++
		}
	}
	return float64(inside) / float64(len(targets)), nil
}
