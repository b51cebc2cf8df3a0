package predict

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
)

// A Mixture is a mixture of M Gaussians with equal weights at each of N inputs,
// the predictive distribution of a regression:
//
//	p(y | x_i) = 1/M sum_m N(y | Mean[m][i], Std[m][i]^2 + NoiseStd[m][i]^2).
type Mixture struct {
	// Mean holds the components' means, [M][N]: the values of the network's function in sample m.
	Mean [][]float64
	// Std is the standard deviation of the function within a component, [M][N]; nil if each component is a single
	// function.
	Std [][]float64
	// NoiseStd is the standard deviation of the observation noise, [M][N]. Rows may share memory.
	NoiseStd [][]float64
}

// Moments returns the mean and the standard deviation of the function at each input, [N], without observation noise.
// The standard deviation divides by M, not M-1. Both are nil if there are no components, as for a classification. It
// panics if components have different lengths; Mix refuses such components.
func (m Mixture) Moments() (mean, std []float64) {
	if len(m.Mean) == 0 {
		return nil, nil
	}
	n := len(m.Mean[0])
	mean, std = make([]float64, n), make([]float64, n)
	count := float64(len(m.Mean))
	for _, sample := range m.Mean {
		for i, v := range sample {
			mean[i] += v / count
		}
	}
	for _, sample := range m.Mean {
		for i, v := range sample {
			std[i] += (v - mean[i]) * (v - mean[i]) / count
		}
	}
	for i := range std {
		std[i] = math.Sqrt(std[i])
	}
	for _, within := range m.Std {
		for i, s := range within {
			std[i] = math.Sqrt(std[i]*std[i] + s*s/count)
		}
	}
	return mean, std
}

// Variances returns the variance of the target in each component, [M][N]; metrics.MonteCarloNLL takes it with Mean. It
// panics if components have different lengths; Mix refuses such components.
func (m Mixture) Variances() [][]float64 {
	all := make([][]float64, len(m.Mean))
	for k, noise := range m.NoiseStd {
		all[k] = make([]float64, len(noise))
		for i, s := range noise {
			all[k][i] = s * s
			if m.Std != nil {
				all[k][i] += m.Std[k][i] * m.Std[k][i]
			}
		}
	}
	return all
}

// FunctionQuantile returns the quantile at level q of the function at each input, [N], without observation noise. If
// components have a Std, it is the quantile of the mixture of Gaussians. Otherwise it is the quantile of the M samples,
// interpolated linearly. Prediction.Predictive has quantiles of the target. It panics if there are no components.
func (m Mixture) FunctionQuantile(q float64) []float64 {
	curve, samples := make([]float64, len(m.Mean[0])), make([]float64, len(m.Mean))
	for i := range curve {
		var components []likelihood.Univariate
		for k, mean := range m.Mean {
			samples[k] = mean[i]
			if m.Std != nil {
				components = append(components, distuv.Normal{Mu: mean[i], Sigma: m.Std[k][i]})
			}
		}
		switch len(components) {
		case 0:
			slices.Sort(samples)
			curve[i] = stat.Quantile(q, stat.LinInterp, samples, nil)
		case 1:
			curve[i] = distuv.Normal{Mu: m.Mean[0][i], Sigma: m.Std[0][i]}.Quantile(q)
		default:
			var err error
			if curve[i], err = quantile(components, q); err != nil {
				curve[i] = math.NaN()
			}
		}
	}
	return curve
}

// NoiseDeviation returns the square root of the noise variance, averaged over components and inputs.
func (m Mixture) NoiseDeviation() float64 {
	var noise []float64
	varies := m.NoiseVaries()
	for _, component := range m.NoiseStd {
		if !varies {
			component = component[:1]
		}
		noise = append(noise, component...)
	}
	return floats.Norm(noise, 2) / math.Sqrt(float64(len(noise)))
}

// NoiseVaries reports whether the noise of a component differs between inputs, as with likelihood.Heteroscedastic.
func (m Mixture) NoiseVaries() bool {
	return slices.ContainsFunc(m.NoiseStd, func(component []float64) bool { return slices.Min(component) < slices.Max(component) })
}

// Mix returns the mixture of several models' predictions at the same inputs, such as the members of an ensemble. All
// components have the same weight. If only some members have a Std, it is 0 for the others. It is an error if a member
// has no components, or has another number of inputs than the first.
func Mix(members ...Mixture) (Mixture, error) {
	var all Mixture
	if len(members) == 0 {
		return all, errNoMembers
	}
	within := slices.ContainsFunc(members, func(m Mixture) bool { return m.Std != nil })
	for i, m := range members {
		if len(m.Mean) == 0 || len(m.NoiseStd) != len(m.Mean) || m.Std != nil && len(m.Std) != len(m.Mean) {
			return Mixture{}, fmt.Errorf("member %d of the ensemble has %d components with %d deviations of the noise and %d within; want one of each, of a regression", i, len(m.Mean), len(m.NoiseStd), len(m.Std))
		}
		n := len(members[0].Mean[0])
		if within && m.Std == nil {
			m.Std = slices.Repeat([][]float64{make([]float64, n)}, len(m.Mean))
		}
		for _, component := range slices.Concat(m.Mean, m.NoiseStd, m.Std) {
			if len(component) != n {
				return Mixture{}, fmt.Errorf("member %d of the ensemble predicts at %d inputs, member 0 at %d", i, len(component), n)
			}
		}
		all.Mean = append(all.Mean, m.Mean...)
		all.Std = append(all.Std, m.Std...)
		all.NoiseStd = append(all.NoiseStd, m.NoiseStd...)
	}
	return all, nil
}

var errNoMembers = errors.New("an ensemble without members has no prediction")

// addMixture appends n inputs, of samples [M][n] with log-variances of the noise
// [M][n or more], or [M][1].
func (m *Mixture) addMixture(mean, logVariances [][]float64, n int) {
	noise := make([][]float64, len(mean))
	for k, row := range logVariances {
		if len(row) == 1 && k > 0 && row[0] == logVariances[k-1][0] {
			noise[k] = noise[k-1]
			continue
		}
		for _, v := range row[:min(n, len(row))] {
			noise[k] = append(noise[k], math.Exp(v/2))
		}
		if len(row) == 1 {
			noise[k] = slices.Repeat(noise[k], n)
		}
	}
	appendEach(&m.Mean, mean)
	appendEach(&m.NoiseStd, noise)
}

// Ensemble returns the prediction of an ensemble: the mixture, with equal weights, of its members' predictions at the
// same inputs. All members must have the same likelihood. For a classification, Outputs are those of the first member
// alone, and so are Energies always. The mutual information of label and network is
//
//	I = H(mean_m p_m) - mean_m H(p_m) + mean_m I_m,
//
// in nats, where H is the entropy and I_m the mutual information of label and sample in member m. It is an error if there
// is no member, or if one has another likelihood or number of inputs than the first or, for a regression, of draws.
func Ensemble(members ...*Prediction) (*Prediction, error) {
	if len(members) == 0 {
		return nil, errNoMembers
	}
	for i, p := range members {
		if p == nil || !reflect.DeepEqual(p.Likelihood, members[0].Likelihood) &&
			fmt.Sprintf("%#v", p.Likelihood) != fmt.Sprintf("%#v", members[0].Likelihood) { // the text has equal functions, which are never deeply equal
			return nil, fmt.Errorf("member %d of the ensemble is nil, or by another likelihood than member 0", i)
		}
	}
	all := *members[0]
	if len(members) == 1 {
		return &all, nil
	}
	var mixtures []Mixture
	var probabilities, outputs, parameters [][]float64
	for _, p := range members {
		mixtures, probabilities = append(mixtures, p.Mixture), append(probabilities, p.Probabilities)
		outputs, parameters = append(outputs, p.Outputs...), append(parameters, p.Parameters...)
	}
	var err error
	switch {
	case all.Mean != nil:
		all.Mixture, err = Mix(mixtures...)
	case all.Probabilities != nil:
		if all.Probabilities, all.MutualInformation, err = mixClasses(probabilities, all.Width); err != nil {
			return nil, err
		}
		for _, p := range members {
			if p.MutualInformation != nil {
				floats.AddScaled(all.MutualInformation, 1/float64(len(members)), p.MutualInformation)
			}
		}
	default:
		for i, p := range members {
			if own := slices.Concat(p.Outputs, p.Parameters); len(own) == 0 || len(own[0]) != len(slices.Concat(outputs, parameters)[0]) {
				return nil, fmt.Errorf("member %d of the ensemble predicts at another number of inputs than member 0, or by another likelihood", i)
			}
		}
		if all.Outputs, all.Parameters = outputs, parameters; all.model != nil {
			all.model, all.members = nil, members
		}
	}
	for i, p := range members {
		if err == nil && (len(p.Mean) != len(members[0].Mean) || len(p.Parameters) != len(members[0].Parameters)) {
			err = fmt.Errorf("member %d of the ensemble has another number of draws than member 0, and would have another weight", i)
		}
	}
	return &all, err
}

// mixClasses is the mean of probabilities of classes, each [N*classes], and the entropy of the mean minus the mean entropy, [N].
func mixClasses(members [][]float64, classes int) (probabilities, mutualInformation []float64, err error) {
	probabilities = make([]float64, len(members[0]))
	var entropies []float64 // mean over the members
	weight := 1 / float64(len(members))
	for m, p := range members {
		if len(p) != len(probabilities) {
			return nil, nil, fmt.Errorf("member %d of the ensemble has %d probabilities, member 0 has %d", m, len(p), len(probabilities))
		}
		each := metrics.Entropy(p, classes)
		if entropies == nil {
			entropies = make([]float64, len(each))
		}
		floats.AddScaled(probabilities, weight, p)
		floats.AddScaled(entropies, weight, each)
	}
	mutualInformation = metrics.Entropy(probabilities, classes)
	for i, h := range entropies {
		mutualInformation[i] = math.Max(mutualInformation[i]-h, 0) // never negative but by rounding
	}
	return probabilities, mutualInformation, nil
}
