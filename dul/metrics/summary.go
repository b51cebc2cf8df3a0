package metrics

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Mean is the arithmetic mean.
func Mean(values []float64) (float64, error) {
	if err := checkSome("values", values); err != nil {
		return 0, err
	}
	return stat.Mean(values, nil), nil
}

// MeanStd is the arithmetic mean and the sample standard deviation, with n-1 in the denominator: the
// spread of the values, not the standard error of their mean (which is smaller by sqrt n). The standard
// deviation of a single value is NaN.
func MeanStd(values []float64) (mean, std float64, err error) {
	if err := checkSome("values", values); err != nil {
		return 0, 0, err
	}
	if len(values) == 1 {
		return values[0], math.NaN(), nil
	}
	mean, std = stat.MeanStdDev(values, nil)
	return mean, std, nil
}
