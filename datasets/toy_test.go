package datasets

import (
	"fmt"
	"math"
	"testing"

	"densityuncertainty/environment/must"
)

func TestToyCubicStatistics(t *testing.T) {
	const n, sd = 100000, 3.0
	r := ToyCubic(n, sd, 7)
	if r.N != n || r.D != 1 || len(r.X) != n || len(r.Y) != n {
		t.Fatalf("N = %d, D = %d, %d inputs, %d targets", r.N, r.D, len(r.X), len(r.Y))
	}
	var right, absX, noise, noise2, noise4 float64
	for i, x := range r.X {
		if a := math.Abs(x); a < 2 || a > 4 {
			t.Fatalf("x = %v lies outside [-4, -2] ∪ [2, 4]", x)
		}
		if x > 0 {
			right++
		}
		absX += math.Abs(x)
		e := r.Y[i] - x*x*x
		noise += e
		noise2 += e * e
		noise4 += e * e * e * e
	}
	root := math.Sqrt(n)
	// Each z is standard normal up to terms of order 1/sqrt n, if the claim holds:
	// Var 1[x > 0] = 1/4; Var |x| = 2²/12; Var e = 9; Var e² = 2·9²; Var e⁴ = 96·3⁸.
	must.Z(t, (right/n-0.5)/0.5*root, "share of x > 0")
	must.Z(t, (absX/n-3)/math.Sqrt(4.0/12)*root, "mean of |x|")
	must.Z(t, noise/n/sd*root, "mean noise")
	must.Z(t, (noise2/n-sd*sd)/(math.Sqrt2*sd*sd)*root, "noise variance")
	must.Z(t, (noise4/n-3*math.Pow(sd, 4))/(math.Sqrt(96)*math.Pow(sd, 4))*root, "noise kurtosis")
}

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
	must.Z(t, (ones/n-0.5)/0.5*root, "share of class 1")
	must.Z(t, (squares/n-1-2*sd*sd)/math.Sqrt(4*sd*sd+4*math.Pow(sd, 4))*root, "squared radius")
	must.Z(t, (upper/n-2/math.Pi)/math.Sqrt(0.5-4/(math.Pi*math.Pi)+sd*sd)*root, "mean height")
}

// Results were kept of these draws.
func TestToyDrawsStay(t *testing.T) {
	points, labels := TwoMoons(2, 0.1, 3)
	cubic := ToyCubic(2, 3, 3)
	got := fmt.Sprintf("%.6f %d %.6f %.6f", points, labels, cubic.X, cubic.Y)
	if want := "[1.925782 -0.064992 0.322673 -0.131589] [1 1] [-2.132221 2.675315] [-9.864453 19.359714]"; got != want {
		t.Errorf("drew %s, want %s", got, want)
	}
}
