package metrics

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/environment/must"
)

// meanAt is the mean of the values at indices.
func meanAt(values []float64) func(indices []int) (float64, error) {
	return func(indices []int) (float64, error) {
		total := 0.0
		for _, i := range indices {
			total += values[i] / float64(len(indices))
		}
		return total, nil
	}
}

// The percentile interval of a mean of n normal values is close to mean +- z s/sqrt n with s^2 divided by
// n rather than n-1, and covers the truth as often as Student's t says of that.
func TestBootstrapCovers(t *testing.T) {
	const runs, n, replicates, level = 1000, 100, 399, 0.9
	rng := rand.New(rand.NewPCG(31, 32))
	covered := 0
	for run := range runs {
		values := make([]float64, n)
		for i := range values {
			values[i] = rng.NormFloat64()
		}
		low, high := must.Get2(Bootstrap([]int{n}, replicates, uint64(run), level, meanAt(values)))(t)
		if low <= 0 && 0 <= high {
			covered++
		}
	}
	reach := distuv.UnitNormal.Quantile((1+level)/2) * math.Sqrt((n-1.0)/n)
	expected := 1 - 2*distuv.StudentsT{Sigma: 1, Nu: n - 1}.Survival(reach)
	got := float64(covered) / runs
	if z := (got - expected) / math.Sqrt(expected*(1-expected)/runs); math.Abs(z) > 4 {
		t.Errorf("covers %v of the time, want %v, z = %.1f", got, expected, z)
	}
}

// For the AUROC of n against n normal values, one kind shifted by d, the truth is Phi(d/sqrt 2).
func TestBootstrapOfAUROCCovers(t *testing.T) {
	const runs, n, level, shift = 300, 150, 0.9, 1.2
	truth := distuv.UnitNormal.CDF(shift / math.Sqrt2)
	rng := rand.New(rand.NewPCG(33, 34))
	covered := 0
	for run := range runs {
		score, positive := make([]float64, 2*n), make([]bool, 2*n)
		for i := range score {
			score[i], positive[i] = rng.NormFloat64(), i >= n
			if positive[i] {
				score[i] += shift
			}
		}
		ranks := must.Get(NewRanks(score, positive))(t)
		low, high := must.Get2(Bootstrap([]int{n, n}, 399, uint64(run), level, func(indices []int) (float64, error) {
			s, err := ranks.Sweep(indices)
			return s.AUROC(), err
		}))(t)
		if low <= truth && truth <= high {
			covered++
		}
	}
	got := float64(covered) / runs
	if z := (got - level) / math.Sqrt(level*(1-level)/runs); math.Abs(z) > 4 {
		t.Errorf("covers %v of the time, want %v, z = %.1f", got, level, z)
	}
}

func TestBootstrapRanks(t *testing.T) {
	next := 0.0
	count := func([]int) (float64, error) { next++; return next, nil }
	low, high, err := Bootstrap([]int{1}, 99, 0, 0.9, count) // values 1 to 99; ranks 5 and 95
	if err != nil || math.Abs(low-5) > 1e-12 || math.Abs(high-95) > 1e-12 {
		t.Errorf("got %v, %v, %v", low, high, err)
	}
	next = 0
	low, high, err = Bootstrap([]int{1}, 3, 0, 0.99, count)
	if err != nil || low != 1 || high != 3 {
		t.Errorf("too few replicates: got %v, %v, %v", low, high, err)
	}
}

// Strata are resampled apart, evenly, and the same way for the same seed.
func TestBootstrapDraws(t *testing.T) {
	draws := func(seed uint64) []float64 {
		counts := make([]float64, 5)
		if _, _, err := Bootstrap([]int{2, 3}, 6000, seed, 0.9, func(indices []int) (float64, error) {
			first := 0
			for _, i := range indices {
				counts[i]++
				if i < 2 {
					first++
				}
			}
			if first != 2 || len(indices) != 5 {
				return 0, fmt.Errorf("resample %v", indices)
			}
			return 0, nil
		}); err != nil {
			t.Fatal(err)
		}
		return counts
	}
	one, again, other := draws(5), draws(5), draws(6)
	if fmt.Sprint(one) != fmt.Sprint(again) || fmt.Sprint(one) == fmt.Sprint(other) {
		t.Errorf("seeds 5, 5, 6 give %v, %v, %v", one, again, other)
	}
	for i, c := range one {
		p := 1 / []float64{2, 2, 3, 3, 3}[i]
		trials := 6000 / p
		if z := (c - trials*p) / math.Sqrt(trials*p*(1-p)); math.Abs(z) > 4 {
			t.Errorf("index %d was drawn %v times, z = %.1f", i, c, z)
		}
	}
}

// A resample by counting gives what a new sort of the resampled examples gives.
func TestResamplesAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 36))
	for range 100 {
		n := 2 + rng.IntN(40)
		score, positive := scores(rng, n)
		ranks := must.Get(NewRanks(score, positive))(t)
		indices, drawn, kinds := make([]int, n), make([]float64, n), make([]bool, n)
		for k := range indices {
			i := rng.IntN(n)
			indices[k], drawn[k], kinds[k] = i, score[i], positive[i]
		}
		sweep, err := ranks.Sweep(indices)
		if area, want := AUROC(drawn, kinds); (err != nil) != (want != nil) || err == nil && sweep.AUROC() != area {
			t.Fatalf("AUROC %v, %v; sorted again %v, %v", sweep.AUROC(), err, area, want)
		}
		if err != nil {
			continue
		}
		if want := must.Get(AUPRC(drawn, kinds))(t); sweep.AUPRC() != want {
			t.Errorf("AUPRC %v, want %v", sweep.AUPRC(), want)
		}
		if want := must.Get(swept(drawn, kinds, Sweep.AveragePrecision))(t); sweep.AveragePrecision() != want {
			t.Errorf("AP %v, want %v", sweep.AveragePrecision(), want)
		}
		if want := must.Get(fpr95(drawn, kinds))(t); sweep.FPRAtTPR(0.95) != want {
			t.Errorf("FPR95 %v, want %v", sweep.FPRAtTPR(0.95), want)
		}
	}
}

func TestBootstrapPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	if _, _, err := Bootstrap([]int{3}, 10, 0, 0.9, func([]int) (float64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, _, err := Bootstrap([]int{3}, 10, 0, 0.9, func([]int) (float64, error) { return math.NaN(), nil }); !errors.Is(err, ErrValue) {
		t.Errorf("got %v", err)
	}
}

func ExampleBootstrap() {
	probs := []float64{0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.4, 0.6, 0.2, 0.8, 0.9, 0.1}
	labels := []int{0, 0, 1, 1, 1, 0}
	outcomes, err := NewOutcomes(probs, 2, labels)
	if err != nil {
		fmt.Println(err)
		return
	}
	low, high, err := Bootstrap([]int{len(labels)}, 1000, 1, 0.9, func(indices []int) (float64, error) {
		resampled, err := outcomes.At(indices)
		if err != nil {
			return 0, err
		}
		return resampled.ECE(10)
	})
	fmt.Println(low < high, err)
	// Output: true <nil>
}
