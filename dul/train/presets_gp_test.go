package train_test

import (
	"math"
	"testing"

	"densityuncertainty/dul/train"
)

// The rate falls after 60, 120 and 160 of 200 epochs, here of 10 steps each.
func TestStepsOfTheGaussianProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		run  train.Classification
		rate float64
	}{"SNGP": {train.SNGP(), 0.05}, "DUE": {train.DUE(), 0.1}} {
		if c.run.Epochs != 200 || c.run.BatchSize != 128 || c.run.PretrainEpochs != 0 {
			t.Errorf("%s: %d epochs, batches of %d, %d for pretraining", name, c.run.Epochs, c.run.BatchSize, c.run.PretrainEpochs)
		}
		for step, factor := range map[int]float64{0: 1, 599: 1, 600: 0.2, 1199: 0.2, 1200: 0.04, 1600: 0.008, 1999: 0.008} {
			if got, want := c.run.Schedule(step, 2000), c.rate*factor; math.Abs(got-want) > 1e-15 {
				t.Errorf("%s: the rate of step %d is %g, want %g", name, step, got, want)
			}
		}
	}
}
