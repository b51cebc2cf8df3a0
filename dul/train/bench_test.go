package train_test

import (
	"context"
	"flag"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
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

// What the benchmarks of images measure. They are flags of the test program, so that one
// program measures all of them: go test ./dul/train -run '^$' -bench ImageStep -batch 512
var (
	benchNetwork  = flag.String("network", "resnet14", "network of the benchmarks of images: resnet14 or wrn28x10")
	benchBatch    = flag.Int("batch", 128, "images in a step of BenchmarkImageStep, or in a batch of BenchmarkImageSample")
	benchBFloat16 = flag.Bool("bfloat16", false, "let convolutions of BenchmarkImageStep multiply in bfloat16")
)

// onlyTried tells whether this is the single run with which the testing package begins before the number of runs that
// -benchtime asks for, as 100x. It would compile everything twice, which on a GPU takes longer than the measurement.
func onlyTried(b *testing.B) bool {
	b.Helper()
	runs := flag.Lookup("test.benchtime").Value.String()
	return b.N == 1 && strings.HasSuffix(runs, "x") && runs != "1x"
}

// BenchmarkImageStep trains a network on images of 32 x 32 pixels. The figures to
// read are ms/step, wall time, and cpu-ms/step, the CPU time of all threads, both
// of a whole step: images, noise, gradients, update. The program step_pytorch.py
// measures the same of PyTorch, in turn with this.
func BenchmarkImageStep(b *testing.B) {
	for _, family := range benchFamilies {
		b.Run(family.name, func(b *testing.B) {
			if onlyTried(b) {
				return
			}
			const perEpoch, warmUp = 2, 2
			data := noiseImages(perEpoch**benchBatch, 32, 10)
			m := benchModel(b, family.layers)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var start float64
			run := bySGD(1+(b.N+warmUp)/perEpoch, *benchBatch, 0.1)
			run.PretrainEpochs, run.BFloat16 = 0, *benchBFloat16
			run.Progress = func(p train.Progress) {
				if p.Step == warmUp {
					start = cpuSeconds(b)
					b.ResetTimer()
				}
				if done := p.Step - warmUp; done >= b.N && ctx.Err() == nil {
					b.StopTimer()
					b.ReportMetric((cpuSeconds(b)-start)*1e3/float64(done), "cpu-ms/step")
					b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(done), "ms/step")
					b.ReportMetric(float64(done**benchBatch)/b.Elapsed().Seconds(), "images/s")
					cancel()
				}
			}
			if err := run.Fit(ctx, m, data); ctx.Err() == nil {
				b.Fatalf("the training ended before the measurement: %v", err)
			}
		})
	}
}

// BenchmarkImageSample draws one sample of the outputs for a batch of images, as prediction does 25 times for each.
// Units are those of BenchmarkImageStep, and step_pytorch.py measures the same of PyTorch.
func BenchmarkImageSample(b *testing.B) {
	for _, family := range benchFamilies {
		b.Run(family.name, func(b *testing.B) {
			if onlyTried(b) {
				return
			}
			images := noiseImages((1+b.N)**benchBatch, 32, 10).Inputs
			var start float64
			must.Get(predict.Sample(b.Context(), benchModel(b, family.layers), images, predict.Options{
				Samples: family.samples, BatchSize: *benchBatch,
				Progress: func(done, _ int) {
					if done == *benchBatch { // compiled
						start = cpuSeconds(b)
						b.ResetTimer()
					}
				},
			}))(b)
			b.StopTimer()
			steps := float64(b.N * family.samples)
			b.ReportMetric((cpuSeconds(b)-start)*1e3/steps, "cpu-ms/step")
			b.ReportMetric(b.Elapsed().Seconds()*1e3/steps, "ms/step")
		})
	}
}

// benchFamilies are the layers of the benchmarks of images, with a number of samples to draw: those of a network
// without noise are computed once.
var benchFamilies = []struct {
	name    string
	layers  nets.ConvLayers
	samples int
}{
	{"plain", baselines.Deterministic{}, 1},
	{"density", dul.Density{}, 5},
	{"detached", dul.Density{Gradients: dul.Detached}, 5},
	{"mixture", dul.Density{Energy: energy.Rank1Mixture{}}, 5},
}

// benchModel is the network that the flags name.
func benchModel(b *testing.B, layers nets.ConvLayers) *nets.Model {
	b.Helper()
	build, known := map[string]func(nets.ConvLayers) nets.ResNet{"resnet14": nets.ResNet14, "wrn28x10": nets.WideResNet28x10}[*benchNetwork]
	if !known || *benchBatch < 1 {
		b.Fatalf("-network %s -batch %d: want resnet14 or wrn28x10, and at least 1", *benchNetwork, *benchBatch)
	}
	return newModel(b, build(layers), likelihood.Categorical{Classes: 10}, dtypes.Float32, 1)
}

// In bfloat16 a run ends close to where it ends in single precision; its log says how close.
func TestBFloat16Run(t *testing.T) {
	c := named(t, "images")
	c.PretrainEpochs, c.data = 0, []train.Dataset{colours(32)} // one graph to compile: joint steps on whole batches
	var nll []float64
	var steps int
	for _, narrow := range []bool{false, true} {
		var last train.Progress
		c.BFloat16, c.Progress = narrow, func(p train.Progress) { last = p }
		c.fit(t, c.model(t, dtypes.Float32))
		nll, steps = append(nll, last.Losses.NLL), last.Steps
	}
	off := math.Abs(nll[1]/nll[0] - 1)
	t.Logf("bfloat16: after %d steps a cross-entropy of %.6f, %.6f in single precision, %.1e off", steps, nll[1], nll[0], off)
	if !(off < 0.05) { // nor NaN
		t.Error("it is not close")
	}
}
