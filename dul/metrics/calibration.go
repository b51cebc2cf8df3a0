package metrics

import (
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
	checkLabelled(probs, classes, labels)
	o := Outcomes{Confidence: make([]float64, len(labels)), Right: make([]bool, len(labels))}
	for i, label := range labels {
		r := row(probs, classes, i)
		best := floats.MaxIdx(r)
		o.Confidence[i], o.Right[i] = r[best], best == label
	}
	return o
}

// ECE is the expected calibration error sum_b n_b/N |accuracy_b - confidence_b| over the bins of
// Reliability (Naeini et al. 2015), in [0, 1]. The paper does not state the number of bins; its code
// uses 10.
func (o Outcomes) ECE(bins int) float64 { return calibrationError(o.Reliability(bins), len(o.Right)) }

// Reliability sorts the examples by their confidence into bins (low, high] of equal width on
// [0, 1], in order, empty ones too; an example of confidence 0 is in the first. The edges are the float32 numbers nearest to
// k/bins as float32 arithmetic gives them, counted from the nearer end, since the reference values were
// computed so: a confidence that is a float32 on an edge falls into the same bin.
func (o Outcomes) Reliability(bins int) []Bin {
	places, diagram := o.binned(bins), newDiagram(bins)
	for i, c := range o.Confidence {
		diagram[places[i]].add(c, o.Right[i])
	}
	return finish(diagram)
}

// ECEAt returns the function of indices that is the ECE of the outcomes there, each as often as it is named, for Bootstrap.
func (o Outcomes) ECEAt(bins int) func(indices []int) float64 {
	places := o.binned(bins)
	return func(indices []int) float64 {
		diagram := make([]Bin, bins)
		for _, i := range indices {
			diagram[places[i]].add(o.Confidence[i], o.Right[i])
		}
		return calibrationError(finish(diagram), len(indices))
	}
}

// binned is the bin of every confidence.
func (o Outcomes) binned(bins int) []int {
	same("right", len(o.Right), "confidence", len(o.Confidence))
	diagram, places := newDiagram(bins), make([]int, len(o.Confidence))
	for i, c := range o.Confidence {
		places[i] = binOf(diagram, c)
	}
	return places
}

// newDiagram returns empty bins of equal width.
func newDiagram(bins int) []Bin {
	diagram := make([]Bin, bins)
	for b := range diagram {
		diagram[b].Low, diagram[b].High = edge(b, bins), edge(b+1, bins)
	}
	return diagram
}

// binOf is the bin of a probability p. Float32 ones can sum, and so each be, a little above 1. Of NaN it is the first.
func binOf(diagram []Bin, p float64) int {
	last := len(diagram) - 1
	b := max(0, min(int(p*float64(len(diagram))), last))
	for b < last && p > diagram[b].High {
		b++
	}
	for b > 0 && p <= diagram[b].Low {
		b--
	}
	return b
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
	checkLabelled(probs, classes, labels)
	total := 0.0
	for c := range classes {
		diagram := newDiagram(bins)
		for i, label := range labels {
			p := probs[i*classes+c]
			diagram[binOf(diagram, p)].add(p, label == c)
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
// Examples of equal confidence keep their order. With fewer examples than bins some bins are empty.
func (o Outcomes) AdaptiveECE(bins int) float64 {
	order := ascending(o.Confidence)
	diagram := make([]Bin, bins)
	size, longer := len(order)/bins, len(order)%bins
	for b, next := 0, 0; b < bins; b++ {
		count := size
		if b < longer {
			count++
		}
		for _, e := range order[next : next+count] {
			diagram[b].add(e.value, o.Right[e.index])
		}
		next += count
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

// edge is edge k of bins equal bins on [0, 1] in float32 arithmetic.
func edge(k, bins int) float64 {
	step := 1 / float32(bins)
	if 2*k < bins+1 {
		return float64(step * float32(k))
	}
	return float64(1 - step*float32(bins-k))
}
