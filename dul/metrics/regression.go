package metrics

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// RMSE is the root mean squared error sqrt(1/N sum_i (prediction_i - target_i)^2), in the target's
// units. For Monte Carlo predictions the prediction is the mean over the samples.
func RMSE(prediction, target []float64) (float64, error) {
	if err := checkSome("target", target); err != nil {
		return 0, err
	}
	if err := checkLength("prediction", len(prediction), "target", len(target)); err != nil {
		return 0, err
	}
	if err := checkFinite("prediction", prediction); err != nil {
		return 0, err
	}
	return floats.Distance(prediction, target, 2) / math.Sqrt(float64(len(target))), nil
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
func MonteCarloNLL(target []float64, mean, variance [][]float64, targetStd float64) (float64, error) {
	if err := checkSamples(target, mean, variance, targetStd); err != nil {
		return 0, err
	}
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
	return -0.5 * (math.Log(2*math.Pi*variance) + d*d/variance)
}

// checkSamples reports what is wrong with the arguments of MonteCarloNLL.
func checkSamples(target []float64, mean, variance [][]float64, targetStd float64) error {
	if err := checkSome("target", target); err != nil {
		return err
	}
	if len(mean) == 0 {
		return fmt.Errorf("metrics: mean holds no samples: %w", ErrEmpty)
	}
	if err := checkLength("variance", len(variance), "mean", len(mean)); err != nil {
		return err
	}
	for m := range mean {
		if err := checkSample(fmt.Sprintf("mean[%d]", m), mean[m], len(target)); err != nil {
			return err
		}
		if err := checkSample(fmt.Sprintf("variance[%d]", m), variance[m], len(target)); err != nil {
			return err
		}
		for i, v := range variance[m] {
			if v <= 0 {
				return fmt.Errorf("metrics: variance[%d][%d] is %v, want a positive number: %w", m, i, v, ErrValue)
			}
		}
	}
	if !(targetStd > 0) || math.IsInf(targetStd, 1) {
		return fmt.Errorf("metrics: the target's standard deviation is %v, want a positive number: %w", targetStd, ErrValue)
	}
	return nil
}

// checkSample reports a sample that does not fit n targets.
func checkSample(what string, sample []float64, n int) error {
	if err := checkLength(what, len(sample), "target", n); err != nil {
		return err
	}
	return checkFinite(what, sample)
}
