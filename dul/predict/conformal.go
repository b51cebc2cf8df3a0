package predict

import (
	"fmt"
	"math"

	"densityuncertainty/dul/metrics"
)

// ConformalIntervals are intervals [low, high] of a real target at each input, [N], by split conformal prediction with scaled
// residuals (Lei et al. 2018, "Distribution-free predictive inference for regression"):
//
//	m(x) ± q s(x),   q the ceil((n + 1) level)-th smallest |y_i - m(x_i)| / s(x_i) of n examples to calibrate by.
//
// m and s are the mean and the standard deviation of the predictive distribution. calibration is a prediction by the same model at
// inputs that were not trained on, with these targets. If its examples and the new one are exchangeable, the interval contains the new
// target with at least this probability, whatever the model: on average over inputs and calibration examples, and not at each
// input. Where inputs are unlike those, as in a hole of the data, nothing is promised. With fewer than level/(1 - level) examples the
// promise has infinite intervals alone. Targets are in the units of training, and so are the intervals. An error says that level is
// not between 0 and 1, that numbers of examples differ, or why there are no moments (Predictive).
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

// moments are those of the predictive distribution.
func (p *Prediction) moments() (mean, std []float64, err error) {
	d, err := p.Predictive()
	if err != nil {
		return nil, nil, err
	}
	return d.Moments()
}
