package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"densityuncertainty/environment/must"
)

// By hand: in the order of confidence right, wrong, then two tied of which one is wrong, then right.
// The k most confident have 0, 1, 1.5 (expected), 2 and 2 errors.
func TestAURCByHand(t *testing.T) {
	confidence := []float64{0.6, 0.9, 0.5, 0.8, 0.6}
	right := []bool{true, true, true, false, false}
	near(t, "AURC", []float64{must.Get(AURC(confidence, right))(t)}, []float64{(0 + 0.5 + 1.5/3 + 2.0/4 + 2.0/5) / 5})
}

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
	near(t, "AURC", []float64{must.Get(AURC(confidence, right))(t)}, []float64{total / orders})
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
		near(t, "AURC of a constant", []float64{must.Get(AURC(same, right))(t)}, []float64{errors})
		area := must.Get(AURC(confidence, right))(t)
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
		if b, w := must.Get(AURC(best, right))(t), must.Get(AURC(worst, right))(t); area < b-1e-12 || area > w+1e-12 {
			t.Errorf("AURC is %v, outside of [%v, %v]", area, b, w)
		}
		for i := range confidence {
			confidence[i] = math.Exp(3*confidence[i]) - 7
		}
		if again := must.Get(AURC(confidence, right))(t); again != area {
			t.Errorf("AURC is %v after a monotone map, %v before", again, area)
		}
	}
}
