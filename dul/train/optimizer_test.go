package train_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// Five steps of each optimizer with given gradients, against PyTorch's.
func TestOptimizersMatchTheRecordedTraces(t *testing.T) {
	c := fixtures.Open(t, "sgd_trace")
	start, gradients := c.Array("p0"), c.Array("grads")
	steps, n := gradients.Dims[0], gradients.Dims[1]
	for _, known := range []struct {
		name      string
		optimizer train.Optimizer
		schedule  train.Schedule
	}{
		{"sgd", train.SGD{Momentum: 0.9, Decay: 0.01}, train.Cosine{Start: 0.1}},
		{"adamw", train.Adam{Beta2: 0.99, Decay: 0.01, Decoupled: true}, train.Constant{Start: 0.01}},
		{"adam", train.Adam{Decay: 0.01}, train.Constant{Start: 0.01}},
	} {
		for _, dtype := range []dtypes.DType{dtypes.Float64, dtypes.Float32} {
			t.Run(fmt.Sprintf("%s/%s", known.name, dtype), func(t *testing.T) {
				tolerance := 1e-10
				if dtype == dtypes.Float32 {
					tolerance = 2e-5
				}
				store := model.NewStore()
				parameter := store.VariableWithValue("/p", fixtures.Tensor(dtype, start))
				exec := must.Get(model.NewExec(fixtures.Backend(t), store,
					func(root *model.Scope, gradient, rate, step *graph.Node) *graph.Node {
						store.SetTraining(gradient.Graph(), true)
						value := parameter.NodeValue(gradient)
						updated := known.optimizer.Update(root.In("state"), value, gradient, rate, step)
						parameter.SetNodeValue(updated)
						return updated
					}))(t)
				for i := range steps {
					row := func(a fixtures.Array) fixtures.Array { return fixtures.Matrix(1, n, a.Values[i*n:(i+1)*n]...) }
					scalar := func(v float64) fixtures.Array { return fixtures.Array{Values: []float64{v}} }
					got := must.Get(exec.Call1(
						fixtures.Tensor(dtype, row(gradients)),
						fixtures.Tensor(dtype, scalar(known.schedule.Rate(i, steps))),
						fixtures.Tensor(dtype, scalar(float64(i+1)))))(t)
					fixtures.Compare(t, fmt.Sprintf("step %d", i), fixtures.FromTensor(t, got), row(c.Array(known.name)), tolerance)
				}
			})
		}
	}
	rates := fixtures.Zeros(1, steps)
	for i := range steps {
		rates.Values[i] = train.Cosine{Start: 0.1}.Rate(i, steps)
	}
	fixtures.Compare(t, "cosine schedule", rates, c.Array("lrs"), 1e-12)
}
