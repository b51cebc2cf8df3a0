package metrics

import (
	"testing"
)

// AURC with ties is the average over the orders of the tied examples.
func TestAURCAveragesOverOrders(t *testing.T) {
	confidence := []float64{3, 2, 2, 2, 1}
	right := []bool{false, true, false, true, false}
	total, orders := 0.0, 0.0
	for _, p := range [][]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		order := append(append([]int{0}, p...), 4)
		wrong := 0.0
		for k, i := range order {
			if !right[i] {
				wrong++
			}
			total += wrong / float64(k+1) / 5
		}
		orders++
	}
	near(t, "AURC", []float64{AURC(confidence, right)}, []float64{total / orders})
}
