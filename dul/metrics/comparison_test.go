package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/environment/must"
)

// By hand: differences 1, 2, 3 have mean 2 and s = 1. With two degrees of freedom the quantile p of Student's
// distribution is (2p - 1) sqrt(2 / (4 p (1 - p))), and P = 1 - t/sqrt(2 + t^2).
func TestPairedDifferenceByHand(t *testing.T) {
	quantile := 0.95 * math.Sqrt(2/(4*0.975*0.025))
	a, b := []float64{5, 4, 3}, []float64{4, 2, 0}
	for _, c := range []struct {
		name           string
		a, b           []float64
		ratio          float64
		mean, reach, p float64
	}{
		{"independent", a, b, 0, 2, quantile / math.Sqrt(3), 1 - math.Sqrt(12)/math.Sqrt(14)},
		{"splits of 9 to 1", a, b, 1.0 / 9, 2, quantile * 2 / 3, 1 - 3/math.Sqrt(11)},
		{"exchanged", b, a, 0, -2, quantile / math.Sqrt(3), 1 - math.Sqrt(12)/math.Sqrt(14)},
		{"the same", a, a, 0, 0, 0, 1},
		{"always one more", []float64{2, 3}, []float64{1, 2}, 0, 1, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := must.Get(PairedDifference(c.a, c.b, c.ratio, 0.95))(t)
			near(t, "difference", []float64{d.Mean, d.Low, d.High, d.P}, []float64{c.mean, c.mean - c.reach, c.mean + c.reach, c.p})
		})
	}
}

// Differences with the correlation rho = r/(1 + r) that the correction assumes, for the ratio r, make its
// interval exact: it covers the truth as often as its level says, and p-values are uniform. Without the
// correction the interval covers too rarely.
func TestPairedDifferenceCovers(t *testing.T) {
	const runs, n, truth, level = 20000, 5, 0.3, 0.9
	for _, ratio := range []float64{0, 1.0 / 9, 0.5} {
		t.Run(fmt.Sprintf("ratio=%.2f", ratio), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(51, 52))
			rho := ratio / (1 + ratio)
			covered, naive, rejected := 0.0, 0.0, 0.0
			for range runs {
				shared := math.Sqrt(rho) * rng.NormFloat64()
				a, b := make([]float64, n), make([]float64, n)
				for i := range a {
					b[i] = rng.NormFloat64()
					a[i] = b[i] + shared + math.Sqrt(1-rho)*rng.NormFloat64() + truth
				}
				d := must.Get(PairedDifference(a, b, ratio, level))(t)
				if d.Low <= truth && truth <= d.High {
					covered++
				}
				if d := must.Get(PairedDifference(a, b, 0, level))(t); d.Low <= truth && truth <= d.High {
					naive++
				}
				floats.AddConst(-truth, a)
				if must.Get(PairedDifference(a, b, ratio, level))(t).P < 0.2 {
					rejected++
				}
			}
			if z := (covered/runs - level) / math.Sqrt(level*(1-level)/runs); math.Abs(z) > 4 {
				t.Errorf("covers %v of the time, z = %.1f", covered/runs, z)
			}
			if z := (rejected/runs - 0.2) / math.Sqrt(0.2*0.8/runs); math.Abs(z) > 4 {
				t.Errorf("P is below 0.2 %v of the time, z = %.1f", rejected/runs, z)
			}
			if ratio > 0 && naive/runs > level-0.02 {
				t.Errorf("without the correction the interval covers %v of the time", naive/runs)
			}
		})
	}
}

func TestHolm(t *testing.T) {
	for _, c := range []struct {
		name    string
		p, want []float64
	}{
		{"one", []float64{0.04}, []float64{0.04}},
		{"by hand", []float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		{"tied", []float64{0.02, 0.02}, []float64{0.04, 0.04}},
		{"at most 1", []float64{0.5, 1, 0.7}, []float64{1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) { near(t, "adjusted", must.Get(Holm(c.p))(t), c.want) })
	}
}

// Of true hypotheses with independent p-values, a family of m has a rejection with probability
// 1 - (1 - alpha/m)^m, which is at most alpha.
func TestHolmFamilyWiseError(t *testing.T) {
	const runs, m, alpha = 20000, 5, 0.2
	rng := rand.New(rand.NewPCG(53, 54))
	wrong := 0.0
	for range runs {
		p := make([]float64, m)
		for i := range p {
			p[i] = rng.Float64()
		}
		if floats.Min(must.Get(Holm(p))(t)) <= alpha {
			wrong++
		}
	}
	want := 1 - math.Pow(1-alpha/m, m)
	if z := (wrong/runs - want) / math.Sqrt(want*(1-want)/runs); math.Abs(z) > 4 {
		t.Errorf("a rejection in %v of the families, want %v, z = %.1f", wrong/runs, want, z)
	}
}

func TestSpearmanByHand(t *testing.T) {
	for _, c := range []struct {
		name string
		x, y []float64
		want float64
	}{
		{"growing", []float64{1, 2, 5, 9}, []float64{-3, 0, 0.1, 1e9}, 1},
		{"falling", []float64{1, 2, 5, 9}, []float64{4, 3, 2, 1}, -1},
		// 1 - 6 sum d^2 / (n (n^2 - 1)) with differences of ranks 1, -1, 0, 0.
		{"without ties", []float64{1, 2, 3, 4}, []float64{2, 1, 3, 4}, 1 - 6*2/60.0},
		// Ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4: covariance 4.5, squares 4.5 and 5.
		{"ties", []float64{1, 2, 2, 3}, []float64{1, 3, 2, 4}, 4.5 / math.Sqrt(4.5*5)},
		// Ranks 2, 2, 2, 4 and 1.5, 1.5, 3.5, 3.5.
		{"ties in both", []float64{0, 0, 0, 1}, []float64{7, 7, 8, 8}, 1 / math.Sqrt(3)},
	} {
		t.Run(c.name, func(t *testing.T) {
			near(t, "correlation", []float64{must.Get(Spearman(c.x, c.y))(t)}, []float64{c.want})
			near(t, "exchanged", []float64{must.Get(Spearman(c.y, c.x))(t)}, []float64{c.want})
		})
	}
}

// For normal variables of correlation r it is 6/pi asin(r/2) (Kendall 1948), of which the estimate from n
// pairs has a standard error of at most 1/sqrt(n); a growing map changes nothing.
func TestSpearmanOfNormalVariables(t *testing.T) {
	const n = 40000
	rng := rand.New(rand.NewPCG(55, 56))
	for _, r := range []float64{-0.8, 0, 0.5} {
		x, y, mapped := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = rng.NormFloat64()
			y[i] = r*x[i] + math.Sqrt(1-r*r)*rng.NormFloat64()
			mapped[i] = math.Exp(y[i])
		}
		got := must.Get(Spearman(x, y))(t)
		if want := 6 / math.Pi * math.Asin(r/2); math.Abs(got-want) > 4/math.Sqrt(n) {
			t.Errorf("correlation %v: got %v, want %v", r, got, want)
		}
		if again := must.Get(Spearman(x, mapped))(t); again != got {
			t.Errorf("%v after a growing map, %v before", again, got)
		}
	}
}

func ExamplePairedDifference() {
	// Errors of two methods on the same five splits with one test example for nine training examples.
	d, err := PairedDifference([]float64{0.61, 0.58, 0.66, 0.60, 0.63}, []float64{0.64, 0.62, 0.67, 0.66, 0.65}, 1.0/9, 0.95)
	fmt.Printf("%.3f, from %.3f to %.3f, p = %.3f, %v\n", d.Mean, d.Low, d.High, d.P, err)
	// Output: -0.032, from -0.062 to -0.002, p = 0.041, <nil>
}
