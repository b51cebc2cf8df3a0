package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
)

// Bin is one bin of a reliability diagram.
type Bin struct {
	Low, High  float64 // confidences of the bin: Low < confidence <= High
	Count      int
	Confidence float64 // mean confidence; 0 in an empty bin
	Accuracy   float64 // fraction of right predictions; 0 in an empty bin
}

// Outcomes is what calibration of the predicted class needs from N predictions. It is small beside their
// table of probabilities, so that it can be resampled quickly (see Bootstrap).
type Outcomes struct {
	Confidence []float64 // probability of the predicted class, max_c p_c
	Right      []bool    // whether the predicted class is the label
}

// NewOutcomes judges each example's most probable class; of equally probable ones the first.
func NewOutcomes(probs []float64, classes int, labels []int) Outcomes {
	checkProbabilities(probs, classes)
	checkLabelled(probs, classes, labels)
	o := Outcomes{Confidence: make([]float64, len(labels)), Right: make([]bool, len(labels))}
	for i, label := range labels {
		r := row(probs, classes, i)
		best := floats.MaxIdx(r)
		o.Confidence[i], o.Right[i] = r[best], best == label
	}
	return o
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

// ECE is the expected calibration error sum_b n_b/N |accuracy_b - confidence_b| over the bins of
// Reliability (Naeini et al. 2015), in [0, 1]. The paper does not state the number of bins; its code
// uses 10.
func (o Outcomes) ECE(bins int) float64 { return calibrationError(o.Reliability(bins), len(o.Right)) }

// Reliability sorts the examples by their confidence into bins (low, high] of equal width on
// [0, 1], in order, empty ones too; an example of confidence 0 is in the first. A confidence within 1e-7 of an edge
// k/bins counts as on it, in the bin below: so do both the float32 and the float64 number nearest to k/bins.
func (o Outcomes) Reliability(bins int) []Bin {
	places, diagram := o.binned(bins), newDiagram(bins)
	for i, c := range o.Confidence {
		diagram[places[i]].add(c, o.Right[i])
	}
	return finish(diagram)
}

// ECEAt returns the function of a resample that is the ECE of the outcomes in it, for Bootstrap.
func (o Outcomes) ECEAt(bins int) func(counts []float64) float64 {
	places := o.binned(bins)
	gaps := make([]float64, len(places)) // right or not, less the confidence
	for i, c := range o.Confidence {
		if gaps[i] = -c; o.Right[i] {
			gaps[i] = 1 - c
		}
	}
	return func(counts []float64) float64 {
		sums := make([]float64, bins)
		for i, count := range counts {
			sums[places[i]] += count * gaps[i]
		}
		return floats.Norm(sums, 1) / floats.Sum(counts)
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

// ClasswiseECE is the calibration error of every class's probability, not only the predicted one's,
// averaged over the classes (Kull et al. 2019; static calibration error in Nixon et al. 2019):
//
//	1/C sum_c sum_b n_bc/N |frequency_bc - probability_bc|,
//
// where the bins of class c hold all N examples by their probability of c, frequency is the fraction of
// a bin's examples with label c and probability their mean probability of it. Bins are those of
// Reliability. With many classes nearly all probabilities are close to 0 and the number is small: it
// compares methods on one data set, not data sets.
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

// ECEFloor is the ECE of a perfectly calibrated model with these confidences: the mean over draws of outcomes that are right
// with exactly their confidence. It is not 0, since ECE adds absolute values; an ECE near it cannot be told from perfect
// calibration. The same seed gives the same draws.
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

// AdaptiveECE is the expected calibration error over bins of equal count: the examples in the order of
// their confidence are cut into bins lists whose lengths differ by at most one, longer ones first.
// Examples of equal confidence count alike, each with the fraction of right ones among them, so that their order has no
// part in it. With fewer examples than bins some bins are empty.
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
