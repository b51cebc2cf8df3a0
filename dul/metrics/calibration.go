package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Bin is one bin of a reliability diagram.
type Bin struct {
	Low, High  float64 // bounds of the bin: Low < confidence <= High
	Count      int
	Confidence float64 // mean confidence; 0 in an empty bin
	Accuracy   float64 // fraction of right predictions; 0 in an empty bin
}

// Outcomes has what calibration of the predicted class needs from N predictions. It is small, so that it can be
// resampled quickly (see Bootstrap).
type Outcomes struct {
	Confidence []float64 // probability of the predicted class, max_c p_c
	Right      []bool    // whether the predicted class is the label
}

// NewOutcomes returns the confidence of each example's most probable class, and whether it is the label. Of equally
// probable classes the first counts.
func NewOutcomes(probs []float64, classes int, labels []int) Outcomes {
	checkProbabilities(probs, classes)
	checkLabelled(probs, classes, labels)
	o := Outcomes{Confidence: make([]float64, len(labels)), Right: make([]bool, len(labels))}
	for i, label := range labels {
		r := row(probs, classes, i)
		o.Confidence[i], o.Right[i] = slices.Max(r), floats.MaxIdx(r) == label
	}
	return o
}

// AURC returns the area under the risk-coverage curve (El-Yaniv and Wiener 2010, Geifman et al. 2019), 1/N sum_{k=1}^N
// risk_k, where risk_k is the fraction of wrong answers among the k most confident examples. It is between 0 (no
// errors) and 1; smaller is better. It depends on the accuracy too: a constant confidence gives 1 - accuracy. Examples
// of equal confidence count by their average over all orders.
//
// For AURC alone, Confidence may be any score that is larger for answers that are trusted more, such as the negative
// entropy.
func (o Outcomes) AURC() float64 { return o.ranks().Sweep().aurc() }

// AURCAt returns a function for Bootstrap that computes the AURC of a resample.
func (o Outcomes) AURCAt() func(counts []float64) float64 { return o.ranks().At(Sweep.aurc) }

// ranks are the wrong answers by confidence.
func (o Outcomes) ranks() *Ranks {
	wrong := make([]bool, len(o.Right))
	for i, right := range o.Right {
		wrong[i] = !right
	}
	return NewRanks(o.Confidence, wrong)
}

// check panics if a confidence is no probability.
func (o Outcomes) check() {
	same("right", len(o.Right), "confidence", len(o.Confidence))
	for i, p := range o.Confidence {
		if p < 0 || p > 1+sumOff {
			panic(fmt.Sprintf("metrics: the confidence of example %d is %v; it must be a probability", i, p))
		}
	}
}

// ECE returns the expected calibration error sum_b n_b/N |accuracy_b - confidence_b| over the bins of Reliability
// (Naeini et al. 2015), in [0, 1]. The paper does not state the number of bins; the authors' code has 10.
func (o Outcomes) ECE(bins int) float64 { return calibrationError(o.Reliability(bins), len(o.Right)) }

// Reliability returns the bins of a reliability diagram: the examples by confidence in bins (low, high] of equal width
// on [0, 1], in order, empty bins too. Confidence 0 is in the first bin. A confidence within 1e-7 above an edge k/bins
// counts as on it, so that float32 and float64 numbers nearest to k/bins are in the same bin.
func (o Outcomes) Reliability(bins int) []Bin {
	places, diagram := o.binned(bins), newDiagram(bins)
	for i, c := range o.Confidence {
		diagram[places[i]].add(c, o.Right[i])
	}
	return finish(diagram)
}

// ECEAt returns a function for Bootstrap that computes the ECE of a resample.
func (o Outcomes) ECEAt(bins int) func(counts []float64) float64 {
	gaps, members := make([]float64, len(o.Right)), make([][]int32, bins)
	for i, b := range o.binned(bins) {
		if gaps[i] = -o.Confidence[i]; o.Right[i] { // right or not, less the confidence
			gaps[i] = 1 - o.Confidence[i]
		}
		members[b] = append(members[b], int32(i))
	}
	return func(counts []float64) float64 {
		same("counts", len(counts), "confidence", len(gaps))
		total := 0.0
		for _, bin := range members {
			sum := 0.0
			for _, i := range bin {
				sum += counts[i] * gaps[i]
			}
			total += math.Abs(sum)
		}
		return total / floats.Sum(counts)
	}
}

// binned is the bin of every confidence.
func (o Outcomes) binned(bins int) []int {
	o.check()
	places := make([]int, len(o.Confidence))
	for i, c := range o.Confidence {
		places[i] = binOf(bins, c)
	}
	return places
}

// newDiagram returns empty bins of equal width.
func newDiagram(bins int) []Bin {
	diagram := make([]Bin, bins)
	for b := range diagram {
		diagram[b].Low, diagram[b].High = float64(b)/float64(bins), float64(b+1)/float64(bins)
	}
	return diagram
}

// onEdge is how far above an edge a probability may be and still counts as on it: the rounding of a float32.
const onEdge = 1e-7

// binOf is the bin of a probability p. Of NaN it is the first.
func binOf(bins int, p float64) int {
	return max(0, min(int(math.Ceil((p-onEdge)*float64(bins)))-1, bins-1))
}

// ClasswiseECE returns the calibration error of every class's probability, not only the predicted class's, averaged
// over the classes (Kull et al. 2019; static calibration error in Nixon et al. 2019):
//
//	1/C sum_c sum_b n_bc/N |frequency_bc - probability_bc|.
//
// The bins of class c hold all N examples by their probability of c, in the bins of Reliability. frequency is the
// fraction of a bin's examples with label c, and probability their mean probability of c. With many classes nearly all
// probabilities are close to 0 and the result is small, so compare methods on one data set, not data sets.
func ClasswiseECE(probs []float64, classes int, labels []int, bins int) float64 {
	checkProbabilities(probs, classes)
	checkLabelled(probs, classes, labels)
	total := 0.0
	for c := range classes {
		diagram := newDiagram(bins)
		for i, label := range labels {
			p := probs[i*classes+c]
			diagram[binOf(bins, p)].add(p, label == c)
		}
		total += calibrationError(finish(diagram), len(labels)) / float64(classes)
	}
	return total
}

// ECEFloor returns the mean ECE of a perfectly calibrated model with these confidences, over draws of outcomes that are
// right with exactly their confidence. It is above 0, because ECE adds absolute values. An ECE near it cannot be
// distinguished from perfect calibration. The same seed gives the same draws.
func (o Outcomes) ECEFloor(bins, draws int, seed uint64) float64 {
	places := o.binned(bins)
	rng := rand.New(rand.NewPCG(seed, floorStream))
	total := 0.0
	for range draws {
		diagram := make([]Bin, bins)
		for i, p := range o.Confidence {
			diagram[places[i]].add(p, rng.Float64() < p)
		}
		total += calibrationError(finish(diagram), len(places))
	}
	return total / float64(draws)
}

// floorStream keeps the draws apart from others made from the same seed.
const floorStream = 0x666c6f6f72

// AdaptiveECE returns the expected calibration error over bins of equal count: examples sorted by confidence are cut
// into bins whose sizes differ by at most one, larger bins first. Examples of equal confidence all count as the
// fraction of right ones among them, so that their order does not matter. With fewer examples than bins some bins are
// empty.
func (o Outcomes) AdaptiveECE(bins int) float64 {
	o.check()
	order := ascending(o.Confidence)
	accuracy := make([]float64, len(order)) // in this order
	for first, end := 0, 0; first < len(order); first = end {
		right := 0
		for end = first; end < len(order) && (end == first || order[end].value == order[first].value); end++ {
			if o.Right[order[end].index] {
				right++
			}
		}
		for k := first; k < end; k++ {
			accuracy[k] = float64(right) / float64(end-first)
		}
	}
	diagram := make([]Bin, bins)
	size, longer := len(order)/bins, len(order)%bins
	for b, next := 0, 0; b < bins; b++ {
		end := next + size
		if b < longer {
			end++
		}
		for ; next < end; next++ {
			diagram[b].Count++
			diagram[b].Confidence += order[next].value
			diagram[b].Accuracy += accuracy[next]
		}
	}
	return calibrationError(finish(diagram), len(order))
}

// add counts an example; the means are sums until finish.
func (b *Bin) add(confidence float64, right bool) {
	b.Count++
	b.Confidence += confidence
	if right {
		b.Accuracy++
	}
}

// finish turns the sums into means.
func finish(diagram []Bin) []Bin {
	for i := range diagram {
		if n := float64(diagram[i].Count); n > 0 {
			diagram[i].Confidence /= n
			diagram[i].Accuracy /= n
		}
	}
	return diagram
}

func calibrationError(diagram []Bin, n int) float64 {
	total := 0.0
	for _, b := range diagram {
		total += float64(b.Count) / float64(n) * math.Abs(b.Accuracy-b.Confidence)
	}
	return total
}
