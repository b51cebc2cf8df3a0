package metrics

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// MeanProbabilities is the average over Monte Carlo samples of softmax(logits): logits [M][N*C] gives
// [N*C]. It is the predictive distribution that every other metric here is about.
func MeanProbabilities(logits [][]float64, classes int) ([]float64, error) {
	if len(logits) == 0 {
		return nil, fmt.Errorf("metrics: logits hold no samples: %w", ErrEmpty)
	}
	mean := make([]float64, len(logits[0]))
	for m, sample := range logits {
		if err := checkTable(fmt.Sprintf("logits[%d]", m), sample, classes); err != nil {
			return nil, err
		}
		if err := checkLength(fmt.Sprintf("logits[%d]", m), len(sample), "logits[0]", len(mean)); err != nil {
			return nil, err
		}
		for start := 0; start < len(sample); start += classes {
			row := sample[start : start+classes]
			total := floats.LogSumExp(row)
			for c, logit := range row {
				mean[start+c] += math.Exp(logit-total) / float64(len(logits))
			}
		}
	}
	return mean, nil
}

// Accuracy is the fraction of examples whose most probable class is the label. Of equally probable
// classes the first counts.
func Accuracy(probs []float64, classes int, labels []int) (float64, error) {
	return meanOf(eachOf(probs, classes, labels, func(p []float64, label int) float64 {
		if floats.MaxIdx(p) == label {
			return 1
		}
		return 0
	}))
}

// CategoricalNLL is the mean over the examples of -log p(label), in nats. It is +Inf, without an error, when the
// prediction rules a label out.
func CategoricalNLL(probs []float64, classes int, labels []int) (float64, error) {
	return meanOf(CategoricalNLLs(probs, classes, labels))
}

// CategoricalNLLs is each example's -log p(label) in nats, +Inf where p(label) is 0.
func CategoricalNLLs(probs []float64, classes int, labels []int) ([]float64, error) {
	return eachOf(probs, classes, labels, func(p []float64, label int) float64 { return -math.Log(p[label]) })
}

// Brier is the mean over the examples of Briers, from 0 (certain and right) to 2 (certain and wrong).
func Brier(probs []float64, classes int, labels []int) (float64, error) {
	return meanOf(Briers(probs, classes, labels))
}

// Briers is each example's sum_c (p_c - [c = label])^2 (Brier 1950).
func Briers(probs []float64, classes int, labels []int) ([]float64, error) {
	return eachOf(probs, classes, labels, func(p []float64, label int) float64 {
		sum := 0.0
		for c, q := range p {
			if c == label {
				q--
			}
			sum += q * q
		}
		return sum
	})
}

// eachOf is a number of each example's probabilities and label.
func eachOf(probs []float64, classes int, labels []int, of func(p []float64, label int) float64) ([]float64, error) {
	if err := checkLabelled(probs, classes, labels); err != nil {
		return nil, err
	}
	each := make([]float64, len(labels))
	for i, label := range labels {
		each[i] = of(row(probs, classes, i), label)
	}
	return each, nil
}

// meanOf is the mean of each example's value, which may be +Inf.
func meanOf(each []float64, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	return floats.Sum(each) / float64(len(each)), nil
}

// MaxProbability is each example's confidence max_c p_c.
func MaxProbability(probs []float64, classes int) ([]float64, error) {
	if err := checkProbs(probs, classes); err != nil {
		return nil, err
	}
	each := make([]float64, len(probs)/classes)
	for i := range each {
		each[i] = floats.Max(row(probs, classes, i))
	}
	return each, nil
}

// Entropy is each example's -sum_c p_c log p_c in nats, where 0 log 0 = 0.
func Entropy(probs []float64, classes int) ([]float64, error) {
	if err := checkProbs(probs, classes); err != nil {
		return nil, err
	}
	each := make([]float64, len(probs)/classes)
	for i := range each {
		for _, p := range row(probs, classes, i) {
			if p > 0 {
				each[i] -= p * math.Log(p)
			}
		}
	}
	return each, nil
}

// MutualInformation is each example's mutual information between label and Monte Carlo sample: the
// entropy of the averaged probabilities minus the average of the samples' entropies, in nats. It is the
// part of the uncertainty that comes from not knowing the weights, and never negative. logits is [M][N*C].
func MutualInformation(logits [][]float64, classes int) ([]float64, error) {
	mean, err := MeanProbabilities(logits, classes)
	if err != nil {
		return nil, err
	}
	each, err := Entropy(mean, classes)
	if err != nil {
		return nil, err
	}
	for m := range logits {
		probs, err := MeanProbabilities(logits[m:m+1], classes)
		if err != nil {
			return nil, err
		}
		entropy, err := Entropy(probs, classes)
		if err != nil {
			return nil, err
		}
		floats.AddScaled(each, -1/float64(len(logits)), entropy)
	}
	for i, information := range each {
		each[i] = max(information, 0) // below it by rounding alone
	}
	return each, nil
}

// row is the probabilities of example i.
func row(probs []float64, classes, i int) []float64 { return probs[i*classes : (i+1)*classes] }

// checkTable reports a table that is empty, not finite or not a whole number of rows.
func checkTable(what string, table []float64, classes int) error {
	if classes < 1 {
		return fmt.Errorf("metrics: %d classes, want at least 1: %w", classes, ErrValue)
	}
	if len(table)%classes != 0 {
		return fmt.Errorf("metrics: %s has %d values, which is no multiple of %d classes: %w", what, len(table), classes, ErrLength)
	}
	return checkSome(what, table)
}

// sumTolerance allows for probabilities that were computed in float32.
const sumTolerance = 1e-4

// checkProbs reports a table whose rows are not probability distributions.
func checkProbs(probs []float64, classes int) error {
	if err := checkTable("probs", probs, classes); err != nil {
		return err
	}
	for i := range len(probs) / classes {
		r := row(probs, classes, i)
		if sum := floats.Sum(r); floats.Min(r) < 0 || math.Abs(sum-1) > sumTolerance {
			return fmt.Errorf("metrics: the probabilities of example %d, %v, sum to %v or are negative: %w", i, r, sum, ErrValue)
		}
	}
	return nil
}

// checkLabelled reports probabilities or labels that do not fit together.
func checkLabelled(probs []float64, classes int, labels []int) error {
	if err := checkProbs(probs, classes); err != nil {
		return err
	}
	return checkLabels(labels, len(probs)/classes, classes)
}

// checkLabels reports labels that are not n class indices.
func checkLabels(labels []int, n, classes int) error {
	if err := checkLength("labels", len(labels), "the table", n); err != nil {
		return err
	}
	for i, label := range labels {
		if label < 0 || label >= classes {
			return fmt.Errorf("metrics: label %d of example %d is not one of %d classes: %w", label, i, classes, ErrValue)
		}
	}
	return nil
}
