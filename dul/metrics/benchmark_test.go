package metrics

import (
	"math/rand/v2"
	"testing"
)

// The sizes of the paper's experiments: 10,000 test images, and 26,032 of SVHN.
const (
	inside  = 10000
	outside = 26032
)

func detection() (score []float64, positive []bool) {
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range inside + outside {
		shift := 0.0
		if i >= inside {
			shift = 1.3
		}
		score, positive = append(score, shift+rng.NormFloat64()), append(positive, i >= inside)
	}
	return score, positive
}

func BenchmarkAUROC(b *testing.B) {
	score, positive := detection()
	for b.Loop() {
		if _, err := AUROC(score, positive); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAUPRC(b *testing.B) {
	score, positive := detection()
	for b.Loop() {
		if _, err := AUPRC(score, positive); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBootstrapAUROC1000(b *testing.B) {
	score, positive := detection()
	ranks, err := NewRanks(score, positive)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := BootstrapStrata([]int{inside, outside}, 1000, 1, 0.95, func(indices []int) (float64, error) {
			s, err := ranks.Sweep(indices)
			return s.AUROC(), err
		}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkECE100Classes(b *testing.B) {
	probs, labels := predictions(rand.New(rand.NewPCG(2, 2)), inside, 100)
	for b.Loop() {
		if _, err := ECE(probs, 100, labels, 15); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkClasswiseECE100Classes(b *testing.B) {
	probs, labels := predictions(rand.New(rand.NewPCG(2, 2)), inside, 100)
	for b.Loop() {
		if _, err := ClasswiseECE(probs, 100, labels, 15); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBootstrapECE1000(b *testing.B) {
	probs, labels := predictions(rand.New(rand.NewPCG(2, 2)), inside, 100)
	outcomes, err := NewOutcomes(probs, 100, labels)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := Bootstrap(inside, 1000, 1, 0.95, func(indices []int) (float64, error) {
			resampled, err := outcomes.At(indices)
			if err != nil {
				return 0, err
			}
			return resampled.ECE(15)
		}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFitTemperature(b *testing.B) {
	logits, labels := calibrated(rand.New(rand.NewPCG(3, 3)), 5000, 100)
	for b.Loop() {
		if _, err := FitTemperature(logits, 100, labels); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMonteCarloCRPS(b *testing.B) {
	target, mean, variance := mixtures(rand.New(rand.NewPCG(4, 4)), 10, 5000)
	for b.Loop() {
		if _, err := MonteCarloCRPS(target, mean, variance, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCentralIntervals(b *testing.B) {
	_, mean, variance := mixtures(rand.New(rand.NewPCG(4, 4)), 10, 5000)
	for b.Loop() {
		if _, _, err := CentralIntervals(mean, variance, 0.95); err != nil {
			b.Fatal(err)
		}
	}
}
