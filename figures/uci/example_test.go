package uci_test

import (
	"context"
	"fmt"
	"os"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/uci"
)

// growing is a family of layers y = x W + b + sd |x| eps, whose noise grows with its input.
type growing struct{ sd float64 }

func (l growing) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	eps := stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(-2), units)
	length := graph.Sqrt(graph.AddScalar(graph.ReduceAndKeep(graph.Mul(x, x), graph.ReduceSum, -1), 1e-12))
	return graph.Add(params.Dense(s, x, units), graph.MulScalar(graph.Mul(length, eps), l.sd))
}

// A method of one's own beside the paper's, on two splits of the smallest data set.
func ExampleRun() {
	p := uci.Paper().On("yacht").Quick()
	p.Epochs = 2
	lines, err := uci.Run(context.Background(), p, methods.New("growing", growing{sd: 0.1}), methods.Density)
	if err != nil {
		fmt.Println(err)
		return
	}
	table, err := uci.Table(lines)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range table.Rows {
		fmt.Printf("%s on %s, %s splits\n", row.Name, row.Cells[0][0].Text, row.Cells[2][0].Text)
	}
	// Output:
	// growing on Yacht Hydrodynamics, 2 splits
	// density on Yacht Hydrodynamics, 2 splits
}

// Lines are kept under the method's own name, and read again by all that takes lines.
func ExampleRun_stored() {
	p := uci.Paper().On("yacht").Quick()
	p.Epochs, p.Only = 1, []int{0}
	lines, err := uci.Run(context.Background(), p, methods.New("growing", growing{sd: 0.1}))
	if err != nil {
		fmt.Println(err)
		return
	}
	folder, err := os.MkdirTemp("", "mine")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	store, err := results.OpenStore(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range lines {
		if _, _, err := store.Append(line); err != nil {
			fmt.Println(err)
			return
		}
	}
	kept, _, err := results.Read(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(kept), kept[0].Experiment)
	// Output: 1 uci growing on yacht gal split 0, 1 epoch, 10 samples, seed 0 (paper, quick)
}
