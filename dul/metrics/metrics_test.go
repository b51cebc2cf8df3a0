package metrics

import (
	"go/doc"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/environment/must"
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
	check1(t, a, "mu", exact)(stat.Mean(heldOut, nil))
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
			must.Near(t, got, c.want, 1e-9*c.want, "got")
		})
	}
}

// AURC with ties is the average over the orders of the tied examples.
func TestAURCAveragesOverOrders(t *testing.T) {
	confidence := []float64{3, 2, 2, 2, 1}
	right := []bool{false, true, false, true, false}
	total, orders := 0.0, 0.0
	for _, p := range [][]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		order := append(append([]int{0}, p...), 4)
		wrong := 0.0
		for k, i := range order {
			if !right[i] {
				wrong++
			}
			total += wrong / float64(k+1) / 5
		}
		orders++
	}
	near(t, "AURC", []float64{Outcomes{confidence, right}.AURC()}, []float64{total / orders})
}

// Lengths that do not match panic; undefined and NaN values give NaN.
func TestMistakesPanicAndNaNGivesNaN(t *testing.T) {
	nan := math.NaN()
	one, two, half := [][]float64{{1}}, []float64{1, 2}, []float64{0.5, 0.5}
	for name, call := range map[string]func(){
		"RMSE":            func() { RMSE([]float64{1}, two) },
		"samples":         func() { MonteCarloNLL(two, one, one, 1) },
		"no samples":      func() { MonteCarloCoverage(two, nil, nil, 0.9) },
		"ragged logits":   func() { MeanProbabilities([][]float64{{1, 2}, {1, 2, 3, 4}}, 2) },
		"no classes":      func() { Accuracy([]float64{1}, 0, []int{0}) },
		"rows":            func() { Entropy([]float64{0.5, 0.5, 1}, 2) },
		"logits":          func() { CategoricalNLL([]float64{2, 1}, 2, []int{0}) },
		"a negative one":  func() { Entropy([]float64{1.5, -0.5}, 2) },
		"no distribution": func() { NewOutcomes([]float64{0.5, 0.6}, 2, []int{0}) },
		"classwise":       func() { ClasswiseECE([]float64{3, 1}, 2, []int{0}, 10) },
		"a confidence":    func() { Outcomes{two, make([]bool, 2)}.ECE(10) },
		"adaptive":        func() { Outcomes{two, make([]bool, 2)}.AdaptiveECE(2) },
		"labels":          func() { Brier(half, 2, []int{0, 1}) },
		"a label":         func() { Accuracy(half, 2, []int{2}) },
		"outcomes":        func() { Outcomes{Confidence: half}.ECE(10) },
		"no bins":         func() { Outcomes{half, make([]bool, 2)}.ECE(0) },
		"AUROC":           func() { AUROC(two, []bool{true}) },
		"other counts":    func() { MeanAt(two)([]float64{1}) },
		"pairs":           func() { PairedDifference(two, []float64{1}, 0, 0.9) },
		"one pair":        func() { PairedDifference([]float64{1}, []float64{1}, 0, 0.9) },
		"a ratio":         func() { PairedDifference(two, two, -1, 0.9) },
		"a level":         func() { MonteCarloCoverage([]float64{1}, one, one, 1) },
		"Spearman":        func() { Spearman(two, []float64{1}) },
		"Wasserstein":     func() { Wasserstein(nil, half) },
		"a temperature":   func() { Softmax(half, 2, 0) },
		"short chains":    func() { SplitRHat([][]float64{{1, 2, 3}}) },
		"more than exact": func() { SignedRank(ones(501)) },
	} {
		t.Run(name, func(t *testing.T) { must.Panic(t, call, "") })
	}
	bad, kinds := []float64{nan, 0.5, 0.5}, []bool{true, false, true}
	low, high := Bootstrap([]int{3}, 5, 0, 0.9, MeanAt(bad))
	median, _, _ := MedianInterval(bad, 0.9, 10, 0)
	temperature, err := FitTemperature([]float64{1, 2, nan, 0}, 2, []int{0, 0})
	if err != nil {
		t.Error(err)
	}
	sweep, none := NewRanks(bad, kinds).Sweep(), NewRanks(half, make([]bool, 2)).Sweep()
	for name, v := range map[string]float64{
		"RMSE": RMSE(bad, bad), "NLL": MonteCarloNLL([]float64{nan}, one, one, 1), "CRPS": MonteCarloCRPS([]float64{nan}, one, one, 1),
		"coverage": MonteCarloCoverage([]float64{nan}, one, one, 0.9), "probabilities": MeanProbabilities([][]float64{{nan, 1}}, 2)[1], "accuracy": Accuracy([]float64{nan, 0.5}, 2, []int{1}),
		"Brier": Brier([]float64{nan, 0.5}, 2, []int{1}), "largest": MaxProbability([]float64{0.5, nan}, 2)[0], "entropy": Entropy([]float64{0.5, nan}, 2)[0],
		"ECE": Outcomes{bad, kinds}.ECE(10), "adaptive ECE": Outcomes{bad, kinds}.AdaptiveECE(2), "ECE floor": Outcomes{bad, kinds}.ECEFloor(10, 2, 0), "ECE of nothing": Outcomes{}.ECE(10),
		"classwise ECE": ClasswiseECE([]float64{nan, 0.5}, 2, []int{1}, 10), "AUROC": sweep.AUROC(), "AUPRC": sweep.AUPRC(), "AP": sweep.AveragePrecision(), "FPR": sweep.FPRAtTPR(0.5), "AURC": sweep.aurc(), "confidence": NewOutcomes([]float64{nan, 1}, 2, []int{1}).Confidence[0], "rank": Midranks(bad)[2],
		"AUROC of one kind": none.AUROC(), "AUPRC of one kind": none.AUPRC(), "FPR of one kind": none.FPRAtTPR(0.5), "energy": EnergyOOD(bad, half)[0], "held out": EnergyOOD(half, bad)[0],
		"difference": PairedDifference(bad, ones(3), 0, 0.9).P, "one replicate": BootstrapDifference(0, ones(1), 0.9).P, "Holm": Holm([]float64{0.1, nan})[0], "Spearman": Spearman(bad, bad),
		"Spearman of a constant": Spearman(half, half), "low": low, "high": high, "Wasserstein": Wasserstein(bad, half), "total variation": TotalVariation(bad, half, 1),
		"narrow and far apart": TotalVariation([]float64{0}, []float64{1}, 1e-9), "signed rank": SignedRank(bad), "median": median, "evidence": DempsterShafer([]float64{nan, 1}, 2)[0],
		"R-hat": SplitRHat([][]float64{{1, 2, nan, 4}}), "effective size": EffectiveSize([][]float64{{1, 2, nan, 4}}),
		"softmax": Softmax([]float64{nan, 1}, 2, 1)[1], "temperature": temperature, "joint NLL": JointNLL([]float64{nan}, one, one, [][]int{{0}}, 1), "information": MutualInformation([][]float64{{nan, 1}, {0, 0}}, 2)[0],
	} {
		if !math.IsNaN(v) {
			t.Errorf("%s: %v", name, v)
		}
	}
}

func ones(n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = 1
	}
	return all
}

// The column "here" of README.md is what the examples print, which go test checks.
func TestConventions(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "example_test.go", nil, parser.ParseComments)
	must.Do(t, err)
	var printed []string // such as "Brier: 0.4525"
	for _, e := range doc.Examples(file) {
		for line := range strings.Lines(e.Output) {
			printed = append(printed, strings.Replace(e.Name, "_", ".", 1)+": "+strings.TrimSpace(line))
		}
	}
	page := must.Get(os.ReadFile("README.md"))(t)
	var here []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([\\w.]+)`[^,|]*(?:, ([^|]+))? \\| (\\d\\S*) \\|").FindAllStringSubmatch(string(page), -1) {
		here = append(here, strings.Join(slices.DeleteFunc(row[1:], func(s string) bool { return s == "" }), ": "))
	}
	slices.Sort(printed)
	slices.Sort(here)
	if !slices.Equal(here, printed) {
		t.Errorf("README.md has\n%q, and the examples\n%q", here, printed)
	}
}

// near compares with numbers derived another way.
func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= exact*max(1, math.Abs(want[i]))) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// scores are made-up examples of both kinds, many of them tied.
func scores(rng *rand.Rand, n int) (score []float64, positive []bool) {
	for i := range n {
		score, positive = append(score, float64(rng.IntN(2*n))/8), append(positive, i == 0 || i > 1 && rng.IntN(3) == 0)
	}
	return score, positive
}

func auprc(score []float64, positive []bool) float64 {
	return NewRanks(score, positive).Sweep().AUPRC()
}

func averagePrecision(score []float64, positive []bool) float64 {
	return NewRanks(score, positive).Sweep().AveragePrecision()
}

func fpr95(score []float64, positive []bool) float64 { return fprAtTPR(score, positive, 0.95) }

func fprAtTPR(score []float64, positive []bool, tpr float64) float64 {
	return NewRanks(score, positive).Sweep().FPRAtTPR(tpr)
}

// Samples that agree tell nothing about the weights: 0, and not a little less.
func TestMutualInformationOfSamplesThatAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	for samples := 2; samples < 12; samples++ {
		logits := make([]float64, 3*200)
		for i := range logits {
			logits[i] = 3 * rng.NormFloat64()
		}
		for i, v := range MutualInformation(slices.Repeat([][]float64{logits}, samples), 3) {
			if v < 0 || v > exact {
				t.Errorf("of example %d, by %d samples, it is %g", i, samples, v)
			}
		}
	}
}

func TestRankingProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for range 200 {
		n := 2 + rng.IntN(50)
		score, positive := scores(rng, n)
		area := AUROC(score, positive)

		// The definition: pairs in order, ties one half.
		pairs, right, prevalence := 0.0, 0.0, 0.0
		for i := range score {
			for j := range score {
				if positive[i] && !positive[j] {
					pairs++
					switch {
					case score[i] > score[j]:
						right++
					case score[i] == score[j]:
						right += 0.5
					}
				}
			}
			if positive[i] {
				prevalence += 1 / float64(n)
			}
		}
		near(t, "AUROC by pairs", []float64{area}, []float64{right / pairs})

		mapped, negated, constant := make([]float64, n), make([]float64, n), make([]float64, n)
		for i, s := range score {
			mapped[i], negated[i] = math.Cbrt(s-1), -s
		}
		for _, m := range []struct {
			name string
			of   func([]float64, []bool) float64
		}{{"AUROC", AUROC}, {"AUPRC", auprc}, {"AP", averagePrecision}, {"FPR95", fpr95}} {
			before := m.of(score, positive)
			if after := m.of(mapped, positive); after != before {
				t.Errorf("%s is %v, after a monotone map %v", m.name, before, after)
			}
			if before < 0 || before > 1 {
				t.Errorf("%s is %v", m.name, before)
			}
		}
		near(t, "AUROC of the negated score", []float64{AUROC(negated, positive)}, []float64{1 - area})
		near(t, "AP of a constant", []float64{averagePrecision(constant, positive)}, []float64{prevalence})
		near(t, "AUPRC of a constant", []float64{auprc(constant, positive)}, []float64{(1 + prevalence) / 2})
		near(t, "AUROC of a constant", []float64{AUROC(constant, positive)}, []float64{0.5})

		// FPR at TPR: try every threshold.
		for _, tpr := range []float64{0.3, 0.5, 0.95, 1} {
			smallest := 1.0
			for _, threshold := range score {
				found, wrong, positives := 0.0, 0.0, 0.0
				for i, s := range score {
					if positive[i] {
						positives++
					}
					if s >= threshold && positive[i] {
						found++
					} else if s >= threshold {
						wrong++
					}
				}
				if found/positives >= tpr {
					smallest = min(smallest, wrong/(float64(n)-positives))
				}
			}
			if got := fprAtTPR(score, positive, tpr); got != smallest {
				t.Errorf("FPR at TPR %v is %v, want %v", tpr, got, smallest)
			}
		}
	}
}

// By hand: in class 0 the bin (0, 0.5] holds 0.2, 0.4 (one of label 0) and (0.5, 1] holds 0.9 (label 0)
// and 0.7 (not); class 1 is the mirror image.
func TestClasswiseECEByHand(t *testing.T) {
	probs := []float64{0.2, 0.8, 0.4, 0.6, 0.9, 0.1, 0.7, 0.3}
	labels := []int{1, 0, 0, 1}
	want := 0.5*math.Abs(0.5-0.3) + 0.5*math.Abs(0.5-0.8)
	near(t, "classwise ECE", []float64{ClasswiseECE(probs, 2, labels, 2)}, []float64{want})
}

// A confidence of k/bins is in bin k, however it was computed.
func TestConfidencesOnEdges(t *testing.T) {
	for _, bins := range []int{5, 10, 15, 20} {
		for k := 1; k <= bins; k++ {
			double, single := float64(k)/float64(bins), float32(k)/float32(bins)
			sum, vote := 0.0, float32(0)
			for range k {
				sum, vote = sum+1/float64(bins), vote+1/float32(bins)
			}
			for _, p := range []float64{double, float64(single), sum, float64(1/float32(bins)) * float64(k), double - 0.5/float64(bins)} {
				if got := binOf(bins, p); got != k-1 {
					t.Errorf("%v is in bin %d of %d, want %d", p, got, bins, k-1)
				}
			}
			if got := binOf(bins, double+1e-6); got != min(k, bins-1) {
				t.Errorf("%v is in bin %d of %d, want %d", double+1e-6, got, bins, k)
			}
		}
	}
	near(t, "ECE", []float64{Outcomes{[]float64{0.7, 0.8}, []bool{false, true}}.ECE(10), ClasswiseECE([]float64{0.3, 0.7, 0.2, 0.8}, 2, []int{0, 1}, 10)}, []float64{0.45, 0.45})
}

// The order of examples of equal confidence does not matter: if the confidence is the rate of right answers, errors are 0.
func TestAdaptiveECEOfTies(t *testing.T) {
	rng := rand.New(rand.NewPCG(47, 48))
	half := []float64{0.5, 0.5, 0.5, 0.5}
	near(t, "four halves", []float64{Outcomes{half, []bool{true, true, false, false}}.AdaptiveECE(2)}, []float64{0})
	ties := Outcomes{}
	for i := range 60 {
		ties.Confidence, ties.Right = append(ties.Confidence, float64(i%3)/2), append(ties.Right, i%4 == 0)
	}
	want := ties.AdaptiveECE(7)
	for range 20 {
		rng.Shuffle(len(ties.Right), func(i, j int) {
			ties.Confidence[i], ties.Confidence[j], ties.Right[i], ties.Right[j] = ties.Confidence[j], ties.Confidence[i], ties.Right[j], ties.Right[i]
		})
		near(t, "shuffled", []float64{ties.AdaptiveECE(7)}, []float64{want})
	}
}

// The limit of growing logits.
func TestSoftmaxOfInfiniteLogits(t *testing.T) {
	inf := math.Inf(1)
	near(t, "softmax", Softmax([]float64{0, inf, inf, inf, -inf, 3, -inf, 0}, 2, 0.5), []float64{0, 1, 0.5, 0.5, 0, 1, 0, 1})
}
