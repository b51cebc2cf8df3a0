package metrics

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// DempsterShafer is each example's uncertainty K/(K + sum_k exp logit_k) for K classes, in [0, 1]
// (Sensoy et al. 2018, as SNGP uses it: Liu et al. 2020): close to 1 where no class has evidence. It
// uses the size of the logits, which probabilities do not show. logits is [N*K].
func DempsterShafer(logits []float64, classes int) ([]float64, error) {
	if err := checkTable("logits", logits, classes); err != nil {
		return nil, err
	}
	each := make([]float64, len(logits)/classes)
	for i := range each {
		// The evidence is kept as a logarithm, since exp of a large logit overflows.
		each[i] = 1 / (1 + math.Exp(floats.LogSumExp(row(logits, classes, i))-math.Log(float64(classes))))
	}
	return each, nil
}

// Softmax is the probabilities softmax(logits/temperature), [N*C] as the logits are. temperature is
// positive; 1 changes nothing, more makes every prediction less certain and keeps the predicted class.
func Softmax(logits []float64, classes int, temperature float64) ([]float64, error) {
	if !(temperature > 0) || math.IsInf(temperature, 1) {
		return nil, fmt.Errorf("metrics: the temperature is %v, want a positive number: %w", temperature, ErrValue)
	}
	cooled := make([]float64, len(logits))
	floats.ScaleTo(cooled, 1/temperature, logits)
	return MeanProbabilities([][]float64{cooled}, classes)
}

// ErrNoTemperature is wrapped by the error of FitTemperature for logits of which no temperature is the
// best. It is an ErrValue.
var ErrNoTemperature = fmt.Errorf("there is no best temperature: %w", ErrValue)

// FitTemperature is the temperature T > 0 at which Softmax has the least CategoricalNLL (Guo et al.
// 2017). Fit it on examples that are held out from training and apply it to others.
//
// The NLL is convex in 1/T, so that the minimum is found where its derivative, the mean over the
// examples of E_p[logit] - logit_label, crosses zero. It has no minimum, and ErrNoTemperature is returned,
// wrapped, if the logits say no more than chance about the labels (T would be infinite) or if every label
// has its example's largest logit (T would be 0).
func FitTemperature(logits []float64, classes int, labels []int) (float64, error) {
	if err := checkTable("logits", logits, classes); err != nil {
		return 0, err
	}
	if err := checkLabels(labels, len(logits)/classes, classes); err != nil {
		return 0, err
	}
	regret := 0.0 // the derivative at T = 0
	for i, label := range labels {
		r := row(logits, classes, i)
		regret += floats.Max(r) - r[label]
	}
	if regret == 0 {
		return 0, fmt.Errorf("metrics: all %d labels have the largest logit, so that no temperature is best; fit it on examples held out from training: %w", len(labels), ErrNoTemperature)
	}
	atZero, _ := temperatureSlope(logits, classes, labels, 0)
	if math.IsNaN(atZero) || math.IsInf(atZero, 0) {
		return 0, fmt.Errorf("metrics: logits whose differences overflow have no temperature: %w", ErrValue)
	}
	if atZero >= 0 {
		return 0, fmt.Errorf("metrics: the logits say no more than chance about the %d labels, so that no temperature is best: %w", len(labels), ErrNoTemperature)
	}
	low, high := 0.0, 1.0 // of 1/T
	for slope, _ := temperatureSlope(logits, classes, labels, high); slope < 0; slope, _ = temperatureSlope(logits, classes, labels, high) {
		low, high = high, 2*high
	}
	// Newton's steps, or halving where one would leave the bracket.
	inverse := (low + high) / 2
	for range maxNewton {
		slope, curvature := temperatureSlope(logits, classes, labels, inverse)
		if slope < 0 {
			low = inverse
		} else {
			high = inverse
		}
		next := inverse - slope/curvature
		if !(next > low && next < high) {
			next = (low + high) / 2
		}
		done := math.Abs(next-inverse) <= temperatureTolerance*inverse
		inverse = next
		if done {
			break
		}
	}
	return 1 / inverse, nil
}

// Halving alone needs about 50 steps.
const (
	maxNewton            = 200
	temperatureTolerance = 1e-13
)

// temperatureSlope is the first and second derivative of the mean NLL with respect to inverse = 1/T.
func temperatureSlope(logits []float64, classes int, labels []int, inverse float64) (slope, curvature float64) {
	for i, label := range labels {
		r := row(logits, classes, i)
		largest := floats.Max(r)
		var weights, first, second float64
		for _, logit := range r {
			d := logit - largest
			w := math.Exp(inverse * d)
			weights += w
			first += w * d
			second += w * d * d
		}
		mean := first / weights
		slope += mean - (r[label] - largest)
		curvature += second/weights - mean*mean
	}
	n := float64(len(labels))
	return slope / n, curvature / n
}
