package train_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// cpuSeconds is the CPU time that the process has used.
func cpuSeconds(t testing.TB) float64 {
	t.Helper()
	var usage syscall.Rusage
	must.Do(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	seconds := func(v syscall.Timeval) float64 { return float64(v.Sec) + float64(v.Usec)*1e-6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

// BenchmarkDensityStep trains the density MLP 13-50-50-50-1 at batch size 128,
// alone and as replicas in one graph. The figure to read is cpu-ms/step: CPU
// time of one replica's training step, noise and batches included.
func BenchmarkDensityStep(b *testing.B) {
	for _, replicas := range []int{1, 2, 20} {
		b.Run(fmt.Sprintf("replicas=%d", replicas), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			var data []train.Dataset
			var seeds []uint64
			for r := range replicas {
				x, y := make([]float64, 128*13), make([]float64, 128)
				for i := range x {
					x[i] = rng.NormFloat64()
				}
				for i := range y {
					y[i] = rng.NormFloat64()
				}
				data, seeds = append(data, train.Dataset{Inputs: nets.Rows(x, 13), Targets: y}), append(seeds, uint64(r))
			}
			const warmUp = 3
			var start float64
			run := train.Trainer{
				LogLikelihoodScale: 0.01,
				Groups:             []train.Group{{Roles: train.AllRoles(), Optimizer: train.SGD{Momentum: 0.9}}},
				Schedule:           train.Cosine(0.01), Epochs: b.N + warmUp, BatchSize: 128,
				Progress: func(p train.Progress) {
					if p.Step == warmUp {
						start = cpuSeconds(b)
						b.ResetTimer()
					}
				},
			}
			network := nets.MLP{Layers: dul.Density{InitStd: 0.03}, Widths: []int{50, 50, 50}}
			fit(b, run, newModel(b, network, likelihood.Gaussian{}, dtypes.Float32, seeds...), data...)
			b.ReportMetric((cpuSeconds(b)-start)*1e3/float64(b.N*replicas), "cpu-ms/step")
		})
	}
}

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
			data := noiseImages(256, 32, 10)
			m := newModel(b, nets.ResNet14(family.layers), likelihood.Categorical{Classes: 10}, dtypes.Float32, 1)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var start float64
			run := bySGD(b.N+warmUp, 128, 0.1)
			run.PretrainEpochs = 0
			run.Progress = func(p train.Progress) {
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
			if err := run.Fit(ctx, m, data); ctx.Err() == nil {
				b.Fatal(err)
			}
		})
	}
}
