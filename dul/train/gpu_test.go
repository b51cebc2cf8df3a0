package train_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// gpuPrograms are compiled for GPUs by TestCompilesForGPUs: a training step, or a prediction of 5 samples. Megabytes is
// the limit of the memory that XLA says it needs at its peak: the sum of parameters, activations and temporary arrays,
// without what cuDNN needs on top and without the images of the training set (154 MB for 50,000).
var gpuPrograms = []struct {
	card, network, layers, what string
	images                      int
	megabytes                   float64
}{
	{"h100", "resnet14", "plain", "step", 128, 150},
	{"h100", "resnet14", "density", "step", 128, 310},
	{"h100", "resnet14", "density", "step in bfloat16", 128, 240},
	{"h100", "resnet14", "mixture", "step", 128, 270},
	{"h100", "resnet14", "sngp", "step", 128, 160},
	{"h100", "resnet14", "rank1", "step", 128, 390},
	{"h100", "resnet14", "density", "prediction", 128, 260},
	{"h100", "wrn28x10", "density", "step", 64, 4000},
	{"h100", "mlp", "density", "step of 20 replicas", 128, 15},
	{"a100", "resnet14", "plain", "step", 128, 150},
	{"titanx", "resnet14", "plain", "step", 128, 150},
}

// gpuTransposed is the number of entries of the largest array that may be transposed, which is smaller than most
// activations: the images that a prediction is given, or the network's largest kernel.
var gpuTransposed = map[string]int{"resnet14": 128 * 3 * 32 * 32, "wrn28x10": 9 * 640 * 640, "mlp": 20 * 50 * 50}

// Every program compiles for its card, needs no more memory than gpuPrograms says, and transposes no activations.
// ./environment/test --all runs it, with environment/gpu/plugin.c as the backend; it needs no GPU.
func TestCompilesForGPUs(t *testing.T) {
	cards := os.Getenv("GPU_CARDS")
	if cards == "" {
		t.Skip("GPU_CARDS does not name the folder of environment/gpu")
	}
	folder := t.TempDir()
	t.Setenv("GPU_LOG", filepath.Join(folder, "log"))
	t.Setenv("XLA_FLAGS", os.Getenv("XLA_FLAGS")+" --xla_dump_hlo_as_text --xla_gpu_dump_llvmir=false --xla_dump_to="+folder)
	layers := map[string]nets.ConvLayers{
		"plain": baselines.Deterministic{}, "density": dul.Density{}, "mixture": dul.Density{Energy: energy.Rank1Mixture{Fraction: 0.1}},
		"rank1": baselines.Rank1{}, "sngp": baselines.SNGP{LengthScale: 8, Hidden: baselines.SpectralNormed{Bound: 0.95}},
	}
	for _, p := range gpuPrograms {
		t.Run(fmt.Sprint(p.network, " ", p.layers, ", ", p.what, ", ", p.card), func(t *testing.T) {
			run := bySGD(2, p.images, 0.1)
			run.PretrainEpochs, run.BFloat16 = 0, strings.HasSuffix(p.what, "bfloat16")
			var compute func() error
			if p.network == "mlp" {
				rows := nets.Rows(make([]float64, 13*p.images), 13)
				data, seeds := make([]train.Dataset, 20), make([]uint64, 20)
				for i := range data {
					data[i], seeds[i] = train.Dataset{Inputs: rows, Targets: make([]float64, p.images)}, uint64(i)
				}
				m := newModel(t, nets.MLP{Layers: dul.Density{}, Widths: []int{50, 50, 50}}, likelihood.Gaussian{}, dtypes.Float32, seeds...)
				compute = func() error { return run.Fit(t.Context(), m, data...) }
			} else {
				network := nets.ResNet14(layers[p.layers])
				if p.network == "wrn28x10" {
					network = nets.WideResNet28x10(layers[p.layers])
				}
				m, data := newModel(t, network, likelihood.Categorical{Classes: 10}, dtypes.Float32, 1), noiseImages(2*p.images, 32, 10)
				compute = func() error { return run.Fit(t.Context(), m, data) }
				if p.what == "prediction" {
					compute = func() error {
						_, err := predict.Sample(t.Context(), m, data.Inputs, predict.Options{Samples: 5, BatchSize: p.images})
						return err
					}
				}
			}
			t.Setenv("GPU_CARD", filepath.Join(cards, p.card+".txtpb"))
			if compute() == nil {
				t.Fatal("it was computed, not compiled for a GPU: the backend is not environment/gpu/plugin.c")
			}
			said := string(must.Get(os.ReadFile(os.Getenv("GPU_LOG")))(t))
			must.Do(t, os.Remove(os.Getenv("GPU_LOG")))
			peak, ok := strings.CutPrefix(strings.TrimSpace(said), "ok ")
			if !ok {
				t.Fatal(said)
			}
			megabytes := must.Get(strconv.ParseFloat(peak, 64))(t) / 1e6
			t.Logf("%.0f MB", megabytes)
			if megabytes > p.megabytes {
				t.Errorf("%.0f MB at the peak, at most %g are allowed", megabytes, p.megabytes)
			}
			optimized := must.Get(filepath.Glob(filepath.Join(folder, "*gpu_after_optimizations.txt")))(t)
			if len(optimized) != 1 {
				t.Fatalf("%d programs were written, want 1", len(optimized))
			}
			text := string(must.Get(os.ReadFile(optimized[0]))(t))
			for _, found := range regexp.MustCompile(`= \w+\[([0-9,]+)\]\S* (?:transpose|copy)\(.*`).FindAllStringSubmatch(text, -1) {
				entries := 1
				for size := range strings.SplitSeq(found[1], ",") {
					entries *= must.Get(strconv.Atoi(size))(t)
				}
				if entries > gpuTransposed[p.network] {
					t.Error("an activation is transposed:", found[0])
				}
			}
			dumped := must.Get(filepath.Glob(filepath.Join(folder, "*")))(t)
			for _, file := range dumped {
				must.Do(t, os.RemoveAll(file))
			}
		})
	}
}
