package predict

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/likelihood"
)

// components returns the number of inputs, and the components at each of them: the
// distributions of the samples, which have equal weights. They draw from src.
func (p *Prediction) components(src rand.Source) (n int, at func(i int) []likelihood.Univariate, err error) {
	if len(p.Mean) > 0 {
		variances := p.Variances()
		return len(p.Mean[0]), func(i int) []likelihood.Univariate {
			all := make([]likelihood.Univariate, len(p.Mean))
			for m, mean := range p.Mean {
				all[m] = distuv.Normal{Mu: mean[i], Sigma: math.Sqrt(variances[m][i]), Src: src}
			}
			return all
		}, nil
	}
	l, is := p.Likelihood.(likelihood.Distribution)
	if !is || len(p.Parameters) == 0 || p.Width < 1 {
		return 0, nil, fmt.Errorf("a prediction with the likelihood of type %T says nothing of the distribution of a real target; give the model a likelihood.Regression or likelihood.Distribution, such as likelihood.StudentT", p.Likelihood)
	}
	return len(p.Parameters[0]) / p.Width, func(i int) []likelihood.Univariate {
		all := make([]likelihood.Univariate, len(p.Parameters))
		for m, theta := range p.Parameters {
			all[m] = l.Given(theta[i*p.Width:(i+1)*p.Width], src)
		}
		return all
	}, nil
}

// each returns a number for each input, of its components and its target.
func (p *Prediction) each(targets []float64, number func(components []likelihood.Univariate, y float64) float64) ([]float64, error) {
	n, at, err := p.components(nil)
	if err != nil {
		return nil, err
	}
	if len(targets) != n {
		return nil, fmt.Errorf("there are %d targets for a prediction at %d inputs", len(targets), n)
	}
	all := make([]float64, n)
	for i, y := range targets {
		all[i] = number(at(i), y)
	}
	return all, nil
}

// LogDensity is log p(y_i | x_i) of each target, [N], in nats: the logarithm of the mean
// over the samples of the density, or of the probability of a count. Targets have the
// scale of those of the training; for targets divided by a standard deviation s, the
// density of the original ones is lower by log s.
func (p *Prediction) LogDensity(targets []float64) ([]float64, error) {
	return p.each(targets, func(components []likelihood.Univariate, y float64) float64 {
		logs := make([]float64, len(components))
		for m, c := range components {
			logs[m] = c.LogProb(y)
		}
		return floats.LogSumExp(logs) - math.Log(float64(len(logs)))
	})
}

// CDF is p(Y <= y_i | x_i) for each target, [N].
func (p *Prediction) CDF(targets []float64) ([]float64, error) { return p.each(targets, cdf) }

// cdf is that of a mixture.
func cdf(components []likelihood.Univariate, y float64) float64 {
	sum := 0.0
	for _, c := range components {
		sum += c.CDF(y)
	}
	return sum / float64(len(components))
}

// TargetMoments are the mean and the standard deviation of the target at each input,
// [N], the noise of the observation included. A heavy-tailed distribution may have
// none, and gives NaN or infinity.
func (p *Prediction) TargetMoments() (mean, std []float64, err error) {
	n, at, err := p.components(nil)
	if err != nil {
		return nil, nil, err
	}
	mean, std = make([]float64, n), make([]float64, n)
	for i := range n {
		components := at(i)
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

// Draws are one draw of the target from each sample at each input, [M][N], a function
// of the seed.
func (p *Prediction) Draws(seed uint64) ([][]float64, error) {
	n, at, err := p.components(rand.NewPCG(seed, drawStream))
	if err != nil {
		return nil, err
	}
	var all [][]float64
	for i := range n {
		for m, c := range at(i) {
			if i == 0 {
				all = append(all, make([]float64, n))
			}
			all[m][i] = c.Rand()
		}
	}
	return all, nil
}

// drawStream keeps draws of targets apart from other uses of a seed.
const drawStream = 0x647261777300

// Quantile is the smallest y with p(Y <= y | x_i) >= level at each input, [N]. Of
// likelihood.Quantiles it is the mean over the samples of the network's quantile, and
// the level must be one of its Levels.
func (p *Prediction) Quantile(level float64) ([]float64, error) {
	if !(level > 0 && level < 1) {
		return nil, fmt.Errorf("the quantile at level %g was asked for; it must be above 0 and below 1", level)
	}
	if l, is := p.Likelihood.(likelihood.Quantiles); is {
		return p.outputQuantile(l, level)
	}
	n, at, err := p.components(nil)
	if err != nil {
		return nil, err
	}
	all := make([]float64, n)
	for i := range n {
		if all[i], err = quantile(at(i), level); err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
	}
	return all, nil
}

// outputQuantile is the mean over the samples of the output for a level.
func (p *Prediction) outputQuantile(l likelihood.Quantiles, level float64) ([]float64, error) {
	k := slices.IndexFunc(l.Levels, func(a float64) bool { return math.Abs(a-level) < 1e-12 })
	if k < 0 {
		return nil, fmt.Errorf("the quantile at level %g was asked for, and the likelihood has Levels %v; add the level before training", level, l.Levels)
	}
	var all []float64
	for _, outputs := range p.Outputs {
		if all == nil {
			all = make([]float64, len(outputs)/p.Width)
		}
		for i := range all {
			all[i] += outputs[i*p.Width+k] / float64(len(p.Outputs))
		}
	}
	return all, nil
}

var errNoQuantile = errors.New("the distribution has no such quantile: its parameters are no numbers, or beyond the range of numbers")

// quantile finds the quantile of a mixture by bisection, to twelve digits.
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
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Max(math.Abs(a), 1e-3) }
	for !near(high, low) {
		if middle := low + (high-low)/2; cdf(components, middle) >= level {
			high = middle
		} else {
			low = middle
		}
	}
	if whole := math.Round(high); near(high, whole) {
		return whole, nil // of counts
	}
	return high, nil
}

// Coverage is the part of the targets within the central interval of the given level,
// from Quantile((1-level)/2) to Quantile((1+level)/2), both included: of a calibrated
// prediction about the level. Of counts it may be more, as their intervals contain at
// least the level.
func (p *Prediction) Coverage(targets []float64, level float64) (float64, error) {
	low, err := p.Quantile((1 - level) / 2)
	if err != nil {
		return 0, err
	}
	high, err := p.Quantile((1 + level) / 2)
	if err != nil {
		return 0, err
	}
	if len(targets) != len(low) {
		return 0, fmt.Errorf("there are %d targets for a prediction at %d inputs", len(targets), len(low))
	}
	inside := 0
	for i, y := range targets {
		if low[i] <= y && y <= high[i] {
			inside++
		}
	}
	return float64(inside) / float64(len(targets)), nil
}
