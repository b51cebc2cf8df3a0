package metrics

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"densityuncertainty/dul/layertest/fixtures"
)

// A recorded is a reference case.
type recorded map[string]fixtures.Array

// fixture opens one reference case.
func fixture(t *testing.T, name string) recorded {
	t.Helper()
	return fixtures.Read(t, filepath.Join("testdata", name+".npz"))
}

func array(t *testing.T, a recorded, name string) ([]float64, []int) {
	t.Helper()
	found, has := a[name]
	if !has {
		t.Fatalf("there is no array %q", name)
	}
	return slices.Clone(found.Values), found.Dims
}

func ints(t *testing.T, a recorded, name string) (whole []int) {
	t.Helper()
	values, _ := array(t, a, name)
	for _, v := range values {
		whole = append(whole, int(v))
	}
	return whole
}

// samples splits an array into the rows of its first dimension.
func samples(t *testing.T, a recorded, name string) (rows [][]float64, shape []int) {
	t.Helper()
	data, shape := array(t, a, name)
	return slices.Collect(slices.Chunk(data, len(data)/shape[0])), shape
}

// exact is the agreement asked of float64 references, relative to the largest entry.
const exact = 1e-10

// check compares with an array of the fixture.
func check(t *testing.T, a recorded, name string, got []float64, tolerance float64) {
	t.Helper()
	want, _ := array(t, a, name)
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", name, len(got), len(want))
	}
	largest := 0.0
	for _, w := range want {
		largest = max(largest, math.Abs(w))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance*largest) {
			t.Errorf("%s[%d] = %v, want %v", name, i, got[i], want[i])
			return
		}
	}
}

func check1(t *testing.T, a recorded, name string, tolerance float64) func(float64) {
	return func(got float64) {
		t.Helper()
		check(t, a, name, []float64{got}, tolerance)
	}
}

// The float32 references were summed in float32, so that only about 6 digits can agree.
func TestECEOfReleasedCode(t *testing.T) {
	for _, c := range []struct {
		name string
		bins int
	}{{"ece_a", 10}, {"ece_b", 15}, {"ece_edge", 10}} {
		t.Run(c.name, func(t *testing.T) {
			a, bins := fixture(t, c.name), c.bins
			probs, shape := array(t, a, "probs")
			labels := ints(t, a, "labels")
			outcomes := NewOutcomes(probs, shape[1], labels)
			check1(t, a, "ece", 2e-6)(outcomes.ECE(bins))
			diagram := outcomes.Reliability(bins)
			var count, confidence, accuracy []float64
			for _, b := range diagram {
				count = append(count, float64(b.Count))
				confidence = append(confidence, b.Confidence*float64(b.Count))
				accuracy = append(accuracy, b.Accuracy*float64(b.Count))
			}
			check(t, a, "bin_count", count, 0)
			check(t, a, "bin_acc_sum", accuracy, exact)
			check(t, a, "bin_conf_sum", confidence, 2e-6)
		})
	}
}

func TestClassification(t *testing.T) {
	for _, name := range []string{"classif_metrics_a", "classif_metrics_b"} {
		t.Run(name, func(t *testing.T) {
			a := fixture(t, name)
			logits, shape := samples(t, a, "logits")
			classes, labels := shape[2], ints(t, a, "labels")
			probs := MeanProbabilities(logits, classes)
			check(t, a, "mean_probs", probs, exact)
			check1(t, a, "accuracy", exact)(Accuracy(probs, classes, labels))
			check1(t, a, "nll", exact)(CategoricalNLL(probs, classes, labels))
			check1(t, a, "brier", exact)(Brier(probs, classes, labels))
			outcomes := NewOutcomes(probs, classes, labels)
			check1(t, a, "ece10", exact)(outcomes.ECE(10))
			check1(t, a, "ece15", exact)(outcomes.ECE(15))
			check1(t, a, "ece20", exact)(outcomes.ECE(20))
			check1(t, a, "adaptive_ece15", exact)(outcomes.AdaptiveECE(15))
			check(t, a, "entropy", Entropy(probs, classes), exact)
			check(t, a, "max_prob", MaxProbability(probs, classes), exact)
			check(t, a, "mutual_information", MutualInformation(logits, classes), exact)
			members := 0.0
			for m := range logits {
				member := MeanProbabilities(logits[m:m+1], classes)
				members += CategoricalNLL(member, classes, labels) / float64(len(logits))
			}
			check1(t, a, "nll_mean_of_members", exact)(members)
		})
	}
}

func TestMonteCarloRegression(t *testing.T) {
	for _, name := range []string{"mc_regression_a", "mc_regression_b"} {
		t.Run(name, func(t *testing.T) {
			a := fixture(t, name)
			f, _ := samples(t, a, "samples_normalized")
			y, _ := array(t, a, "y_test")
			scalar := func(name string) float64 { return a[name].Values[0] }
			yMean, yStd, tau := scalar("y_mean"), scalar("y_std"), scalar("tau")
			noise := math.Exp(scalar("log_noise_var_normalized"))

			var original, normalVariance, tauVariance [][]float64
			prediction, normalY := make([]float64, len(y)), make([]float64, len(y))
			for m := range f {
				values, variance, precise := make([]float64, len(y)), make([]float64, len(y)), make([]float64, len(y))
				for i := range y {
					values[i], variance[i], precise[i] = f[m][i]*yStd+yMean, noise, 1/tau
					prediction[i] += values[i] / float64(len(f))
					normalY[i] = (y[i] - yMean) / yStd
				}
				original, normalVariance, tauVariance = append(original, values), append(normalVariance, variance), append(tauVariance, precise)
			}
			check1(t, a, "rmse", exact)(RMSE(prediction, y))
			check1(t, a, "nll_mixture", exact)(MonteCarloNLL(normalY, f, normalVariance, yStd))
			check1(t, a, "gal_test_ll_tau", exact)(-MonteCarloNLL(y, original, tauVariance, 1))
		})
	}
}

// positives turns labels into classes, 1 being positive.
func positives(labels []int, value int) []bool {
	positive := make([]bool, len(labels))
	for i, label := range labels {
		positive[i] = label == value
	}
	return positive
}

func TestRanking(t *testing.T) {
	for _, name := range []string{"ranking_a", "ranking_ties"} {
		t.Run(name, func(t *testing.T) {
			a := fixture(t, name)
			score, _ := array(t, a, "score")
			labels := ints(t, a, "label")
			positive := positives(labels, 1)
			check1(t, a, "auroc", exact)(AUROC(score, positive))
			check1(t, a, "auprc_trapezoid", exact)(auprc(score, positive))
			check1(t, a, "average_precision", exact)(averagePrecision(score, positive))
			negated := make([]float64, len(score))
			for i := range score {
				negated[i] = -score[i]
			}
			other := positives(labels, 0)
			check1(t, a, "auprc_trapezoid_other_positive", exact)(auprc(negated, other))
			check1(t, a, "average_precision_other_positive", exact)(averagePrecision(negated, other))
		})
	}
}

func TestEnergyOOD(t *testing.T) {
	a := fixture(t, "ood_energy_a")
	precision, _ := array(t, a, "precision")
	energies := func(name string) []float64 {
		rows, shape := samples(t, a, name)
		d := shape[1]
		list := make([]float64, len(rows))
		for n, x := range rows {
			for i := range d {
				for j := range d {
					list[n] += 0.5 * x[i] * precision[i*d+j] * x[j]
				}
			}
		}
		return list
	}
	heldOut := energies("held_out")
	energy := append(energies("in_dist"), energies("ood")...)
	check1(t, a, "mu", exact)(Mean(heldOut))
	score := EnergyOOD(energy, heldOut)
	check(t, a, "score", score, exact)
}

// Far from every sample, and where the noise is as large as can be, the likelihoods underflow but their logarithms do not.
func TestMonteCarloNLLDoesNotOverflow(t *testing.T) {
	for _, c := range []struct {
		name           string
		target         float64
		mean, variance [][]float64
		want           float64
	}{
		{"far", 1e6, [][]float64{{0}, {1}}, [][]float64{{1}, {1}}, 0.5*(1e6-1)*(1e6-1) + 0.5*math.Log(2*math.Pi) + math.Log(2)},
		{"large noise", 1, [][]float64{{0}}, [][]float64{{1.5e308}}, 0.5 * (math.Log(2*math.Pi) + math.Log(1.5e308))},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := MonteCarloNLL([]float64{c.target}, c.mean, c.variance, 1)
			if math.Abs(got-c.want) > 1e-9*c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestMeanStd(t *testing.T) {
	mean, std := MeanStd([]float64{1, 2, 3, 6})
	if mean != 3 || math.Abs(std-math.Sqrt(14.0/3)) > 1e-15 {
		t.Errorf("got %v, %v", mean, std)
	}
	if mean, std = MeanStd([]float64{4}); mean != 4 || !math.IsNaN(std) {
		t.Errorf("one value: %v, %v", mean, std)
	}
}
