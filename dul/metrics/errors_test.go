package metrics

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"densityuncertainty/environment/must"
)

func TestErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	one := [][]float64{{1}}
	score, positive := []float64{1, 2}, []bool{true, false}
	half := []float64{0.5, 0.5}
	ranks := must.Get(NewRanks(score, positive))(t)
	outcomes := Outcomes{Confidence: []float64{0.5}, Right: []bool{true}}
	bounds := func(low, high float64, err error) (any, error) { return fmt.Sprint(low, high), err }
	for _, c := range []struct {
		name string
		want error
		call func() (any, error)
	}{
		{"RMSE empty", ErrEmpty, func() (any, error) { return RMSE(nil, nil) }},
		{"RMSE lengths", ErrLength, func() (any, error) { return RMSE([]float64{1}, []float64{1, 2}) }},
		{"RMSE NaN", ErrValue, func() (any, error) { return RMSE([]float64{nan}, []float64{1}) }},
		{"RMSE infinite target", ErrValue, func() (any, error) { return RMSE([]float64{1}, []float64{inf}) }},
		{"NLL no samples", ErrEmpty, func() (any, error) { return MonteCarloNLL([]float64{1}, nil, nil, 1) }},
		{"NLL sample counts", ErrLength, func() (any, error) { return MonteCarloNLL([]float64{1}, one, nil, 1) }},
		{"NLL lengths", ErrLength, func() (any, error) { return MonteCarloNLL([]float64{1, 2}, one, one, 1) }},
		{"NLL variance 0", ErrValue, func() (any, error) { return MonteCarloNLL([]float64{1}, one, [][]float64{{0}}, 1) }},
		{"NLL NaN", ErrValue, func() (any, error) { return MonteCarloNLL([]float64{1}, [][]float64{{nan}}, one, 1) }},
		{"NLL std", ErrValue, func() (any, error) { return MonteCarloNLL([]float64{1}, one, one, 0) }},
		{"no logits", ErrEmpty, func() (any, error) { return MeanProbabilities(nil, 2) }},
		{"ragged logits", ErrLength, func() (any, error) { return MeanProbabilities([][]float64{{1, 2}, {1, 2, 3, 4}}, 2) }},
		{"NaN logit", ErrValue, func() (any, error) { return MutualInformation([][]float64{{nan, 2}}, 2) }},
		{"no classes", ErrValue, func() (any, error) { return Accuracy([]float64{1}, 0, []int{0}) }},
		{"rows", ErrLength, func() (any, error) { return Accuracy([]float64{0.5, 0.5, 1}, 2, []int{0}) }},
		{"labels", ErrLength, func() (any, error) { return Brier([]float64{0.5, 0.5}, 2, []int{0, 1}) }},
		{"label out of range", ErrValue, func() (any, error) { return CategoricalNLL([]float64{0.5, 0.5}, 2, []int{2}) }},
		{"not a distribution", ErrValue, func() (any, error) { return Entropy([]float64{0.5, 0.6}, 2) }},
		{"negative probability", ErrValue, func() (any, error) { return MaxProbability([]float64{-0.5, 1.5}, 2) }},
		{"no bins", ErrValue, func() (any, error) { return outcomes.ECE(0) }},
		{"no bins, adaptive", ErrValue, func() (any, error) { return outcomes.AdaptiveECE(-1) }},
		{"AUROC empty", ErrEmpty, func() (any, error) { return AUROC(nil, nil) }},
		{"AUROC one kind", ErrValue, func() (any, error) { return AUROC([]float64{1, 2}, []bool{true, true}) }},
		{"AUPRC NaN", ErrValue, func() (any, error) { return AUPRC([]float64{nan, 2}, []bool{true, false}) }},
		{"AUPRC lengths", ErrLength, func() (any, error) { return AUPRC([]float64{1, 2}, []bool{true}) }},
		{"NLL NaN std", ErrValue, func() (any, error) { return MonteCarloNLL([]float64{1}, one, one, nan) }},
		{"outcomes labels", ErrLength, func() (any, error) { return NewOutcomes(half, 2, nil) }},
		{"OOD nothing held out", ErrEmpty, func() (any, error) { return EnergyOOD([]float64{1}, nil) }},
		{"OOD NaN", ErrValue, func() (any, error) { return EnergyOOD([]float64{nan}, []float64{1}) }},
		{"no chains", ErrEmpty, func() (any, error) { return SplitRHat(nil) }},
		{"short chains", ErrEmpty, func() (any, error) { return EffectiveSize([][]float64{{1, 2, 3}}) }},
		{"chains of different lengths", ErrLength, func() (any, error) { return SplitRHat([][]float64{{1, 2, 3, 4}, {1, 2, 3}}) }},
		{"NaN in a chain", ErrValue, func() (any, error) { return EffectiveSize([][]float64{{1, 2, nan, 4}}) }},
		{"a constant chain", ErrValue, func() (any, error) { return SplitRHat([][]float64{{1, 1, 1, 1}}) }},
		{"Wasserstein empty", ErrEmpty, func() (any, error) { return Wasserstein(nil, half) }},
		{"Wasserstein infinite", ErrValue, func() (any, error) { return Wasserstein(half, []float64{inf}) }},
		{"Wasserstein overflows", ErrValue, func() (any, error) { return Wasserstein([]float64{-1.7e308}, []float64{1.7e308}) }},
		{"total variation empty", ErrEmpty, func() (any, error) { return TotalVariation(half, nil, 1) }},
		{"total variation std 0", ErrValue, func() (any, error) { return TotalVariation(half, half, 0) }},
		{"total variation std NaN", ErrValue, func() (any, error) { return TotalVariation(half, half, nan) }},
		{"total variation, narrow and far apart", ErrValue, func() (any, error) { return TotalVariation([]float64{0}, []float64{1}, 1e-9) }},
		{"Mean empty", ErrEmpty, func() (any, error) { return Mean(nil) }},
		{"Mean of an infinity", ErrValue, func() (any, error) { return Mean([]float64{inf}) }},
		{"RMSE overflows", ErrValue, func() (any, error) { return RMSE([]float64{1.7e308}, []float64{-1.7e308}) }},
		{"Mean overflows", ErrValue, func() (any, error) { return Mean([]float64{1.7e308, 1.7e308}) }},
		{"MeanAt overflows", ErrValue, func() (any, error) { return MeanAt([]float64{1.7e308})([]int{0, 0}) }},
		{"MeanStd overflows", ErrValue, func() (any, error) { m, _, err := MeanStd([]float64{1.7e308, -1.7e308}); return m, err }},
		{"bootstrap of nil", ErrValue, func() (any, error) { return bounds(Bootstrap([]int{2}, 10, 0, 0.9, nil)) }},
		{"replicates of nil", ErrValue, func() (any, error) { return Replicates([]int{2}, 10, 0, nil) }},
		{"MeanStd of no numbers", ErrEmpty, func() (any, error) { m, _, err := MeanStd(nil); return m, err }},
		{"AUPRC one kind", ErrValue, func() (any, error) { return AUPRC(score, []bool{true, true}) }},
		{"ranks NaN", ErrValue, func() (any, error) { return NewRanks([]float64{nan, 1}, positive) }},
		{"sweep index", ErrValue, func() (any, error) { return ranks.Sweep([]int{0, 1, 2}) }},
		{"sweep one kind", ErrValue, func() (any, error) { return ranks.Sweep([]int{1, 1}) }},
		{"sweep nothing", ErrValue, func() (any, error) { return ranks.Sweep([]int{}) }},
		{"outcomes index", ErrValue, func() (any, error) { return must.Get(outcomes.ECEAt(10))(t)([]int{-1}) }},
		{"outcomes at none", ErrEmpty, func() (any, error) { return must.Get(outcomes.ECEAt(10))(t)(nil) }},
		{"outcomes in no bins", ErrValue, func() (any, error) { _, err := outcomes.ECEAt(0); return nil, err }},
		{"outcomes lengths", ErrLength, func() (any, error) { return Outcomes{Confidence: half}.ECE(10) }},
		{"outcomes range", ErrValue, func() (any, error) { return Outcomes{[]float64{2}, []bool{true}}.Reliability(10) }},
		{"outcomes empty", ErrEmpty, func() (any, error) { return Outcomes{}.AdaptiveECE(10) }},
		{"no outcomes at", ErrEmpty, func() (any, error) { _, err := (Outcomes{}).ECEAt(10); return nil, err }},
		{"classwise bins", ErrValue, func() (any, error) { return ClasswiseECE(half, 2, []int{0}, 0) }},
		{"classwise label", ErrValue, func() (any, error) { return ClasswiseECE(half, 2, []int{2}, 10) }},
		{"risk empty", ErrEmpty, func() (any, error) { return AURC(nil, nil) }},
		{"risk lengths", ErrLength, func() (any, error) { return AURC(score, []bool{true}) }},
		{"risk NaN", ErrValue, func() (any, error) { return AURC([]float64{nan}, []bool{true}) }},
		{"CRPS lengths", ErrLength, func() (any, error) { return MonteCarloCRPS(score, one, one, 1) }},
		{"CRPS variance", ErrValue, func() (any, error) { return MonteCarloCRPS([]float64{1}, one, [][]float64{{0}}, 1) }},
		{"CRPS no samples", ErrEmpty, func() (any, error) { return MonteCarloCRPS([]float64{1}, nil, nil, 1) }},
		{"CRPS std", ErrValue, func() (any, error) { return MonteCarloCRPS([]float64{1}, one, one, -1) }},
		{"evidence NaN", ErrValue, func() (any, error) { return DempsterShafer([]float64{nan, 1}, 2) }},
		{"evidence rows", ErrLength, func() (any, error) { return DempsterShafer([]float64{1}, 2) }},
		{"temperature 0", ErrValue, func() (any, error) { return Softmax(half, 2, 0) }},
		{"softmax empty", ErrEmpty, func() (any, error) { return Softmax(nil, 2, 1) }},
		{"temperature labels", ErrLength, func() (any, error) { return FitTemperature(half, 2, nil) }},
		{"temperature label", ErrValue, func() (any, error) { return FitTemperature(half, 2, []int{-1}) }},
		{"temperature empty", ErrEmpty, func() (any, error) { return FitTemperature(nil, 2, nil) }},
		{"bootstrap nothing", ErrEmpty, func() (any, error) { return bounds(Bootstrap([]int{0}, 10, 0, 0.9, meanAt(score))) }},
		{"bootstrap no strata", ErrEmpty, func() (any, error) { return bounds(Bootstrap(nil, 10, 0, 0.9, meanAt(score))) }},
		{"bootstrap never", ErrValue, func() (any, error) { return bounds(Bootstrap([]int{2}, 0, 0, 0.9, meanAt(score))) }},
		{"bootstrap level", ErrValue, func() (any, error) { return bounds(Bootstrap([]int{2}, 10, 0, 0, meanAt(score))) }},
		{"PIT lengths", ErrLength, func() (any, error) { return MonteCarloPITs(score, one, one) }},
		{"coverage level", ErrValue, func() (any, error) { return MonteCarloCoverage([]float64{1}, one, one, 1) }},
		{"coverage variance", ErrValue, func() (any, error) { return MonteCarloCoverage([]float64{1}, one, [][]float64{{-1}}, 0.9) }},
		{"difference of one", ErrEmpty, func() (any, error) { return PairedDifference([]float64{1}, []float64{1}, 0, 0.9) }},
		{"difference lengths", ErrLength, func() (any, error) { return PairedDifference(score, []float64{1}, 0, 0.9) }},
		{"difference NaN", ErrValue, func() (any, error) { return PairedDifference(score, []float64{1, nan}, 0, 0.9) }},
		{"difference ratio", ErrValue, func() (any, error) { return PairedDifference(score, score, -1, 0.9) }},
		{"difference level", ErrValue, func() (any, error) { return PairedDifference(score, score, 0, 1) }},
		{"Holm empty", ErrEmpty, func() (any, error) { return Holm(nil) }},
		{"Holm range", ErrValue, func() (any, error) { return Holm([]float64{1.1}) }},
		{"Holm NaN", ErrValue, func() (any, error) { return Holm([]float64{nan}) }},
		{"Spearman lengths", ErrLength, func() (any, error) { return Spearman(score, []float64{1}) }},
		{"Spearman constant", ErrValue, func() (any, error) { return Spearman(score, []float64{1, 1}) }},
		{"Spearman empty", ErrEmpty, func() (any, error) { return Spearman(nil, nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.call(); !errors.Is(err, c.want) {
				t.Errorf("got error %v, want %v", err, c.want)
			}
		})
	}
}
