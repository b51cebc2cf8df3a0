package energy_test

import (
	"fmt"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/energy"
)

// The energy and log-likelihood of two inputs under N(0, I), where a model starts.
func ExampleLDL() {
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := model.CallOnceN(backend, model.NewStore(), func(s *model.Scope, h *graph.Node) []*graph.Node {
		terms := energy.LDL{}.Dense(s.In("energy"), h)
		return []*graph.Node{terms.Energy, terms.LogLikelihood}
	}, [][]float64{{0, 0}, {3, 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	e, logLikelihood := out[0].Value().([][]float64), out[1].Value().([][]float64)
	for i := range e {
		fmt.Printf("energy %.1f, log-likelihood %.4f\n", e[i][0], logLikelihood[i][0])
	}
	// Output:
	// energy 0.0, log-likelihood -1.8379
	// energy 12.5, log-likelihood -14.3379
}
