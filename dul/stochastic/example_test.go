package stochastic_test

import (
	"fmt"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/stochastic"
)

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
