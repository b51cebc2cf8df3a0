package nets_test

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
)

// transformer is one block of self-attention on sequences [batch, seq, features]. All
// its projections are layers of the given family.
func transformer(layers nets.Layers, s *model.Scope, x *graph.Node, classes int) *graph.Node {
	const width = 8
	h := layers.Dense(s.In("embed"), x, width)
	q, k, v := layers.Dense(s.In("query"), h, width), layers.Dense(s.In("key"), h, width), layers.Dense(s.In("value"), h, width)
	scores := graph.MulScalar(graph.Einsum("bqd,bkd->bqk", q, k), 1/math.Sqrt(width))
	h = graph.Add(h, graph.Einsum("bqk,bkd->bqd", graph.Softmax(scores, -1), v))
	h = graph.Add(h, layers.Dense(s.In("mlp_out"), ops.ReLU(layers.Dense(s.In("mlp_in"), h, 2*width)), width))
	return layers.Dense(s.In("output"), graph.ReduceMean(h, 1), classes)
}

// A transformer with density layers learns whether a sequence rises or falls. Sequences
// that are ten times as large as those of the training have larger energies.
func ExampleFunc() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	network, err := nets.Func{Name: "transformer", Build: transformer}.Over(dul.Density{InitStd: 0.01})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := nets.New(backend, network, likelihood.Categorical{Classes: 2}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	// 64 sequences of 4 steps with 2 features: the value and the time of each step.
	sequences := func(scale float64) (x nets.Floats, labels []int) {
		for i := range 64 {
			slope := float64(i%2*2-1) * (1 + float64(i)/64)
			for step := range 4 {
				x.Values = append(x.Values, scale*slope*float64(step-1)/2, float64(step-1)/2)
			}
			labels = append(labels, i%2)
		}
		x.Shape = []int{4, 2}
		return x, labels
	}
	x, labels := sequences(1)
	far, _ := sequences(10)
	fit := train.Trainer{Settings: train.Settings{
		Epochs: 20, BatchSize: 16, LogLikelihoodScale: 1, Schedule: train.Constant{Start: 0.01},
		Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}},
	}}
	ctx := context.Background()
	if err := fit.Fit(ctx, m, train.Dataset{Inputs: x, Labels: labels}); err != nil {
		fmt.Println(err)
		return
	}
	var energies [2]float64
	for i, inputs := range []nets.Floats{x, far} {
		p, err := predict.Sample(ctx, m, inputs, predict.Options{Samples: 5, Energies: true})
		if err != nil {
			fmt.Println(err)
			return
		}
		if i == 0 {
			right := 0
			for n, label := range labels {
				if p.Probabilities[2*n+label] > 0.5 {
					right++
				}
			}
			fmt.Printf("%d of %d are right\n", right, len(labels))
		}
		for _, layer := range p.Energies {
			if layer.Layer == "embed" {
				for _, e := range layer.Mean {
					energies[i] += e / float64(len(labels))
				}
			}
		}
	}
	fmt.Println("far sequences have larger energies:", energies[1] > 2*energies[0])
	// Output:
	// 64 of 64 are right
	// far sequences have larger energies: true
}
