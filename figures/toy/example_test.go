package toy_test

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/toy"
)

// additive is a family of layers y = x W + b + sd eps, whose noise is the same everywhere.
type additive struct{ sd float64 }

func (l additive) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	eps := stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(-2), units)
	return graph.Add(params.Dense(s, x, units), graph.MulScalar(eps, l.sd))
}

// A method of one's own beside the paper's: a family of layers, a name, and a short training.
func ExampleRun() {
	p := toy.Cubic()
	p.Steps, p.Samples, p.Seeds = 20, 10, []uint64{0}
	lines, err := toy.Run(context.Background(), p, methods.New("additive", additive{sd: 0.1}), methods.Density)
	if err != nil {
		fmt.Println(err)
		return
	}
	figure, err := toy.Pictures(lines)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, panel := range figure.Panels[0] {
		fmt.Println(panel.Title.Text)
	}
	// Output:
	// additive, seed 0
	// density, seed 0
}
