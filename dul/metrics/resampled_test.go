package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// The standard error of a mean is known; intervals of a difference without any cover 0 as often as they say, and the
// p-values are uniform.
func TestBootstrapDifferenceHolds(t *testing.T) {
	const runs, n, replicates, level = 800, 200, 300, 0.9
	rng := rand.New(rand.NewPCG(71, 72))
	covered, small := 0, 0
	for run := range runs {
		a, b := make([]float64, n), make([]float64, n)
		for i := range a {
			shared := rng.NormFloat64()
			a[i], b[i] = shared+0.3*rng.NormFloat64(), shared+0.3*rng.NormFloat64()
		}
		drawn := Replicates([]int{n}, replicates, uint64(run), func(counts []float64) []float64 {
			first := MeanAt(a)(counts)
			return []float64{first, first - MeanAt(b)(counts)}
		})
		differences := make([]float64, replicates)
		for k := range drawn {
			differences[k] = drawn[k][1]
		}
		d := BootstrapDifference(stat.Mean(a, nil)-stat.Mean(b, nil), differences, level)
		if d.Low <= 0 && 0 <= d.High {
			covered++
		}
		if d.P < 0.25 {
			small++
		}
		if (d.P < 1-level) != (d.Low > 0 || d.High < 0) {
			t.Fatalf("p = %v, but the interval is [%v, %v]", d.P, d.Low, d.High)
		}
	}
	for _, c := range []struct {
		name      string
		count     int
		want, off float64 // off is what few replicates and examples may shift
	}{{"covered", covered, level, 0.005}, {"p-values below 0.25", small, 0.25, 0.005}} {
		got := float64(c.count) / runs
		if z := max(0, math.Abs(got-c.want)-c.off) / math.Sqrt(c.want*(1-c.want)/runs); z > 4 {
			t.Errorf("%s: %v of the time, want %v, z = %.1f", c.name, got, c.want, z)
		}
	}
}

func TestBootstrapDifferenceWithoutSpread(t *testing.T) {
	for _, c := range []struct{ value, p float64 }{{0, 1}, {0.5, 0}} {
		d := BootstrapDifference(c.value, []float64{c.value, c.value}, 0.95)
		if d.P != c.p || d.Low != c.value || d.High != c.value {
			t.Errorf("of %v: %+v", c.value, d)
		}
	}
}

// On a resample, the calibration error is that of the resampled examples.
func TestECEOfResampledExamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 74))
	for range 50 {
		n, bins := 5+rng.IntN(40), 1+rng.IntN(12)
		all, picked, counts := Outcomes{}, Outcomes{}, make([]float64, n)
		for range n {
			all.Confidence, all.Right = append(all.Confidence, float64(rng.IntN(10))/10), append(all.Right, rng.IntN(3) > 0)
		}
		for range n {
			i := rng.IntN(n)
			counts[i]++
			picked.Confidence, picked.Right = append(picked.Confidence, all.Confidence[i]), append(picked.Right, all.Right[i])
		}
		near(t, "ECE", []float64{all.ECEAt(bins)(counts)}, []float64{picked.ECE(bins)})
	}
}

// With all confidences p in one bin, ECE of a calibrated model is |k/n - p| with k binomial, whose mean is about
// sqrt(2 p (1-p) / (pi n)).
func TestECEFloor(t *testing.T) {
	const n, draws, p = 2000, 4000, 0.63
	o := Outcomes{Confidence: slices.Repeat([]float64{p}, n), Right: make([]bool, n)}
	got := o.ECEFloor(10, draws, 5)
	sigma := math.Sqrt(p * (1 - p) / n)
	want, spread := sigma*math.Sqrt(2/math.Pi), sigma*math.Sqrt(1-2/math.Pi)
	if z := (got - want) / (spread / math.Sqrt(draws)); math.Abs(z) > 4 {
		t.Errorf("%v, want %v, z = %.1f", got, want, z)
	}
	if again := o.ECEFloor(10, draws, 5); again != got {
		t.Errorf("the same seed gives %v and %v", got, again)
	}
}
