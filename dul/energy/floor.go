package energy

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
)

// lowestVariance is the least variance of a feature in an energy model: a deviation of a hundredth of that of a
// standardised input.
//
// It is as large as this for the sake of Rank1Mixture. The quadratic form of a component is a difference of two sums
// of squares over the variance; with 1e-8, which training reaches where inputs are constant, as two of Naval are, its
// rounding in float32 alone is larger than an energy.
const lowestVariance = 1e-4

// floored is max(logVariance, log lowestVariance).
//
// A feature that is always 0 in the training data, as that of a unit whose ReLU
// never opens, has a likelihood without a maximum: it grows as the log-variance
// goes to minus infinity, and Adam takes it there at a constant pace. The precision
// then overflows, or the unit opens later and the energy is 10^18. Training of a
// log-variance ends at the floor; a gradient that raises it passes, so that a
// feature that comes to life is followed.
func floored(logVariance *graph.Node) *graph.Node {
	g, dtype := logVariance.Graph(), logVariance.DType()
	lowest := graph.Scalar(g, dtype, math.Log(lowestVariance))
	held := graph.IdentityWithCustomGradient(logVariance, func(x, dy *graph.Node) *graph.Node {
		falls := graph.LogicalAnd(graph.LessThan(x, lowest), graph.GreaterThan(dy, graph.ScalarZero(g, dtype)))
		return graph.Where(falls, graph.ZerosLike(dy), dy)
	})
	return graph.Add(held, graph.StopGradient(graph.Sub(graph.Max(logVariance, lowest), logVariance)))
}
