package metrics

import (
	"math"
	"testing"
)

// Lengths that do not match panic, and what is not defined or NaN gives NaN.
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
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it does not panic")
				}
			}()
			call()
		})
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
		"mean of nothing": Mean(nil), "RMSE": RMSE(bad, bad), "NLL": MonteCarloNLL([]float64{nan}, one, one, 1), "CRPS": MonteCarloCRPS([]float64{nan}, one, one, 1),
		"coverage": MonteCarloCoverage([]float64{nan}, one, one, 0.9), "probabilities": MeanProbabilities([][]float64{{nan, 1}}, 2)[1], "accuracy": Accuracy([]float64{nan, 0.5}, 2, []int{1}),
		"Brier": Brier([]float64{nan, 0.5}, 2, []int{1}), "largest": MaxProbability([]float64{0.5, nan}, 2)[0], "entropy": Entropy([]float64{0.5, nan}, 2)[0],
		"ECE": Outcomes{bad, kinds}.ECE(10), "adaptive ECE": Outcomes{bad, kinds}.AdaptiveECE(2), "ECE floor": Outcomes{bad, kinds}.ECEFloor(10, 2, 0), "ECE of nothing": Outcomes{}.ECE(10),
		"classwise ECE": ClasswiseECE([]float64{nan, 0.5}, 2, []int{1}, 10), "AUROC": sweep.AUROC(), "AUPRC": sweep.AUPRC(), "AP": sweep.AveragePrecision(), "FPR": sweep.FPRAtTPR(0.5), "AURC": sweep.AURC(), "confidence": NewOutcomes([]float64{nan, 1}, 2, []int{1}).Confidence[0], "rank": Midranks(bad)[2],
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
