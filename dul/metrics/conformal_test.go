package metrics

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The ranks are those of exact fractions. Scores 1 to n in a random order are their own ranks.
func TestConformalQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 0))
	for _, c := range []struct {
		n     int
		level float64
		want  float64
	}{
		{9, 0.8, 8}, {9, 0.9, 9}, {9, 0.95, math.Inf(1)}, {19, 0.8, 16}, {19, 0.9, 18}, {19, 0.95, 19}, {99, 0.8, 80}, {99, 0.9, 90}, {99, 0.95, 95},
		{99, 0.07, 7}, {18, 0.95, math.Inf(1)}, {0, 0.5, math.Inf(1)}, {3, 0.01, 1},
	} {
		var scores []float64
		for _, i := range rng.Perm(c.n) {
			scores = append(scores, float64(i+1))
		}
		if got := ConformalQuantile(scores, c.level); got != c.want {
			t.Errorf("%d scores at %g: %g, want %g", c.n, c.level, got, c.want)
		}
	}
	if got := ConformalQuantile([]float64{math.NaN(), 1, 2}, 0.7); !math.IsInf(got, 1) {
		t.Errorf("with a NaN: %g", got)
	}

	// A new score of the same distribution is within the bound with probability rank/(n + 1).
	const trials = 20000
	inside := 0.0
	for range trials {
		scores := make([]float64, 19)
		for i := range scores {
			scores[i] = rng.ExpFloat64()
		}
		if rng.ExpFloat64() <= ConformalQuantile(scores, 0.87) {
			inside++
		}
	}
	if z := (inside/trials - 18.0/20) / math.Sqrt(0.9*0.1/trials); math.Abs(z) > 4 {
		t.Errorf("%g of the new scores are within the bound, z %g", inside/trials, z)
	}
}
