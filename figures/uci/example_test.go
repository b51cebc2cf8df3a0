package uci_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// growing is a family of layers y = x W + b + SD |x| eps, whose noise grows with its input.
type growing struct{ SD float64 }

func (l growing) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	eps := stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(-2), units)
	length := graph.Sqrt(graph.AddScalar(graph.ReduceAndKeep(graph.Square(x), graph.ReduceSum, -1), 1e-12))
	return graph.Add(params.Dense(s, x, units), graph.MulScalar(graph.Mul(length, eps), l.SD))
}

// A method of your own beside the paper's, on two splits of the smallest data set.
func Example() {
	mine := experiment.Method{Name: "growing", Layers: growing{SD: 0.1}}
	list, err := experiment.Cross(uci.Paper, uci.On("yacht"), mine, methods.Density)
	if err != nil {
		log.Fatal(err)
	}
	results, err := experiment.Run(context.Background(), list.OnSplits(0, 1).Change(func(e *experiment.Experiment) { e.Recipe.Epochs = 2 })...)
	if err != nil {
		log.Fatal(err)
	}
	table, err := tables.Against(results, "density", "nll", "rmse")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(table.Columns)
	for _, row := range table.Rows {
		fmt.Println(row.Name)
	}
	// Output:
	// [Metric growing Density Uncertainty]
	// nll
	// nll − Density Uncertainty
	// rmse
	// rmse − Density Uncertainty
	// runs
}
