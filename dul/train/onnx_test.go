//go:build onnx && cgo && linux && amd64

package train_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
)

// From the same start and with the same noise, 20 steps on ONNX Runtime change
// the parameters as on the pure Go backend. In single precision the network is
// so small that no activation is so near to 0 that rounding decides whether a
// ReLU lets it through, which would change the gradients by far more.
func TestTrainingOnONNXRuntime(t *testing.T) {
	for name, layers := range map[string]nets.ConvLayers{"plain": baselines.Deterministic{}, "density": dul.Density{}} {
		for dtype, tolerance := range map[dtypes.DType]float64{dtypes.Float64: 1e-12, dtypes.Float32: 1e-5} {
			t.Run(name+" "+dtype.String(), func(t *testing.T) {
				parameters := func(config string, rates train.Schedule) map[string][]float64 {
					t.Setenv(environment.ConfigVariable, config)
					backend, _, err := environment.Open()
					if err != nil {
						t.Skipf("not tested: %v", err)
					}
					network := nets.ResNet{Layers: layers, Blocks: []int{1, 1}, Widths: []int{2, 3}, Stem: 2}
					f := newModel(t, network, likelihood.Categorical{Classes: imageClasses}, dtype, 5)
					f.Backend, f.Host = backend, stochastic.NewHostSampler(5)
					run := trials()[0].Trainer
					run.Epochs, run.PretrainEpochs, run.Schedule = 5, 0, rates
					if name == "density" {
						run.PretrainEpochs = 1
					}
					fit(t, run, f, colours(trialN))
					values := map[string][]float64{}
					for v := range f.Store.IterVariables() {
						if v.Trainable {
							value, err := v.Value()
							if err != nil {
								t.Fatal(err)
							}
							values[v.Path()] = fixtures.FromTensor(t, value).Values
						}
					}
					return values
				}
				start := parameters(environment.GoSequential, func(int, int) float64 { return 0 })
				want := parameters(environment.GoSequential, train.Cosine(0.05))
				var difference, change float64
				for path, got := range parameters("onnx", train.Cosine(0.05)) {
					for i, v := range got {
						difference += math.Pow(v-want[path][i], 2)
						change += math.Pow(want[path][i]-start[path][i], 2)
					}
				}
				if relative := math.Sqrt(difference / change); !(relative <= tolerance) {
					t.Errorf("the changes of the parameters differ by %g of their length, want at most %g", relative, tolerance)
				}
			})
		}
	}
}
