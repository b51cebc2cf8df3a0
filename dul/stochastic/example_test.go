package stochastic_test

import (
	"fmt"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/stochastic"
)

// A training loop of your own, for any family of layers: a density layer has both
// a KL divergence and a log-likelihood, Rank1 only the former, a plain layer neither.
func ExampleLayerLosses_Objective() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	const n = 4
	for _, layers := range []nets.Layers{dul.Density{}, baselines.Rank1{}, baselines.Deterministic{}} {
		step, err := model.NewExec(backend, model.NewStore(), func(root *model.Scope, x, y *graph.Node) *graph.Node {
			s := root.In("model")
			h := ops.ReLU(layers.Dense(s.In("hidden"), x, 50))
			nll := graph.MulScalar(graph.Square(graph.Sub(y, layers.Dense(s.In("output"), h, 1))), 0.5)
			loss := stochastic.LayerLossesOf(x.Graph()).Objective(nll, n)
			optimizer.Adam().LearningRate(0.01).Done().UpdateGraph(root, x.Graph(), loss)
			return loss
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		var first, last float64
		for i := range 100 {
			loss, err := step.Call1([][]float64{{-1}, {-0.5}, {0.5}, {1}}, [][]float64{{-1}, {-0.1}, {0.1}, {1}})
			if err != nil {
				fmt.Println(err)
				return
			}
			if last = loss.Value().(float64); i == 0 {
				first = last
			}
		}
		fmt.Printf("%T learns: %t\n", layers, last < first)
	}
	// Output:
	// dul.Density learns: true
	// baselines.Rank1 learns: true
	// baselines.Deterministic learns: true
}

// triangular is noise between -1 and 1 that is most often near 0: the difference
// of two uniform draws. One method makes a distribution.
type triangular struct{}

func (triangular) Sample(b stochastic.Base) *graph.Node { return graph.Sub(b.Uniform(), b.Uniform()) }

// A distribution of your own, drawn in the graph; the field Noise of dul.Density
// takes it too.
func ExampleDistribution() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	largest, err := model.CallOnce(backend, model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		return graph.ReduceAllMax(graph.Abs(stochastic.Draw(s, x, triangular{}, 2, 3)))
	}, [][]float32{{0}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("within 1:", largest.Value().(float32) < 1)
	// Output: within 1: true
}
