package metrics_test

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/metrics"
)

// The input of README.md.
var (
	class1   = []float64{0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.5, 0.6, 0.7, 0.8, 1} // probabilities
	labels   = []int{0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1}
	positive = each(12, func(i int) bool { return labels[i] == 1 })
	probs    = each(24, func(i int) float64 { return [2]float64{1 - class1[i/2], class1[i/2]}[i%2] })
	outcomes = metrics.NewOutcomes(probs, 2, labels)
	sweep    = metrics.NewRanks(class1, positive).Sweep()

	points    = [][]float64{{0}, {1}, {2}, {3}}
	exactly   = [][]float64{{0}, {0}, {0}, {0}}
	means     = [][]float64{{0, 1, 2, 3}}
	variances = [][]float64{{1, 1, 4, 0.25}}
	targets   = []float64{0.5, 1, -1, 3.5}

	chains = each(4, func(c int) []float64 {
		return each(100, func(i int) float64 { return math.Sin(0.37*float64(i*i) + float64(c)) })
	})
)

func each[T any](n int, f func(i int) T) (all []T) {
	for i := range n {
		all = append(all, f(i))
	}
	return all
}

func ExampleOutcomes_ECE() {
	fmt.Printf("predicted class: %.4f\n", outcomes.ECE(10))
	fmt.Printf("class 1: %.4f\n", metrics.Outcomes{Confidence: class1, Right: positive}.ECE(10))
	// Output:
	// predicted class: 0.2667
	// class 1: 0.2417
}

func ExampleClasswiseECE() {
	fmt.Printf("%.4f\n", metrics.ClasswiseECE(probs, 2, labels, 10))
	// Output: 0.2542
}

func ExampleOutcomes_AdaptiveECE() {
	fmt.Printf("predicted class: %.4f\n", outcomes.AdaptiveECE(10))
	// Output: predicted class: 0.2667
}

func ExampleAccuracy() {
	fmt.Printf("%.4f\n", metrics.Accuracy(probs, 2, labels))
	// Output: 0.6667
}

func ExampleBrier() {
	fmt.Printf("%.4f\n", metrics.Brier(probs, 2, labels))
	// Output: 0.4525
}

func ExampleCategoricalNLL() {
	fmt.Printf("%.4f\n", metrics.CategoricalNLL(probs, 2, labels))
	// Output: 0.6515
}

func ExampleMutualInformation() {
	var members [2][]float64 // logits
	for _, p := range class1 {
		members[0], members[1] = append(members[0], 0, 4*p-2), append(members[1], 0, 1-2*p)
	}
	fmt.Printf("mean: %.4f\n", stat.Mean(metrics.MutualInformation(members[:], 2), nil))
	// Output: mean: 0.0704
}

func ExampleAUROC() {
	fmt.Printf("%.4f\n", metrics.AUROC(class1, positive))
	// Output: 0.7083
}

func ExampleSweep_AUPRC() {
	fmt.Printf("%.4f\n", sweep.AUPRC())
	// Output: 0.7563
}

func ExampleSweep_AveragePrecision() {
	fmt.Printf("%.4f\n", sweep.AveragePrecision())
	// Output: 0.7645
}

func ExampleSweep_FPRAtTPR() {
	fmt.Printf("%.4f\n", sweep.FPRAtTPR(0.95))
	// Output: 0.8333
}

func ExampleOutcomes_AURC() {
	fmt.Printf("%.4f\n", outcomes.AURC())
	// Output: 0.2482
}

func ExampleMonteCarloCRPS() {
	fmt.Printf("four points: %.4f\n", metrics.MonteCarloCRPS([]float64{1.5}, points, exactly, 1))
	fmt.Printf("four Gaussians: %.4f\n", metrics.MonteCarloCRPS(targets, means, variances, 1))
	// Output:
	// four points: 0.3750
	// four Gaussians: 0.7138
}

func ExampleMonteCarloNLL() {
	fmt.Printf("four Gaussians: %.4f\n", metrics.MonteCarloNLL(targets, means, variances, 1))
	// Output: four Gaussians: 1.3564
}

func ExampleEffectiveSize() {
	fmt.Printf("%.4f\n", metrics.EffectiveSize(chains))
	// Output: 407.6612
}

func ExampleSplitRHat() {
	fmt.Printf("%.4f\n", metrics.SplitRHat(chains))
	// Output: 1.0148
}
