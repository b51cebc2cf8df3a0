package metrics

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// RMSE is the root mean squared error sqrt(1/N sum_i (prediction_i - target_i)^2), in the target's
// units. For Monte Carlo predictions the prediction is the mean over the samples.
func RMSE(prediction, target []float64) float64 {
	return floats.Distance(prediction, target, 2) / math.Sqrt(float64(len(target)))
}

// MonteCarloNLL is the mean over the examples of the negative log likelihood under the equal mixture of the M
// Gaussians that M Monte Carlo samples predict,
//
//	-log 1/M sum_m N(y; mean_m, variance_m) + log targetStd.
//
// target [N], mean and variance [M][N] are in the space in which the network predicts, where the target
// was divided by targetStd; adding log targetStd (change of variables) gives the density in the target's
// own units. Pass targetStd 1 if nothing was divided. The sum is taken after shifting by its largest
// exponent, so that an example far from every sample has a large finite value rather than +Inf.
func MonteCarloNLL(target []float64, mean, variance [][]float64, targetStd float64) float64 {
	checkSamples(target, mean, variance)
	each, logs := make([]float64, len(target)), make([]float64, len(mean))
	for i, y := range target {
		for m := range mean {
			logs[m] = logNormal(y, mean[m][i], variance[m][i])
		}
		each[i] = math.Log(float64(len(mean))) - floats.LogSumExp(logs) + math.Log(targetStd)
	}
	return Mean(each)
}

// logNormal is the log density of N(mean, variance) at y.
func logNormal(y, mean, variance float64) float64 {
	d := y - mean
	return -0.5 * (math.Log(2*math.Pi) + math.Log(variance) + d*d/variance)
}

// checkSamples panics if the samples do not fit the targets.
func checkSamples(target []float64, mean, variance [][]float64) {
	if len(mean) == 0 {
		panic("metrics: there are no samples")
	}
	same("variance", len(variance), "mean", len(mean))
	for m := range mean {
		same("a sample of means", len(mean[m]), "target", len(target))
		same("a sample of variances", len(variance[m]), "target", len(target))
	}
}

// MonteCarloCRPS is the mean over the examples of the continuous ranked probability score
//
//	integral (F(x) - [x >= y])^2 dx
//
// with F the distribution function of the equal mixture of the M Gaussians that M Monte Carlo samples predict
// (Gneiting and Raftery 2007, section 4.2), in closed form (Grimit et al. 2006):
//
//	targetStd (1/M sum_m A(y - mean_m, v_m) - 1/(2 M^2) sum_mn A(mean_m - mean_n, v_m + v_n)),
//
// where A(d, v) is the mean of |X| for X from N(d, v). It is in the target's own units, smaller is better, and tends
// to |y - mean| as the variances tend to 0. Arguments and spaces are those of MonteCarloNLL. The cost grows with M^2.
func MonteCarloCRPS(target []float64, mean, variance [][]float64, targetStd float64) float64 {
	checkSamples(target, mean, variance)
	samples, each := float64(len(mean)), make([]float64, len(target))
	for i, y := range target {
		toTarget, toEachOther := 0.0, 0.0
		for m := range mean {
			toTarget += meanDistance(y-mean[m][i], math.Sqrt(variance[m][i]))
			toEachOther += meanDistance(0, math.Sqrt(2*variance[m][i]))
			for n := range m {
				toEachOther += 2 * meanDistance(mean[m][i]-mean[n][i], math.Sqrt(variance[m][i]+variance[n][i]))
			}
		}
		each[i] = targetStd * (toTarget/samples - toEachOther/(2*samples*samples))
	}
	return Mean(each)
}

// meanDistance is the mean of |X| for X from N(d, s^2), 2 s phi(d/s) + d (2 Phi(d/s) - 1).
func meanDistance(d, s float64) float64 {
	z := d / s
	return s*math.Sqrt(2/math.Pi)*math.Exp(-z*z/2) + d*math.Erf(z/math.Sqrt2)
}

// transforms are the probability integral transforms of the targets (Dawid 1984) under the equal mixture of the M
// Gaussians that M Monte Carlo samples predict, F(y) = 1/M sum_m Phi((y - mean_m)/s_m).
func transforms(target []float64, mean, variance [][]float64) []float64 {
	checkSamples(target, mean, variance)
	each := make([]float64, len(target))
	for i, y := range target {
		for m := range mean {
			each[i] += math.Erfc((mean[m][i]-y)/(math.Sqrt2*math.Sqrt(variance[m][i]))) / (2 * float64(len(mean)))
		}
	}
	return each
}

// MonteCarloCoverage is the fraction of targets inside the central interval of the given level of the equal mixture
// of the M Gaussians that M Monte Carlo samples predict, (1-level)/2 <= F(y) <= (1+level)/2 with
//
//	F(y) = 1/M sum_m Phi((y - mean_m)/s_m).
//
// target [N], mean and variance [M][N] are in one space; level is in (0, 1).
func MonteCarloCoverage(target []float64, mean, variance [][]float64, level float64) float64 {
	inUnit(level)
	inside := 0.0
	for _, f := range transforms(target, mean, variance) {
		switch tail := (1 - level) / 2; {
		case math.IsNaN(f):
			return f
		case f >= tail && 1-f >= tail:
			inside++
		}
	}
	return inside / float64(len(target))
}
