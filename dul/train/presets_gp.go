package train

// Steps is rate, multiplied by factor at each of the given parts of the run,
// from 0 to 1.
func Steps(rate, factor float64, at ...float64) Schedule {
	return func(t, total int) float64 {
		r := rate
		for _, part := range at {
			if float64(t) >= part*float64(total) {
				r *= factor
			}
		}
		return r
	}
}

// SNGP is the training run of SNGP on CIFAR by the DUE authors' code, with which
// the paper ran it: 200 epochs with batches of 128, a learning rate of 0.05 that
// falls to a fifth after 60, 120 and 160 epochs, and a weight decay of 5e-4.
func SNGP() Classification { return lastLayerProcess(0.05) }

// DUE is the same for DUE, with a learning rate of 0.1.
func DUE() Classification { return lastLayerProcess(0.1) }

func lastLayerProcess(rate float64) Classification {
	run := Recipe{Epochs: 200, BatchSize: 128, LearningRate: rate, Momentum: 0.9, WeightDecay: 5e-4}.Classification()
	run.Schedule = Steps(rate, 0.2, 60./200, 120./200, 160./200)
	return run
}
