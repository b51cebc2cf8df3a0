package metrics

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// DempsterShafer returns each example's uncertainty K/(K + sum_k exp logit_k) for K classes (Sensoy et al. 2018; SNGP
// uses it: Liu et al. 2020). It is between 0 and 1, and close to 1 if no class has evidence. It depends on the size of
// the logits, which probabilities do not show. logits is [N*K].
func DempsterShafer(logits []float64, classes int) []float64 {
	checkTable(logits, classes)
	each := make([]float64, len(logits)/classes)
	for i := range each {
		// The evidence is kept as a logarithm, since exp of a large logit overflows.
		each[i] = 1 / (1 + math.Exp(floats.LogSumExp(row(logits, classes, i))-math.Log(float64(classes))))
	}
	return each
}

// Softmax returns softmax(logits/temperature), [N*C] as the logits are. A temperature above 1 makes every prediction
// less certain without changing the predicted class. It panics if the temperature is not positive.
func Softmax(logits []float64, classes int, temperature float64) []float64 {
	if temperature <= 0 {
		panic(fmt.Sprintf("metrics: the temperature is %v, want a positive number", temperature))
	}
	cooled := make([]float64, len(logits))
	floats.ScaleTo(cooled, 1/temperature, logits)
	return MeanProbabilities([][]float64{cooled}, classes)
}

// ErrNoTemperature is wrapped by the error of FitTemperature if no temperature is best.
var ErrNoTemperature = errors.New("there is no best temperature")

// FitTemperature returns the temperature T > 0 at which Softmax has the smallest CategoricalNLL (Guo et al. 2017). Fit
// it on examples held out from training, and apply it to others.
//
// The NLL is convex in 1/T. At the minimum its derivative, the mean over the examples of E_p[logit] - logit_label, is
// 0. There is no minimum if the logits predict the labels no better than chance, within rounding (T would be infinite),
// or if every label has its example's largest logit (T would be 0); the error then wraps ErrNoTemperature. If a logit
// is NaN or infinite, T is NaN.
func FitTemperature(logits []float64, classes int, labels []int) (float64, error) {
	checkLabelled(logits, classes, labels)
	if largest := floats.Norm(logits, math.Inf(1)); math.IsNaN(largest) || math.IsInf(largest, 1) {
		return math.NaN(), nil
	}
	wrong, rounding := false, 0.0
	for i, label := range labels {
		r := row(logits, classes, i)
		wrong = wrong || r[label] < floats.Max(r)
		rounding += 4 * 0x1p-52 * floats.Norm(r, math.Inf(1)) / float64(len(labels))
	}
	if !wrong {
		return 0, noTemperature("all %d labels have the largest logit; fit the temperature on examples held out from training", len(labels))
	}
	if atZero, _ := temperatureSlope(logits, classes, labels, 0); atZero >= -rounding {
		return 0, noTemperature("the logits say no more than chance about the %d labels", len(labels))
	}
	low, high := 0.0, 1.0 // of 1/T
	for slope, _ := temperatureSlope(logits, classes, labels, high); slope < 0; slope, _ = temperatureSlope(logits, classes, labels, high) {
		low, high = high, 2*high
	}
	if math.IsInf(high, 1) {
		return 0, noTemperature("the %d labels have the largest logits but for differences near 0", len(labels))
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

// noTemperature is ErrNoTemperature with why there is none.
func noTemperature(format string, args ...any) error {
	return fmt.Errorf("metrics: "+format+": %w", append(args, ErrNoTemperature)...)
}

const (
	// Halving alone needs about 50 steps.
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
