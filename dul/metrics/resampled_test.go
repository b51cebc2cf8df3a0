package metrics

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/environment/must"
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
		drawn, err := Replicates([]int{n}, replicates, uint64(run), func(indices []int) ([]float64, error) {
			first, err1 := MeanAt(a)(indices)
			second, err2 := MeanAt(b)(indices)
			return []float64{first, first - second}, errors.Join(err1, err2)
		})
		if err != nil {
			t.Fatal(err)
		}
		differences := make([]float64, replicates)
		for k := range drawn {
			differences[k] = drawn[k][1]
		}
		d, err := BootstrapDifference(stat.Mean(a, nil)-stat.Mean(b, nil), differences, level)
		if err != nil {
			t.Fatal(err)
		}
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
		d, err := BootstrapDifference(c.value, []float64{c.value, c.value}, 0.95)
		if err != nil || d.P != c.p || d.Low != c.value || d.High != c.value {
			t.Errorf("of %v: %+v, %v", c.value, d, err)
		}
	}
	for _, c := range []struct {
		name       string
		value      float64
		replicates []float64
		level      float64
		want       error
	}{
		{"one replicate", 1, []float64{1}, 0.9, ErrEmpty}, {"none", 1, nil, 0.9, ErrEmpty}, {"no number", math.NaN(), []float64{1, 2}, 0.9, ErrValue},
		{"level", 1, []float64{1, 2}, 1, ErrValue}, {"replicate", 1, []float64{1, math.Inf(1)}, 0.9, ErrValue},
	} {
		if _, err := BootstrapDifference(c.value, c.replicates, c.level); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestReplicatesWithOtherLengths(t *testing.T) {
	calls := 0
	_, err := Replicates([]int{3}, 5, 1, func([]int) ([]float64, error) {
		calls++
		return make([]float64, calls), nil
	})
	if !errors.Is(err, ErrLength) {
		t.Errorf("%v, want %v", err, ErrLength)
	}
}

// On a resample, the sweep's AURC is that of the resampled examples. So is the calibration error. Some confidences are equal.
func TestOfResampledExamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 74))
	for range 50 {
		n := 5 + rng.IntN(40)
		confidence, wrong := make([]float64, n), make([]bool, n)
		for i := range n {
			confidence[i], wrong[i] = float64(rng.IntN(10))/10, rng.IntN(3) == 0
		}
		ranks, err := NewRanks(confidence, wrong)
		if err != nil {
			t.Fatal(err)
		}
		indices := make([]int, n)
		for i := range indices {
			indices[i] = rng.IntN(n)
		}
		var picked []float64
		var all, right []bool
		for i := range n {
			all = append(all, !wrong[i])
		}
		for _, i := range indices {
			picked, right = append(picked, confidence[i]), append(right, !wrong[i])
		}
		bins := 1 + rng.IntN(12)
		ece := must.Get(Outcomes{confidence, all}.ECEAt(bins))(t)
		if got, want := must.Get(ece(indices))(t), must.Get(Outcomes{picked, right}.ECE(bins))(t); got != want {
			t.Fatalf("ECE %v, want %v", got, want)
		}
		s, err := ranks.Sweep(indices)
		if errors.Is(err, ErrValue) {
			continue // all of one kind
		}
		want, wantErr := AURC(picked, right)
		if err != nil || wantErr != nil || math.Abs(s.AURC()-want) > 1e-12 {
			t.Fatalf("%v, want %v (%v, %v)", s.AURC(), want, err, wantErr)
		}
	}
}

// With all confidences p in one bin, ECE of a calibrated model is |k/n - p| with k binomial, whose mean is about
// sqrt(2 p (1-p) / (pi n)).
func TestECEFloor(t *testing.T) {
	const n, draws, p = 2000, 4000, 0.63
	o := Outcomes{Confidence: slices.Repeat([]float64{p}, n), Right: make([]bool, n)}
	got, err := o.ECEFloor(10, draws, 5)
	if err != nil {
		t.Fatal(err)
	}
	sigma := math.Sqrt(p * (1 - p) / n)
	want, spread := sigma*math.Sqrt(2/math.Pi), sigma*math.Sqrt(1-2/math.Pi)
	if z := (got - want) / (spread / math.Sqrt(draws)); math.Abs(z) > 4 {
		t.Errorf("%v, want %v, z = %.1f", got, want, z)
	}
	again, err := o.ECEFloor(10, draws, 5)
	if err != nil || again != got {
		t.Errorf("the same seed gives %v and %v (%v)", got, again, err)
	}
	if _, err := o.ECEFloor(10, 0, 5); !errors.Is(err, ErrValue) {
		t.Errorf("no draws: %v", err)
	}
	if _, err := o.ECEFloor(0, 10, 5); !errors.Is(err, ErrValue) {
		t.Errorf("no bins: %v", err)
	}
}
