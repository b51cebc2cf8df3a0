package metrics

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The twelve predictions of README.md: probabilities of class 1 of two classes, and the labels.
var (
	twelve  = []float64{0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.5, 0.6, 0.7, 0.8, 1}
	twelves = []int{0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1}
)

// The column "here" of README.md is what the functions return.
func TestConventions(t *testing.T) {
	var probs []float64
	var logits [2][]float64 // of two members
	for _, p := range twelve {
		probs = append(probs, 1-p, p)
		logits[0], logits[1] = append(logits[0], 0, 4*p-2), append(logits[1], 0, 1-2*p)
	}
	positive, wrong := positives(twelves, 1), make([]bool, 12)
	outcomes := NewOutcomes(probs, 2, twelves)
	for i, right := range outcomes.Right {
		wrong[i] = !right
	}
	sweep := NewRanks(twelve, positive).Sweep(nil)
	chains := make([][]float64, 4)
	for c := range chains {
		for i := range 100 {
			chains[c] = append(chains[c], math.Sin(0.37*float64(i*i)+float64(c)))
		}
	}
	members, none := [][]float64{{0}, {1}, {2}, {3}}, [][]float64{{0}, {0}, {0}, {0}}
	means, variances := [][]float64{{0, 1, 2, 3}}, [][]float64{{1, 1, 4, 0.25}}
	targets := []float64{0.5, 1, -1, 3.5}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, line := range strings.Split(string(page), "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			rows[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[2])
		}
	}
	number := regexp.MustCompile(`^\d*\.\d+$|^\d+$`)
	for name, value := range map[string]float64{
		"`Outcomes.ECE`, predicted class": outcomes.ECE(10), "`Outcomes.ECE`, class 1": Outcomes{twelve, positive}.ECE(10), "`ClasswiseECE`": ClasswiseECE(probs, 2, twelves, 10),
		"`Outcomes.AdaptiveECE`, predicted class": outcomes.AdaptiveECE(10), "`Accuracy`": Accuracy(probs, 2, twelves), "`Brier`": Brier(probs, 2, twelves), "`CategoricalNLL`": CategoricalNLL(probs, 2, twelves),
		"`AUROC`": sweep.AUROC(), "`Sweep.AUPRC`": sweep.AUPRC(), "`Sweep.AveragePrecision`": sweep.AveragePrecision(), "`Sweep.FPRAtTPR`(0.95)": sweep.FPRAtTPR(0.95),
		"`AURC`": AURC(outcomes.Confidence, outcomes.Right), "`MutualInformation`, mean": Mean(MutualInformation(logits[:], 2)),
		"`MonteCarloCRPS`, four points": MonteCarloCRPS([]float64{1.5}, members, none, 1), "`MonteCarloCRPS`, four Gaussians": MonteCarloCRPS(targets, means, variances, 1), "`MonteCarloNLL`, four Gaussians": MonteCarloNLL(targets, means, variances, 1),
		"`EffectiveSize`": EffectiveSize(chains), "`SplitRHat`": SplitRHat(chains),
	} {
		got, want := rows[name], fmt.Sprintf("%.4f", value)
		if !number.MatchString(got) || got != want {
			t.Errorf("README.md has %q for %s, which is %s", got, name, want)
		}
	}
}
