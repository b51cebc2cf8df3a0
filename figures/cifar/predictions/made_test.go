package predictions

import (
	"math"
	"math/rand/v2"
	"testing"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/environment/must"
)

// The sizes of the paper's experiments.
const (
	testImages = 10000
	svhnImages = 26032
)

// made are predictions like those of a trained network: most images are classified with near certainty,
// most of the others wrongly now and then, those of the other set with less certainty. certainty is the
// mean margin of the right class's logit.
func made(t testing.TB, classes, images, others int, certainty float64, seed uint64) *Predictions {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 77))
	const samples = 5
	p := &Predictions{Experiment: "0123456789abcdef", Dataset: "cifar10", Classes: classes, Samples: samples}
	draw := func(n int, certainty, energy float64) (probs, information []float64, labels []int, e Energies) {
		logits := make([][]float64, samples)
		for range n {
			label, top := rng.IntN(classes), max(certainty*(1+0.6*rng.NormFloat64()), 0)
			labels = append(labels, label)
			base := make([]float64, classes)
			for c := range base {
				base[c] = 2 * rng.NormFloat64()
			}
			base[label] += top
			for m := range logits {
				for c := range base {
					// Probabilities come from float32 arithmetic.
					logits[m] = append(logits[m], float64(float32(base[c]+0.4*rng.NormFloat64())))
				}
			}
			mean := energy * math.Exp(0.05*rng.NormFloat64())
			e.Mean, e.Once = append(e.Mean, mean), append(e.Once, mean*(1+0.01*rng.NormFloat64()))
		}
		probs = must.Get(metrics.MeanProbabilities(logits, classes))(t)
		information = must.Get(metrics.MutualInformation(logits, classes))(t)
		return probs, information, labels, e
	}
	p.Probs, p.MutualInformation, p.Labels, p.Energy = draw(images, certainty, 900)
	_, _, _, p.HeldOut = draw(images/2, certainty, 900)
	svhn := Set{Name: "svhn"}
	var probs []float64
	probs, svhn.MutualInformation, _, svhn.Energy = draw(others, certainty/2, 1000)
	svhn.MaxProbability = must.Get(metrics.MaxProbability(probs, classes))(t)
	svhn.Entropy = must.Get(metrics.Entropy(probs, classes))(t)
	p.Others = []Set{svhn}
	return p
}
