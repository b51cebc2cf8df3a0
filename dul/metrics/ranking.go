package metrics

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// AUROC returns the area under the ROC curve: the probability that a positive example has a larger score than a
// negative one, where a tie counts one half. It is NaN unless both kinds occur. A score without information gives about
// 1/2, a constant score exactly 1/2.
//
// When detecting examples out of the training distribution, positive means out of distribution everywhere in this
// package, and a larger score is stranger. If you negate the scores and swap the kinds instead, AUROC is the same, but
// AUPRC, AveragePrecision and FPRAtTPR are not.
func AUROC(score []float64, positive []bool) float64 {
	return NewRanks(score, positive).Sweep().AUROC()
}

// Ranks is the order of N examples by score. It is sorted once, so that ranking metrics of many resamples (see
// Bootstrap) need no sorting.
type Ranks struct {
	place     []int32 // of each example among the different scores, 0 for the largest; of negative ones, that plus groups
	groups    int
	nan       bool      // whether a score is NaN
	harmonics []float64 // 1 + 1/2 + ... + 1/k, for k from 0 to N
}

// NewRanks returns the examples sorted by score. It panics if the lists have different lengths.
func NewRanks(score []float64, positive []bool) *Ranks {
	same("positive", len(positive), "score", len(score))
	order := ascending(score)
	r := &Ranks{place: make([]int32, len(score)), groups: 1, nan: floats.HasNaN(score), harmonics: make([]float64, len(score)+1)}
	for k := len(order) - 1; k >= 0; k-- {
		if k+1 < len(order) && order[k].value != order[k+1].value {
			r.groups++
		}
		r.place[order[k].index] = int32(r.groups - 1)
	}
	for i, is := range positive {
		if r.harmonics[i+1] = r.harmonics[i] + 1/float64(i+1); !is {
			r.place[i] += int32(r.groups)
		}
	}
	return r
}

// ordered is a value and the place it came from. Sorting both together is faster than sorting places
// that point to values.
type ordered struct {
	value float64
	index int32
}

// ascending orders values from the smallest to the largest, equal ones as they came, and NaN first.
func ascending(values []float64) []ordered {
	order := make([]ordered, len(values))
	for i, v := range values {
		order[i] = ordered{v, int32(i)}
	}
	slices.SortFunc(order, func(a, b ordered) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.index, b.index))
	})
	return order
}

// Sweep returns the examples for ranking metrics, each once.
func (r *Ranks) Sweep() Sweep {
	return r.sweep(slices.Repeat([]float64{1}, len(r.place)), make([]int32, 2*r.groups))
}

// At returns a function for Bootstrap that computes a number of the sweep of a resample. It is not for several goroutines.
func (r *Ranks) At(number func(Sweep) float64) func(counts []float64) float64 {
	both := make([]int32, 2*r.groups)
	return func(counts []float64) float64 { return number(r.sweep(counts, both)) }
}

// sweep is Sweep with each example as often as counts says; both is memory for it.
func (r *Ranks) sweep(counts []float64, both []int32) Sweep {
	same("counts", len(counts), "the ranks", len(r.place))
	clear(both)
	for i, place := range r.place {
		both[place] += int32(counts[i])
	}
	s := Sweep{hits: both[:r.groups], misses: both[r.groups:], harmonics: r.harmonics}
	positives, negatives := 0, 0
	for g, hits := range s.hits {
		positives, negatives = positives+int(hits), negatives+int(s.misses[g])
	}
	if s.positives, s.negatives = float64(positives), float64(negatives); r.nan {
		s.positives, s.negatives = math.NaN(), math.NaN() // what is divided by them is NaN
	}
	return s
}

// Sweep has the numbers of positive and negative examples at each score, from the largest score down, from which all
// ranking metrics are computed. Ranks make it; its methods are for Ranks.At, too.
type Sweep struct {
	hits, misses         []int32 // of a resample, both may be 0 at a score
	positives, negatives float64
	harmonics            []float64
}

// AUROC returns the result of the function AUROC for the examples of the sweep.
func (s Sweep) AUROC() float64 {
	// Twice the number of pairs in the right order: an integer, so that the area does not depend on
	// rounding and keeps its symmetries exactly.
	pairs, above := 0, 0
	for g, hits := range s.hits {
		pairs += int(s.misses[g]) * (2*above + int(hits))
		above += int(hits)
	}
	return float64(pairs) / 2 / (s.positives * s.negatives)
}

// AUPRC returns the area under the precision-recall curve by the trapezoidal rule. The curve starts at recall 0,
// precision 1 and has one point for each score as threshold. Interpolating between points is a little optimistic;
// AveragePrecision is not. It is NaN without positive examples. A random score gives about the fraction of positives,
// not one half. A constant score gives the middle between 1 and this fraction, because its curve is one straight line.
func (s Sweep) AUPRC() float64 {
	area, recall, precision := 0.0, 0.0, 1.0
	s.curve(func(r, p float64) {
		area += (r - recall) * (p + precision) / 2
		recall, precision = r, p
	})
	return area
}

// AveragePrecision returns sum_k (recall_k - recall_{k-1}) precision_k over the thresholds in descending order, the
// area under the precision-recall curve as a step function. A constant score gives the fraction of positives.
func (s Sweep) AveragePrecision() float64 {
	area, recall := 0.0, 0.0
	s.curve(func(r, p float64) {
		area += (r - recall) * p
		recall = r
	})
	return area
}

// curve yields recall and precision at each threshold.
func (s Sweep) curve(yield func(recall, precision float64)) {
	found, called := 0, 0
	for g, hits := range s.hits {
		if hits+s.misses[g] == 0 {
			continue
		}
		found += int(hits)
		called += int(hits + s.misses[g])
		yield(float64(found)/s.positives, float64(found)/float64(called))
	}
}

// FPRAtTPR returns the smallest false positive rate at which at least the fraction tpr of the positive examples is
// found. The threshold is the largest score t for which the fraction of positive examples with score >= t is at least
// tpr; the result is the fraction of negative examples with score >= t. Examples with equal scores are found together;
// nothing is interpolated. It is 0 if tpr <= 0, 1 if tpr > 1, and NaN without positive examples.
func (s Sweep) FPRAtTPR(tpr float64) float64 {
	switch {
	case s.positives == 0:
		return math.NaN()
	case tpr <= 0:
		return 0
	}
	found, wrong := 0, 0
	for g, hits := range s.hits {
		found += int(hits)
		wrong += int(s.misses[g])
		// 19 of 20 reach 0.95: the quotient is rounded like the literal.
		if float64(found)/s.positives >= tpr {
			break
		}
	}
	return float64(wrong) / s.negatives
}

// EnergyOOD returns the paper's score for examples out of the training distribution (section on out-of-distribution
// detection): the squared distance of each example's energy from the mean energy of examples held out from the training
// set,
//
//	score_i = (E_i - mean(heldOut))^2.
//
// Larger is stranger. The energy itself is no such score, because it can be too low as well as too high. Never take
// heldOut from the test set.
func EnergyOOD(energy, heldOut []float64) []float64 {
	centre := stat.Mean(heldOut, nil)
	score := make([]float64, len(energy))
	for i, e := range energy {
		score[i] = (e - centre) * (e - centre)
	}
	return score
}

// aurc is Outcomes.AURC, where the score is the confidence, and the positive examples are those with a wrong answer.
func (s Sweep) aurc() float64 {
	total, kept, wrong := 0.0, 0, 0
	for g, misses := range s.misses {
		hits := int(s.hits[g])
		size := hits + int(misses)
		// Of j random examples of this confidence the expected number of wrong ones is share j, and the risks add up to
		// sum_{j=1}^size (wrong + share j) / (kept + j).
		share := float64(hits) / float64(max(size, 1))
		total += share*float64(size) + (float64(wrong)-share*float64(kept))*(s.harmonics[kept+size]-s.harmonics[kept])
		kept, wrong = kept+size, wrong+hits
	}
	return total / (s.positives + s.negatives)
}
