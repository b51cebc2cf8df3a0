package metrics

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/integrate"
	"gonum.org/v1/gonum/stat"
)

// AUROC is the area under the receiver operating characteristic: the probability that a positive
// example has a larger score than a negative one, where a tie counts one half. Both kinds must occur.
func AUROC(score []float64, positive []bool) (float64, error) {
	score, positive, err := ascending(score, positive)
	if err != nil {
		return 0, err
	}
	truePositive, falsePositive, _ := stat.ROC(nil, score, positive, nil)
	return integrate.Trapezoidal(falsePositive, truePositive), nil
}

// AUPRC is the area under the precision-recall curve by the trapezoidal rule. The curve has one point
// for each different score, as threshold, and starts at recall 0, precision 1. The rule interpolates
// between points and so is a little optimistic; AveragePrecision is not. Positive examples must occur.
// A score without information gives the fraction of positives, not one half.
func AUPRC(score []float64, positive []bool) (float64, error) {
	recall, precision, err := precisionRecall(score, positive)
	if err != nil {
		return 0, err
	}
	return integrate.Trapezoidal(recall, precision), nil
}

// AveragePrecision is sum_k (recall_k - recall_{k-1}) precision_k over the thresholds in descending
// order: the area under the precision-recall curve as a step function.
func AveragePrecision(score []float64, positive []bool) (float64, error) {
	recall, precision, err := precisionRecall(score, positive)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for k := 1; k < len(recall); k++ {
		total += (recall[k] - recall[k-1]) * precision[k]
	}
	return total, nil
}

// precisionRecall returns the curve from recall 0 to recall 1.
func precisionRecall(score []float64, positive []bool) (recall, precision []float64, err error) {
	score, positive, err = ascending(score, positive)
	if err != nil {
		return nil, nil, err
	}
	total := 0
	for _, p := range positive {
		if p {
			total++
		}
	}
	recall, precision = []float64{0}, []float64{1}
	found := 0
	for i := len(score) - 1; i >= 0; i-- {
		if positive[i] {
			found++
		}
		if i == 0 || score[i-1] != score[i] {
			recall = append(recall, float64(found)/float64(total))
			precision = append(precision, float64(found)/float64(len(score)-i))
		}
	}
	return recall, precision, nil
}

// ascending returns copies ordered by score, and an error unless both kinds of examples occur.
func ascending(score []float64, positive []bool) ([]float64, []bool, error) {
	if err := checkSome("score", score); err != nil {
		return nil, nil, err
	}
	if err := checkLength("positive", len(positive), "score", len(score)); err != nil {
		return nil, nil, err
	}
	if !slices.Contains(positive, true) || !slices.Contains(positive, false) {
		return nil, nil, fmt.Errorf("metrics: all %d examples are of one kind, want positive and negative ones: %w", len(positive), ErrValue)
	}
	score, positive = slices.Clone(score), slices.Clone(positive)
	stat.SortWeightedLabeled(score, positive, nil)
	return score, positive, nil
}

// EnergyOOD is the paper's statistic for detecting examples out of the training distribution (section on
// out-of-distribution detection): the squared distance of each example's energy from the mean energy of
// examples held out from the training set,
//
//	score_i = (E_i - mean(heldOut))^2.
//
// Larger is stranger. An example can have too little energy as well as too much, which is why the raw
// energy is no such score. heldOut must be in-distribution and never the test set.
func EnergyOOD(energy, heldOut []float64) ([]float64, error) {
	if err := checkSome("energy", energy); err != nil {
		return nil, err
	}
	if err := checkSome("heldOut", heldOut); err != nil {
		return nil, err
	}
	centre := stat.Mean(heldOut, nil)
	score := make([]float64, len(energy))
	for i, e := range energy {
		score[i] = (e - centre) * (e - centre)
	}
	return score, nil
}
