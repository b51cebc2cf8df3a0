package train

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
)

// total is the objective of a small network at inputs x, targets y and weights.
func total(layers nets.Layers, o objective) func(s *model.Scope, in fixtures.Nodes) *graph.Node {
	return func(root *model.Scope, in fixtures.Nodes) *graph.Node {
		r := nets.Model{Network: nets.MLP{Layers: layers, Widths: []int{3}}, Likelihood: likelihood.Gaussian{}}
		if x := in["x"].Shape(); x.Rank() == 3 {
			r.Replicas = x.Dim(0)
		}
		s := r.Scope(root)
		nll := r.Likelihood.NLL(s, r.Apply(s, in["x"]), in["y"])
		return o.of(nll, in["weights"]).total
	}
}

// The rows that pad a shorter batch change nothing.
func TestPaddingDoesNotChangeTheObjective(t *testing.T) {
	rng := rand.New(rand.NewPCG(47, 53))
	for _, c := range []struct {
		name   string
		layers nets.Layers
	}{
		{"density", dul.Density{}}, {"MFVI", baselines.MFVI{}}, {"Rank1", baselines.Rank1{}},
		{"VDropout", baselines.VDropout{}}, {"MCDropout", baselines.MCDropout{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := total(c.layers, objective{n: []float64{10}, logLikelihoodScale: 0.3})
			x, y := fixtures.Random(rng, 4, 3), fixtures.Random(rng, 4, 1)
			copy(x.Values[9:], []float64{0, 0, 0})
			y.Values[3] = 0
			padded, noise := fixtures.Explore(t, fixtures.Values{
				"x": x, "y": y, "weights": fixtures.Matrix(4, 1, 1.0/3, 1.0/3, 1.0/3, 0),
			}, f)
			short := fixtures.Values{}
			for path, a := range padded {
				short[path] = a
			}
			firstThree := func(a fixtures.Array) fixtures.Array {
				return fixtures.Matrix(3, a.Dims[1], a.Values[:3*a.Dims[1]]...)
			}
			for _, name := range []string{"x", "y", "weights"} {
				short[name] = firstThree(padded[name])
			}
			shortNoise := make([]fixtures.Array, len(noise))
			for i, draw := range noise {
				shortNoise[i] = draw
				if c.name != "MFVI" { // whose noise is that of the weights
					shortNoise[i] = firstThree(draw)
				}
			}
			evaluate := func(values fixtures.Values, noise []fixtures.Array) []fixtures.Array {
				return fixtures.Evaluate(t, dtypes.Float64, values, noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
					loss := f(s, in)
					var wrt []*graph.Node
					for _, path := range values.Parameters() {
						wrt = append(wrt, in[path])
					}
					return append([]*graph.Node{loss}, graph.Gradient(graph.ReduceAllSum(loss), wrt...)...)
				})
			}
			want := evaluate(short, shortNoise)
			for i, got := range evaluate(padded, noise) {
				fixtures.Compare(t, "objective or gradient", got, want[i], 1e-13)
			}
		})
	}
}
