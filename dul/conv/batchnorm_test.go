package conv_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
	"densityuncertainty/environment/must"
)

// moments are the mean and the variance, divided by the count, of each channel.
func moments(x fixtures.Array) (mean, variance []float64) {
	for channel := range slices.Chunk(x.Values, len(x.Values)/x.Dims[0]) {
		m, v := stat.PopMeanVariance(channel, nil)
		mean, variance = append(mean, m), append(variance, v)
	}
	return mean, variance
}

// batchNorm is BatchNorm in the scope "norm", in training or in evaluation.
func batchNorm(training bool) func(s *model.Scope, in fixtures.Nodes) *graph.Node {
	return func(s *model.Scope, in fixtures.Nodes) *graph.Node {
		s.Store().SetTraining(in["x"].Graph(), training)
		return conv.BatchNorm(s.In("norm"), in["x"])
	}
}

// inputs are a batch of images of two channels, far from standardised, and the
// parameters of their normalisation.
func inputs(rng *rand.Rand, batch, height, width int) fixtures.Values {
	x := fixtures.Random(rng, 2, batch, height, width)
	for i := range x.Values[:len(x.Values)/2] {
		x.Values[i] = 1.5 + 0.5*x.Values[i]
	}
	return fixtures.Values{"x": x, "/norm/scale": fixtures.Matrix(2, 1, 1.5, -0.7), "/norm/shift": fixtures.Matrix(2, 1, 0.3, -2)}
}

func TestBatchNormGradients(t *testing.T) {
	values := inputs(rand.New(rand.NewPCG(5, 6)), 2, 2, 3)
	t.Run("training", func(t *testing.T) { fixtures.CheckGradient(t, values, nil, batchNorm(true)) })
	t.Run("evaluation", func(t *testing.T) {
		values["/norm/running_mean"] = fixtures.Matrix(2, 1, 2, -1)
		values["/norm/running_variance"] = fixtures.Matrix(2, 1, 0.3, 4)
		fixtures.CheckGradient(t, values, nil, batchNorm(false), "x", "/norm/scale", "/norm/shift")
	})
}

// In single precision the gradient keeps its digits where the mean is three
// standard deviations and the batch is as large as a network's. Variance and
// gradient come from sums over the raw inputs, so that larger means cost digits.
func TestBatchNormGradientsInSinglePrecision(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	values := inputs(rng, 64, 16, 16)
	values["ct"] = fixtures.Random(rng, values["x"].Dims...)
	gradients := func(dtype dtypes.DType) []fixtures.Array {
		return fixtures.Evaluate(t, dtype, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			loss := graph.ReduceAllSum(graph.Mul(batchNorm(true)(s, in), in["ct"]))
			return graph.Gradient(loss, in["x"], in["/norm/scale"], in["/norm/shift"])
		})
	}
	single, double := gradients(dtypes.Float32), gradients(dtypes.Float64)
	for i, name := range []string{"x", "scale", "shift"} {
		fixtures.Compare(t, "gradient with respect to "+name, single[i], double[i], 1e-4)
	}
}

// The running statistics follow those of the batches, the variance the unbiased
// one, and stay as they are in evaluation. A batch of one value for each channel, as
// the rest of an epoch may be, has the variance 0.
func TestRunningStatistics(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	store := model.NewStore()
	params.SetSeeds(store, 1)
	step := func(x fixtures.Array, training bool) {
		t.Helper()
		must.Get(model.CallOnce(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
			return batchNorm(training)(s, fixtures.Nodes{"x": x})
		}, fixtures.Tensor(dtypes.Float64, x)))(t)
	}
	wantMean, wantVariance := fixtures.Zeros(2, 1), fixtures.Matrix(2, 1, 1, 1)
	check := func(when string) {
		t.Helper()
		for path, want := range map[string]fixtures.Array{"/norm/running_mean": wantMean, "/norm/running_variance": wantVariance} {
			v := store.GetVariable(path)
			if v.Trainable || params.RoleOf(v, store) != params.Running {
				t.Errorf("%s is trainable: %t, its role is %q", path, v.Trainable, params.RoleOf(v, store))
			}
			value := must.Get(v.Value())(t)
			fixtures.Compare(t, path+" "+when, fixtures.FromTensor(t, value), want, 1e-13)
		}
	}
	for _, batch := range []fixtures.Array{inputs(rng, 2, 3, 2)["x"], inputs(rng, 2, 3, 2)["x"], inputs(rng, 1, 1, 1)["x"]} {
		step(batch, true)
		mean, variance := moments(batch)
		n := float64(len(batch.Values) / 2)
		for c := range 2 {
			wantMean.Values[c] = 0.9*wantMean.Values[c] + 0.1*mean[c]
			wantVariance.Values[c] = 0.9*wantVariance.Values[c] + 0.1*variance[c]*n/max(n-1, 1)
		}
		check(fmt.Sprintf("after a training step with %g values of each channel", n))
	}
	step(inputs(rng, 2, 3, 2)["x"], false)
	check("after an evaluation")
}
