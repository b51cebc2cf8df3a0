package metrics

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The p-value equals the one found by trying all 2^n ways to choose signs, also with ties and zeros.
func TestSignedRankIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		d := make([]float64, 1+rng.IntN(9))
		for i := range d {
			d[i] = float64(rng.IntN(9) - 3)
		}
		if got, want := SignedRank(d), byEnumeration(d); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v: p is %v, want %v", d, got, want)
		}
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
	if median, _, _ := MedianInterval([]float64{1.7e308, 1.5e308, -1e308, 1.6e308}, 0.9, 10, 0); math.Abs(median-1.55e308) > 1e293 {
		t.Errorf("the median is %g, want 1.55e308", median)
	}
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
	if z := (covered/trials - 0.9) / math.Sqrt(0.9*0.1/trials); math.Abs(z) > 4 {
		t.Errorf("the interval covers the median %v times of %d, %.1f standard deviations off", covered, trials, z)
	}
}
