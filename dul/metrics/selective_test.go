package metrics

import (
	"math"
	"math/rand/v2"
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

func TestSelectiveProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 200 {
		n := 1 + rng.IntN(60)
		confidence, right, same := make([]float64, n), make([]bool, n), make([]float64, n)
		wrong := 0
		for i := range n {
			confidence[i], right[i] = float64(rng.IntN(20))/20, rng.IntN(3) > 0
			if !right[i] {
				wrong++
			}
		}
		errors := float64(wrong) / float64(n)
		near(t, "AURC of a constant", []float64{AURC(same, right)}, []float64{errors})
		area := AURC(confidence, right)
		if area < 0 || area > 1 {
			t.Errorf("AURC is %v", area)
		}
		// Knowing what is wrong is best, being sure of just that is worst.
		best, worst := make([]float64, n), make([]float64, n)
		for i := range n {
			if right[i] {
				best[i] = 1
			} else {
				worst[i] = 1
			}
		}
		if b, w := AURC(best, right), AURC(worst, right); area < b-1e-12 || area > w+1e-12 {
			t.Errorf("AURC is %v, outside of [%v, %v]", area, b, w)
		}
		for i := range confidence {
			confidence[i] = math.Exp(3*confidence[i]) - 7
		}
		if again := AURC(confidence, right); again != area {
			t.Errorf("AURC is %v after a monotone map, %v before", again, area)
		}
	}
}
