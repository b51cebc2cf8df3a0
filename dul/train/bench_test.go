package train_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	_ "github.com/gomlx/compute/gobackend"

	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
)

// cpuSeconds is the CPU time that the process has used.
func cpuSeconds(t testing.TB) float64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	seconds := func(v syscall.Timeval) float64 { return float64(v.Sec) + float64(v.Usec)*1e-6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

// BenchmarkDensityStep trains the density MLP 13-50-50-50-1 at batch size 128,
// alone and as replicas in one graph. The figure to read is cpu-ms/step: CPU
// time of one replica's training step, noise and batches included.
func BenchmarkDensityStep(b *testing.B) {
	for _, replicas := range []int{0, 1, 20} {
		b.Run(fmt.Sprintf("replicas=%d", replicas), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			count := max(replicas, 1)
			sets, seeds := make([]train.Set, count), make([]uint64, count)
			for r := range sets {
				sets[r].D = 13
				for range 128 {
					for range 13 {
						sets[r].X = append(sets[r].X, rng.NormFloat64())
					}
					sets[r].Y = append(sets[r].Y, rng.NormFloat64())
				}
				seeds[r] = uint64(r)
			}
			var start float64
			steps := 0
			t := train.Regression{
				Network:            nets.MLP{Layers: dul.Density{InitStd: 0.03}, Widths: []int{50, 50, 50}},
				LogLikelihoodScale: 0.01,
				Groups:             []train.Group{{Roles: train.AllRoles(), Optimizer: train.SGD{Momentum: 0.9}}},
				Schedule:           train.Cosine(0.01),
				Epochs:             b.N + 3,
				BatchSize:          128,
				Seeds:              seeds,
				Progress: func(p train.Progress) {
					if p.Done == 3 {
						start = cpuSeconds(b)
						b.ResetTimer()
					}
					steps = p.Done - 3
				},
			}
			backend := fixtures.Backend(b)
			var err error
			if replicas == 0 {
				_, err = t.Fit(context.Background(), backend, sets[0])
			} else {
				_, err = t.FitReplicas(context.Background(), backend, sets)
			}
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric((cpuSeconds(b)-start)*1e3/float64(steps*count), "cpu-ms/step")
		})
	}
}
