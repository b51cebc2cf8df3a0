package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"densityuncertainty/environment/must"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
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
	} {
		t.Run(c.name, func(t *testing.T) {
			d := PairedDifference(c.a, c.b, c.ratio, 0.95)
			near(t, "difference", []float64{d.Mean, d.Low, d.High, d.P}, []float64{c.mean, c.mean - c.reach, c.mean + c.reach, c.p})
		})
	}
}

// The spread of differences that are equal but for rounding says nothing.
func TestPairedDifferenceOfEqualDifferences(t *testing.T) {
	third := 1. / 3
	for _, c := range []struct{ a, b []float64 }{{[]float64{2, 3}, []float64{1, 2}}, {[]float64{0.1 + 0.2, third, 0.9}, []float64{0.2, third - 0.1, 0.8}}} {
		if d := PairedDifference(c.a, c.b, 0, 0.95); !(math.IsNaN(d.P) && math.IsNaN(d.Low) && math.IsNaN(d.High)) {
			t.Errorf("of %v and %v: %+v", c.a, c.b, d)
		}
	}
	if d := PairedDifference([]float64{0.1 + 0.2, 5}, []float64{0.3, 5}, 0, 0.95); d.P != 1 || d.Low != d.High {
		t.Errorf("of the same: %+v", d)
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
		t.Run(c.name, func(t *testing.T) { near(t, "adjusted", Holm(c.p), c.want) })
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
			near(t, "correlation", []float64{Spearman(c.x, c.y)}, []float64{c.want})
			near(t, "exchanged", []float64{Spearman(c.y, c.x)}, []float64{c.want})
		})
	}
}

func ExamplePairedDifference() {
	// Errors of two methods on the same five splits with one test example for nine training examples.
	d := PairedDifference([]float64{0.61, 0.58, 0.66, 0.60, 0.63}, []float64{0.64, 0.62, 0.67, 0.66, 0.65}, 1.0/9, 0.95)
	fmt.Printf("%.3f, from %.3f to %.3f, p = %.3f\n", d.Mean, d.Low, d.High, d.P)
	// Output: -0.032, from -0.062 to -0.002, p = 0.041
}

func TestBootstrapRanks(t *testing.T) {
	next := 0.0
	count := func([]float64) float64 { next++; return next }
	low, high := Bootstrap([]int{1}, 99, 0, 0.9, count) // values 1 to 99; ranks 5 and 95
	must.Near(t, low, 5, 1e-12, "low")
	must.Near(t, high, 95, 1e-12, "high")
	next = 0
	if low, high = Bootstrap([]int{1}, 3, 0, 0.99, count); low != 1 || high != 3 {
		t.Errorf("too few replicates: got %v, %v", low, high)
	}
}

// Strata are resampled apart, evenly, and the same way for the same seed.
func TestBootstrapDraws(t *testing.T) {
	draws := func(seed uint64) []float64 {
		counts := make([]float64, 5)
		Bootstrap([]int{2, 3}, 6000, seed, 0.9, func(drawn []float64) float64 {
			floats.Add(counts, drawn)
			if floats.Sum(drawn[:2]) != 2 || floats.Sum(drawn) != 5 {
				t.Fatalf("resample %v", drawn)
			}
			return 0
		})
		return counts
	}
	one, again, other := draws(5), draws(5), draws(6)
	if fmt.Sprint(one) != fmt.Sprint(again) || fmt.Sprint(one) == fmt.Sprint(other) {
		t.Errorf("seeds 5, 5, 6 give %v, %v, %v", one, again, other)
	}
	for i, c := range one {
		p := 1 / []float64{2, 2, 3, 3, 3}[i]
		trials := 6000 / p
		must.Z(t, (c-trials*p)/math.Sqrt(trials*p*(1-p)), "index %d was drawn %v times", i, c)
	}
}

// A resample by counting gives what a new sort of the resampled examples gives.
func TestResamplesAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 36))
	for range 100 {
		n := 2 + rng.IntN(40)
		score, positive := scores(rng, n)
		ranks := NewRanks(score, positive)
		counts, drawn, kinds := make([]float64, n), make([]float64, n), make([]bool, n)
		for k := range drawn {
			i := rng.IntN(n)
			counts[i]++
			drawn[k], kinds[k] = score[i], positive[i]
		}
		clear(positive) // what becomes of it afterwards does not matter
		sweep := NewRanks(drawn, kinds).Sweep()
		for name, number := range map[string]func(Sweep) float64{"AUROC": Sweep.AUROC, "AUPRC": Sweep.AUPRC, "AP": Sweep.AveragePrecision, "AURC": Sweep.aurc,
			"FPR": func(s Sweep) float64 { return s.FPRAtTPR(0.95) }} {
			at := ranks.At(number)
			at(ones(n)) // leaves nothing behind
			if got, want := at(counts), number(sweep); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s is %v; sorted again %v", name, got, want)
			}
		}
		if sweep.positives*sweep.negatives > 0 && (sweep.FPRAtTPR(0) != 0 || sweep.FPRAtTPR(1.1) != 1) {
			t.Errorf("FPR at TPR 0 is %v, at 1.1 %v", sweep.FPRAtTPR(0), sweep.FPRAtTPR(1.1))
		}
	}
}

// The p-value equals the one found by trying all 2^n ways to choose signs, also with ties and zeros.
func TestSignedRankIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		d := make([]float64, 1+rng.IntN(9))
		for i := range d {
			d[i] = float64(rng.IntN(9) - 3)
		}
		must.Near(t, SignedRank(d), byEnumeration(d), 1e-12, "%v: p", d)
	}
}

// byEnumeration is the p-value of SignedRank by its definition.
func byEnumeration(differences []float64) float64 {
	var d []float64
	for _, v := range differences {
		if v != 0 {
			d = append(d, v)
		}
	}
	rank := func(i int) (r float64) { // mean rank of |d_i|
		below, equal := 0., 0.
		for _, v := range d {
			switch {
			case math.Abs(v) < math.Abs(d[i]):
				below++
			case math.Abs(v) == math.Abs(d[i]):
				equal++
			}
		}
		return below + (equal+1)/2
	}
	sum, total := 0., 0.
	for i, v := range d {
		total += rank(i)
		if v > 0 {
			sum += rank(i)
		}
	}
	extreme, ways := 0., math.Pow(2, float64(len(d)))
	for signs := range int(ways) {
		s := 0.
		for i := range d {
			if signs>>i&1 == 1 {
				s += rank(i)
			}
		}
		if s <= min(sum, total-sum) {
			extreme++
		}
	}
	return min(1, 2*extreme/ways)
}

// The two values in the middle may be so large that their sum is infinite.
func TestMedianOfLargeValues(t *testing.T) {
	median, _, _ := MedianInterval([]float64{1.7e308, 1.5e308, -1e308, 1.6e308}, 0.9, 10, 0)
	must.Near(t, median, 1.55e308, 1e293, "the median")
}

// The interval of the median covers the true one about as often as it says.
func TestMedianInterval(t *testing.T) {
	const trials = 400
	rng, covered := rand.New(rand.NewPCG(3, 4)), 0.
	for trial := range trials {
		values := make([]float64, 41)
		for i := range values {
			values[i] = rng.ExpFloat64() - math.Ln2 // whose median is 0
		}
		median, low, high := MedianInterval(values, 0.9, 300, uint64(trial))
		if median < low || median > high {
			t.Fatalf("median %v in [%v, %v]", median, low, high)
		}
		if low <= 0 && 0 <= high {
			covered++
		}
	}
	must.Z(t, (covered/trials-0.9)/math.Sqrt(0.9*0.1/trials), "the interval covers the median %v times of %d", covered, trials)
}

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

// Counts of resampled examples give the calibration error of these examples.
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
	must.Z(t, (got-want)/(spread/math.Sqrt(draws)), "%v, want %v", got, want)
	if again := o.ECEFloor(10, draws, 5); again != got {
		t.Errorf("the same seed gives %v and %v", got, again)
	}
}
