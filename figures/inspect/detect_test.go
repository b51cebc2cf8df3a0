package inspect_test

import (
	"math/rand/v2"
	"testing"

	"densityuncertainty/figures/inspect"
)

func TestDetect(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var inside, outside []float64
	for i := range 600 {
		inside = append(inside, rng.NormFloat64())
		if i%2 == 0 {
			outside = append(outside, 1+rng.NormFloat64())
		}
	}
	auroc, auprc, err := inspect.Detect(inside, outside)
	if err != nil {
		t.Fatal(err)
	}
	// Normal scores a distance of 1 apart: Phi(1/sqrt 2) = 0.760.
	if auroc.Low > 0.760 || auroc.High < 0.760 || auroc.Value < auroc.Low || auroc.Value > auroc.High || auroc.High-auroc.Low > 0.08 {
		t.Errorf("AUROC %v, want one about 0.760", auroc)
	}
	// A third are positive, which is what no score at all would get.
	if auprc.Low < 0.4 || auprc.High > 0.8 {
		t.Errorf("AUPRC %v", auprc)
	}
	if got := (inspect.Interval{Value: 0.5, Low: 0.25, High: 0.75}).String(); got != "0.500 [0.250, 0.750]" {
		t.Errorf("printed %q", got)
	}
	if _, _, err := inspect.Detect(inside, nil); err == nil {
		t.Error("no images outside, and no error")
	}
}
