package metrics

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// MeanProbabilities returns the average of softmax(logits) over Monte Carlo samples: logits [M][N*C] gives [N*C]. This
// predictive distribution is what the other metrics take as probs. If logits of an example are +Inf, they share its
// probability.
func MeanProbabilities(logits [][]float64, classes int) []float64 {
	mean := make([]float64, len(logits[0]))
	checkTable(mean, classes)
	for _, sample := range logits {
		same("a sample of logits", len(sample), "the first", len(mean))
		for start := 0; start < len(sample); start += classes {
			row := sample[start : start+classes]
			total := floats.LogSumExp(row)
			if math.IsInf(total, 1) && !floats.HasNaN(row) {
				row, total = limitOf(row)
			}
			for c, logit := range row {
				mean[start+c] += math.Exp(logit-total) / float64(len(logits))
			}
		}
	}
	return mean
}

// limitOf returns finite logits, and -Inf, that have the probabilities of a row with logits of +Inf, and their LogSumExp.
func limitOf(row []float64) (logits []float64, total float64) {
	infinite := 0.0
	for _, logit := range row {
		if math.IsInf(logit, 1) {
			logit, infinite = 0, infinite+1
		} else {
			logit = math.Inf(-1)
		}
		logits = append(logits, logit)
	}
	return logits, math.Log(infinite)
}

// Accuracy returns the fraction of examples whose most probable class is the label. Of equally probable classes the
// first counts.
func Accuracy(probs []float64, classes int, labels []int) float64 {
	return stat.Mean(eachOf(probs, classes, labels, func(p []float64, label int) float64 {
		switch {
		case floats.HasNaN(p):
			return math.NaN()
		case floats.MaxIdx(p) == label:
			return 1
		}
		return 0
	}), nil)
}

// CategoricalNLL returns the mean over the examples of -log p(label), in nats. It is +Inf if a label has probability 0.
func CategoricalNLL(probs []float64, classes int, labels []int) float64 {
	return stat.Mean(CategoricalNLLs(probs, classes, labels), nil)
}

// CategoricalNLLs returns each example's -log p(label) in nats, [N]; +Inf if p(label) is 0.
func CategoricalNLLs(probs []float64, classes int, labels []int) []float64 {
	return eachOf(probs, classes, labels, func(p []float64, label int) float64 { return -math.Log(p[label]) })
}

// Brier returns the mean of Briers over the examples, from 0 (certain and right) to 2 (certain and wrong).
func Brier(probs []float64, classes int, labels []int) float64 {
	return stat.Mean(Briers(probs, classes, labels), nil)
}

// Briers returns each example's sum_c (p_c - [c = label])^2, [N] (Brier 1950).
func Briers(probs []float64, classes int, labels []int) []float64 {
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
func eachOf(probs []float64, classes int, labels []int, of func(p []float64, label int) float64) []float64 {
	checkProbabilities(probs, classes)
	checkLabelled(probs, classes, labels)
	each := make([]float64, len(labels))
	for i, label := range labels {
		each[i] = of(row(probs, classes, i), label)
	}
	return each
}

// MaxProbability returns each example's confidence max_c p_c, [N].
func MaxProbability(probs []float64, classes int) []float64 {
	checkProbabilities(probs, classes)
	each := make([]float64, len(probs)/classes)
	for i := range each {
		each[i] = slices.Max(row(probs, classes, i))
	}
	return each
}

// Entropy returns each example's -sum_c p_c log p_c in nats, [N], with 0 log 0 = 0.
func Entropy(probs []float64, classes int) []float64 {
	checkProbabilities(probs, classes)
	each := make([]float64, len(probs)/classes)
	for i := range each {
		for _, p := range row(probs, classes, i) {
			if p != 0 {
				each[i] -= p * math.Log(p)
			}
		}
	}
	return each
}

// MutualInformation returns each example's mutual information between label and Monte Carlo sample in nats, [N]: the
// entropy of the averaged probabilities minus the average of the samples' entropies. It is the part of the uncertainty
// that comes from not knowing the weights, and never negative. logits is [M][N*C].
func MutualInformation(logits [][]float64, classes int) []float64 {
	each := Entropy(MeanProbabilities(logits, classes), classes)
	for m := range logits {
		floats.AddScaled(each, -1/float64(len(logits)), Entropy(MeanProbabilities(logits[m:m+1], classes), classes))
	}
	for i, information := range each {
		each[i] = max(information, 0) // below it by rounding alone
	}
	return each
}

// row is the probabilities of example i.
func row(probs []float64, classes, i int) []float64 { return probs[i*classes : (i+1)*classes] }

// checkTable panics if a table is not a whole number of rows.
func checkTable(table []float64, classes int) {
	if classes < 1 || len(table)%classes != 0 {
		panic(fmt.Sprintf("metrics: %d values are no table of %d classes", len(table), classes))
	}
}

// sumOff is how far from 1 probabilities may sum: a thousand that were stored in half precision come half as far.
const sumOff = 1e-3

// checkProbabilities panics if a row has a number below 0, by more than rounding, or does not sum to 1, as logits do not. Rows
// with NaN are left to become NaN.
func checkProbabilities(probs []float64, classes int) {
	checkTable(probs, classes)
	for start := 0; start < len(probs); start += classes {
		r := probs[start : start+classes]
		if sum := floats.Sum(r); math.Abs(sum-1) > sumOff || floats.Min(r) < -1e-6 {
			panic(fmt.Sprintf("metrics: the probabilities of example %d sum to %.4g, and the least is %.4g; they must be at least 0 and sum to 1 (of logits take Softmax)", start/classes, sum, floats.Min(r)))
		}
	}
}

// checkLabelled panics if a table and labels do not fit together.
func checkLabelled(table []float64, classes int, labels []int) {
	checkTable(table, classes)
	same("labels", len(labels), "the table", len(table)/classes)
	for i, label := range labels {
		if label < 0 || label >= classes {
			panic(fmt.Sprintf("metrics: label %d of example %d is not one of %d classes", label, i, classes))
		}
	}
}
