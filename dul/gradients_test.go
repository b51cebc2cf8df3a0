package dul_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
)

// Attached, all gradients are those of the functions themselves.
func TestAttachedGradients(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	eachLayer(t, dul.Attached, func(t *testing.T, layer applied, x fixtures.Array) { layertest.Gradients(t, x, layer) })
}

// By default the gradient of the output is the exact one, with respect to the
// input and to all parameters but those of the energy model, which get none. The
// gradient of the log-likelihood is the exact one for the energy model and none
// for all else.
func TestPaperGradients(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	eachLayer(t, dul.PaperGradients, func(t *testing.T, layer applied, x fixtures.Array) {
		checkSeparation(t, layer, x, func(values fixtures.Values, noise []fixtures.Array, _ fixtures.Array) {
			fixtures.CheckGradient(t, values, noise, layer.output, "x")
		})
	})
}

// Detached, the gradient of the output with respect to the input is that of the
// linear map alone.
func TestDetachedGradients(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	eachLayer(t, dul.Detached, func(t *testing.T, layer applied, x fixtures.Array) {
		checkSeparation(t, layer, x, func(values fixtures.Values, noise []fixtures.Array, gradient fixtures.Array) {
			zeros := make([]fixtures.Array, len(noise))
			for i, draw := range noise {
				zeros[i] = fixtures.Zeros(draw.Dims...)
			}
			linear := fixtures.Evaluate(t, dtypes.Float64, values, zeros, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
				return graph.Gradient(graph.ReduceAllSum(layer.output(s, in)), in["x"])
			})[0]
			fixtures.Compare(t, "gradient of the output with respect to x", gradient, linear, 1e-13)
		})
	})
}

// checkSeparation checks that the output has the exact gradient for the layer's
// own parameters and none for the energy model's, and the log-likelihood, if there
// is one, the reverse, and none for the input. checkInput is given the gradient of
// the sum of the output with respect to the input. All gradients are of one graph,
// where one must not change another.
func checkSeparation(t *testing.T, layer applied, x fixtures.Array, checkInput func(fixtures.Values, []fixtures.Array, fixtures.Array)) {
	t.Helper()
	values, noise := fixtures.Explore(t, fixtures.Values{"x": x}, layer.output)
	var ofEnergy, ofLayer []string
	for _, path := range values.Parameters() {
		if strings.HasPrefix(path, "/layer/energy/") {
			ofEnergy = append(ofEnergy, path)
		} else {
			ofLayer = append(ofLayer, path)
		}
	}
	fixtures.CheckGradient(t, values, noise, layer.output, ofLayer...)
	if len(ofEnergy) > 0 {
		fixtures.CheckGradient(t, values, noise, func(s *model.Scope, in fixtures.Nodes) *graph.Node {
			return stochastic.LayerLossesOf(layer.output(s, in).Graph()).LogLikelihood
		}, ofEnergy...)
	}
	out := fixtures.Evaluate(t, dtypes.Float64, values, noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		y := layer.output(s, in)
		nodes := []*graph.Node{in["x"]}
		for _, path := range ofEnergy {
			nodes = append(nodes, in[path])
		}
		gradients := graph.Gradient(graph.ReduceAllSum(y), nodes...)
		if likelihood := stochastic.LayerLossesOf(y.Graph()).LogLikelihood; likelihood != nil {
			for _, path := range ofLayer {
				nodes = append(nodes, in[path])
			}
			ofLikelihood := graph.Gradient(graph.ReduceAllSum(likelihood), nodes...)
			gradients = append(append(gradients, ofLikelihood[0]), ofLikelihood[1+len(ofEnergy):]...)
		}
		return gradients
	})
	checkInput(values, noise, out[0])
	names := append(append(ofEnergy, "x"), ofLayer...)
	for i, gradient := range out[1:] {
		fixtures.Compare(t, "gradient that should be zero, with respect to "+names[i], gradient, fixtures.Zeros(gradient.Dims...), 0)
	}
}
