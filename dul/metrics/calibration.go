package metrics

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Bin is one bin of a reliability diagram.
type Bin struct {
	Low, High  float64 // confidences of the bin: Low < confidence <= High
	Count      int
	Confidence float64 // mean confidence; 0 in an empty bin
	Accuracy   float64 // fraction of right predictions; 0 in an empty bin
}

// ECE is the expected calibration error sum_b n_b/N |accuracy_b - confidence_b| over the bins of
// Reliability. The paper does not state the number of bins; its code uses 10.
func ECE(probs []float64, classes int, labels []int, bins int) (float64, error) {
	diagram, err := Reliability(probs, classes, labels, bins)
	if err != nil {
		return 0, err
	}
	return calibrationError(diagram, len(labels)), nil
}

// Reliability sorts the examples by their confidence max_c p_c into bins (low, high] of equal width on
// [0, 1]. The edges are the float32 numbers nearest to k/bins as float32 arithmetic gives them, counted
// from the nearer end, since the reference values were computed so: a confidence that is a float32 on
// an edge falls into the same bin.
func Reliability(probs []float64, classes int, labels []int, bins int) ([]Bin, error) {
	confidence, right, err := outcomes(probs, classes, labels, bins)
	if err != nil {
		return nil, err
	}
	diagram := make([]Bin, bins)
	for b := range diagram {
		diagram[b].Low, diagram[b].High = edge(b, bins), edge(b+1, bins)
	}
	for i, c := range confidence {
		b, _ := slices.BinarySearchFunc(diagram, c, func(bin Bin, c float64) int {
			if bin.High < c {
				return -1
			}
			return 1
		})
		// Probabilities in float32 can sum to a little more than 1.
		diagram[min(b, bins-1)].add(c, right[i])
	}
	return finish(diagram), nil
}

// AdaptiveECE is the expected calibration error over bins of equal count: the examples in the order of
// their confidence are cut into bins lists whose lengths differ by at most one, longer ones first.
// Examples of equal confidence keep their order. With fewer examples than bins some bins are empty.
func AdaptiveECE(probs []float64, classes int, labels []int, bins int) (float64, error) {
	confidence, right, err := outcomes(probs, classes, labels, bins)
	if err != nil {
		return 0, err
	}
	order := make([]int, len(confidence))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case confidence[a] < confidence[b]:
			return -1
		case confidence[a] > confidence[b]:
			return 1
		}
		return 0
	})
	diagram := make([]Bin, bins)
	size, longer := len(order)/bins, len(order)%bins
	for b, next := 0, 0; b < bins; b++ {
		count := size
		if b < longer {
			count++
		}
		for _, i := range order[next : next+count] {
			diagram[b].add(confidence[i], right[i])
		}
		next += count
	}
	return calibrationError(finish(diagram), len(order)), nil
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

// outcomes returns each example's confidence and whether its prediction is right.
func outcomes(probs []float64, classes int, labels []int, bins int) (confidence []float64, right []bool, err error) {
	if bins < 1 {
		return nil, nil, fmt.Errorf("metrics: %d bins, want at least 1: %w", bins, ErrValue)
	}
	if err := checkLabelled(probs, classes, labels); err != nil {
		return nil, nil, err
	}
	confidence, right = make([]float64, len(labels)), make([]bool, len(labels))
	for i, label := range labels {
		r := row(probs, classes, i)
		best := floats.MaxIdx(r)
		confidence[i], right[i] = r[best], best == label
	}
	return confidence, right, nil
}
