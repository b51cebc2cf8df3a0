package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

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

// A confidence of k/bins is in bin k, whichever arithmetic it is of.
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

// The order of examples of equal confidence has no part in calibration: at the rate of right answers, errors are 0.
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
