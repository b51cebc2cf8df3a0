package toy_test

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/figures/experiment"
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
func ExamplePictures() {
	additive := experiment.Method{Name: "additive", Layers: additive{sd: 0.1}}
	list, err := experiment.Cross(toy.Paper, []experiment.Source{toy.Cubic{Seeds: 1}}, additive, methods.Density)
	if err != nil {
		fmt.Println(err)
		return
	}
	short := list.Change(func(e *experiment.Experiment) { e.Recipe.Epochs, e.Recipe.Samples = 20, 10 })
	found, err := experiment.Run(context.Background(), short...)
	if err != nil {
		fmt.Println(err)
		return
	}
	figure, err := toy.Pictures(found)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, panel := range figure.Panels[0] {
		fmt.Println(panel.Title.Text)
	}
	// Output:
	// additive, seed 0
	// Density Uncertainty, seed 0
}
