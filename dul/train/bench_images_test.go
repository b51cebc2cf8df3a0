package train_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
)

// BenchmarkResNet14Step trains a ResNet-14 at batch size 128 on images of 32 x
// 32 pixels. The figures to read are ms/step, wall time, and cpu-ms/step, the
// CPU time of all threads, both of a whole step: images, noise, gradients, update.
func BenchmarkResNet14Step(b *testing.B) {
	for _, family := range []struct {
		name   string
		layers nets.ConvLayers
	}{{"plain", baselines.Deterministic{}}, {"density", dul.Density{}}} {
		b.Run(family.name, func(b *testing.B) {
			const warmUp = 2
			backend := fixtures.Backend(b)
			data := noiseImages(256, 32, 10)
			f, err := nets.NewClassifier(backend, nets.ResNet14(family.layers), 10, 1, dtypes.Float32)
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var start float64
			run := train.ResNet14(10).Classification()
			run.PretrainEpochs, run.Epochs = 0, b.N+warmUp
			run.Order = shuffled
			run.Progress = func(p train.ClassificationProgress) {
				switch p.Step {
				case warmUp:
					start = cpuSeconds(b)
					b.ResetTimer()
				case warmUp + b.N:
					b.StopTimer()
					b.ReportMetric((cpuSeconds(b)-start)*1e3/float64(b.N), "cpu-ms/step")
					b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/step")
					cancel()
				}
			}
			if err := run.Fit(ctx, f, data); ctx.Err() == nil {
				b.Fatal(err)
			}
		})
	}
}

// noiseImages are n images of random pixels and labels.
func noiseImages(n, side, classes int) train.Images {
	rng := rand.New(rand.NewPCG(1, 1))
	data := train.Images{Height: side, Width: side, Standardization: nets.Standardization{
		Mean: []float64{0.5, 0.5, 0.5}, Std: []float64{0.25, 0.25, 0.25},
	}}
	for range n {
		data.Labels = append(data.Labels, rng.IntN(classes))
		for range 3 * side * side {
			data.Pixels = append(data.Pixels, byte(rng.Uint32()))
		}
	}
	return data
}

// shuffled is a random order for each seed and epoch.
func shuffled(seed uint64, epoch, n int) []int {
	return rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(n)
}
