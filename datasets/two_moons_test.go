package datasets

import (
	"math"
	"slices"
	"testing"
)

func TestTwoMoonsStatistics(t *testing.T) {
	const n, sd = 100000, 0.1
	points, labels := TwoMoons(n, sd, 3)
	if len(points) != 2*n || len(labels) != n {
		t.Fatalf("%d coordinates, %d labels", len(points), len(labels))
	}
	var ones, squares, upper float64
	for i, label := range labels {
		x, y := points[2*i], points[2*i+1]
		if label == 1 { // to the place of class 0
			ones++
			x, y = 1-x, 0.5-y
		}
		squares += x*x + y*y
		upper += y
	}
	// Each z is standard normal if the claim holds. With r² = 1 + 2 u·ε + |ε|²:
	// E r² = 1 + 2 sd², Var r² = 4 sd² + 4 sd⁴; E y = 2/π, Var y = 1/2 - 4/π² + sd².
	root := math.Sqrt(n)
	for _, c := range []struct {
		name string
		z    float64
	}{
		{"share of class 1", (ones/n - 0.5) / 0.5 * root},
		{"squared radius", (squares/n - 1 - 2*sd*sd) / math.Sqrt(4*sd*sd+4*math.Pow(sd, 4)) * root},
		{"mean height", (upper/n - 2/math.Pi) / math.Sqrt(0.5-4/(math.Pi*math.Pi)+sd*sd) * root},
	} {
		t.Run(c.name, func(t *testing.T) {
			if math.Abs(c.z) > 4 {
				t.Errorf("%s: z = %.2f", c.name, c.z)
			}
		})
	}
}

func TestTwoMoonsDependsOnSeedOnly(t *testing.T) {
	a, ofA := TwoMoons(40, 0.1, 1)
	b, ofB := TwoMoons(40, 0.1, 1)
	c, _ := TwoMoons(40, 0.1, 2)
	if !slices.Equal(a, b) || !slices.Equal(ofA, ofB) {
		t.Error("the same seed gave other data")
	}
	if slices.Equal(a, c) {
		t.Error("another seed gave the same data")
	}
	requirePanic(t, func() { TwoMoons(-1, 0.1, 1) })
	requirePanic(t, func() { TwoMoons(1, math.NaN(), 1) })
}
