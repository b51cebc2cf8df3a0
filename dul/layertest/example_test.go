package layertest_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// additive is a family of your own: y = x W + b + eps, eps ~ N(0, 1) for each
// example and unit. It has no KL.
type additive struct{}

func (additive) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	eps := stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(-2), units)
	return graph.Add(params.Dense(s, x, units), eps)
}

// frozen adds ones, as if they were noise, and draws nothing.
type frozen struct{}

func (frozen) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	y := params.Dense(s, x, units)
	return graph.Add(y, graph.OnesLike(y))
}

// In a test the one line is layertest.Dense(t, additive{}). Outside of tests, as
// in a notebook, Failures returns what the checks find.
func Example() {
	fmt.Println(layertest.Failures(func(t testing.TB) { layertest.Dense(t, additive{}) }))
	fmt.Println(layertest.Failures(func(t testing.TB) { layertest.Checks{NoReplicas: true}.Dense(t, frozen{}) }))
	// Output:
	// <nil>
	// noise/host: two executions have the same noise; it is not drawn anew
	// noise/host: two seeds give the same noise
	// noise/host: copies of an example have the same output: true; want false
	// noise/graph: two executions have the same noise; it is not drawn anew
	// noise/graph: two seeds give the same noise
	// noise/graph: copies of an example have the same output: true; want false
}
