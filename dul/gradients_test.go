package dul_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
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

// BenchmarkGradients is a step of gradients of both objectives with respect to
// all parameters and the input, as a hidden layer computes it.
func BenchmarkGradients(b *testing.B) {
	flows := []struct {
		name string
		flow dul.GradientFlow
	}{{"paper", dul.PaperGradients}, {"detached", dul.Detached}, {"attached", dul.Attached}}
	for _, shape := range []struct {
		name  string
		layer func(dul.Density) applied
		x     []int
	}{
		{"dense 100", func(l dul.Density) applied { return dense(l, 100) }, []int{128, 100}},
		{"conv 16", func(l dul.Density) applied { return convolved(l, conv.Spec{Filters: 16, Window: conv.Same(3, 1)}) }, []int{16, 16, 32, 32}},
	} {
		for _, f := range denseFamilies[:2] {
			for _, flow := range flows {
				b.Run(shape.name+"/"+f.name+"/"+flow.name, func(b *testing.B) {
					f.layer.Gradients = flow.flow
					layer, store := shape.layer(f.layer), model.NewStore()
					params.SetSeeds(store, 1)
					exec, err := model.NewExec(fixtures.Backend(b), store, func(s *model.Scope, x *graph.Node) []*graph.Node {
						y := layer(s, x)
						nodes := []*graph.Node{x}
						for v := range store.IterVariables() {
							if v.Trainable {
								nodes = append(nodes, v.NodeValue(x))
							}
						}
						losses := stochastic.LayerLossesOf(y.Graph())
						loss := graph.Add(graph.ReduceAllSum(y), graph.Add(graph.ReduceAllSum(losses.KL), graph.ReduceAllSum(losses.LogLikelihood)))
						return graph.Gradient(loss, nodes...)
					})
					if err != nil {
						b.Fatal(err)
					}
					x := tensors.FromShape(shapes.Make(dtypes.Float32, shape.x...))
					for b.Loop() {
						if _, err := exec.Exec(x); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
