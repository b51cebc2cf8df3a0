package dul_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
)

// families are density layers with both energies.
var families = []struct {
	name  string
	layer dul.Density
}{
	{"LDL", dul.Density{}},
	{"Rank1Mixture", dul.Density{Energy: energy.Rank1Mixture{Fraction: 0.5}}},
	{"Rank1Mixture of 1", dul.Density{Energy: energy.Rank1Mixture{Fraction: 0.1}}},
	{"PlainBias", dul.Density{PlainBias: true, PriorStd: 0.3}},
}

// The zero value cuts the gradient of the energy off, see TestDetachedGradients.
func TestDense(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			layertest.Checks{CutGradients: true}.Dense(t, f.layer)
			f.layer.Attached = true
			t.Run("Attached", func(t *testing.T) { layertest.Dense(t, f.layer) })
		})
	}
}

// By default the energy is a constant for the output's gradient, and the input
// one for the generative objective: the energy model gets no gradient from the
// output, the input only that of the linear map, and all else the exact one.
func TestDetachedGradients(t *testing.T) {
	for _, f := range families {
		l := f.layer
		t.Run(f.name, func(t *testing.T) {
			output := func(s *model.Scope, in fixtures.Nodes) *graph.Node { return l.Dense(s.In("layer"), in["x"], 2) }
			inputs := fixtures.Values{"x": fixtures.Random(rand.New(rand.NewPCG(1, 5)), 3, 4)}
			values, noise := fixtures.Explore(t, inputs, output)
			fixtures.CheckGradient(t, values, noise, output,
				"/layer/weights", "/layer/bias", "/layer/gamma_log_variance", "/layer/beta_log_variance")

			likelihood := func(s *model.Scope, in fixtures.Nodes) *graph.Node {
				return stochastic.TallyOf(output(s, in).Graph()).LogLikelihood
			}
			var energyPaths []string
			for _, path := range values.Parameters() {
				if len(path) > len("/layer/energy") && path[:len("/layer/energy")] == "/layer/energy" {
					energyPaths = append(energyPaths, path)
				}
			}
			fixtures.CheckGradient(t, values, noise, likelihood, energyPaths...)

			out := fixtures.Evaluate(t, dtypes.Float64, values, noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
				y := graph.ReduceAllSum(output(s, in))
				ll := graph.ReduceAllSum(stochastic.TallyOf(y.Graph()).LogLikelihood)
				ones := graph.OnesLike(graph.ReduceAndKeep(in["x"], graph.ReduceSum, -1))
				linear := graph.Mul(ones, graph.Transpose(graph.ReduceAndKeep(in["/layer/weights"], graph.ReduceSum, -1), 0, 1))
				wrt := []*graph.Node{in["x"]}
				for _, path := range energyPaths {
					wrt = append(wrt, in[path])
				}
				return append([]*graph.Node{linear, graph.Gradient(ll, in["x"])[0]}, graph.Gradient(y, wrt...)...)
			})
			fixtures.Compare(t, "gradient of the output with respect to x", out[2], out[0], 1e-14)
			fixtures.Compare(t, "gradient of the log-likelihood with respect to x", out[1], fixtures.Zeros(3, 4), 0)
			for i, path := range energyPaths {
				fixtures.Compare(t, "gradient of the output with respect to "+path, out[3+i], fixtures.Zeros(values[path].Dims...), 0)
			}
		})
	}
}

// Var[f(h)] is gamma E(h) + beta D/2, or gamma E(h) + beta, and the mean that of
// the linear map; with uniform noise U[0, 1) the mean is half a standard
// deviation too high and the variance a twelfth.
func TestOutputMoments(t *testing.T) {
	const units, n = 2, 25000
	parameters := fixtures.Values{
		"/layer/energy/lower":        fixtures.Matrix(3, 3, 0, 0, 0, 0.5, 0, 0, -0.7, 0.4, 0),
		"/layer/energy/log_variance": fixtures.Matrix(1, 3, 0.2, -0.4, 0.6),
		"/layer/weights":             fixtures.Matrix(3, 2, 1, -1, 0.5, 2, -0.3, 0.1),
		"/layer/bias":                fixtures.Matrix(1, 2, 0.3, -0.2),
		"/layer/gamma_log_variance":  fixtures.Matrix(1, 2, math.Log(0.3), math.Log(1.2)),
		"/layer/beta_log_variance":   fixtures.Matrix(1, 2, math.Log(0.5), math.Log(0.1)),
	}
	gamma, beta := []float64{0.3, 1.2}, []float64{0.5, 0.1}
	for _, x := range []fixtures.Array{fixtures.Matrix(1, 3, 0, 0, 0), fixtures.Matrix(1, 3, 0.5, -1, 2), fixtures.Matrix(1, 3, 6, 2, -5)} {
		h := x.Values
		// L^T h, with L's columns (1, 0.5, -0.7), (0, 1, 0.4), (0, 0, 1).
		z := []float64{h[0] + 0.5*h[1] - 0.7*h[2], h[1] + 0.4*h[2], h[2]}
		e := 0.5 * (z[0]*z[0]*math.Exp(-0.2) + z[1]*z[1]*math.Exp(0.4) + z[2]*z[2]*math.Exp(-0.6))
		mean := []float64{h[0] + 0.5*h[1] - 0.3*h[2] + 0.3, -h[0] + 2*h[1] + 0.1*h[2] - 0.2}
		for _, form := range []struct {
			name    string
			layer   dul.Density
			bias    float64
			uniform bool
		}{
			{"default", dul.Density{}, 1.5, false},
			{"PlainBias", dul.Density{PlainBias: true}, 1, false},
			{"uniform", dul.Density{Noise: stochastic.Uniform01()}, 1.5, true},
		} {
			for _, host := range []bool{true, false} {
				samples := fixtures.Samples(t, func(s *model.Scope, x *graph.Node) *graph.Node {
					return form.layer.Dense(s.In("layer"), x, units)
				}, parameters, x, n, host)
				for j := range units {
					variance, shift := gamma[j]*e+beta[j]*form.bias, 0.0
					if form.uniform {
						shift, variance = 0.5*math.Sqrt(variance), variance/12
					}
					fixtures.CheckMoments(t, fmt.Sprintf("%s, host=%t, x=%v, unit %d", form.name, host, h, j),
						samples.Column(j), mean[j]+shift, variance)
				}
				fixtures.CheckUncorrelated(t, "noise of two units", samples.Column(0), samples.Column(1))
			}
		}
	}
}

// Clip limits the variance far from the data to gamma D + beta D/2.
func TestClipLimitsTheEnergy(t *testing.T) {
	const d, units = 4, 1
	std := func(l dul.Density, x fixtures.Array) float64 {
		t.Helper()
		output := func(s *model.Scope, in fixtures.Nodes) *graph.Node { return l.Dense(s.In("layer"), in["x"], units) }
		values, _ := fixtures.Explore(t, fixtures.Values{"x": x}, output)
		for _, path := range values.Parameters() {
			values[path] = fixtures.Zeros(values[path].Dims...)
		}
		return fixtures.Evaluate(t, dtypes.Float64, values, []fixtures.Array{fixtures.Matrix(1, 1, 1)},
			func(s *model.Scope, in fixtures.Nodes) []*graph.Node { return []*graph.Node{output(s, in)} })[0].Values[0]
	}
	near, far := fixtures.Matrix(1, d, 1, 1, 0, 0), fixtures.Matrix(1, d, 30, 0, 0, 0)
	for _, c := range []struct {
		name  string
		layer dul.Density
		x     fixtures.Array
		want  float64 // sqrt(E + D/2)
	}{
		{"near", dul.Density{Clip: true}, near, math.Sqrt(1 + 2)},
		{"far", dul.Density{Clip: true}, far, math.Sqrt(d + 2)},
		{"far without clip", dul.Density{}, far, math.Sqrt(450 + 2)},
		// The mixture with v = 0 is N(0, I) too, and is never clipped.
		{"far mixture", dul.Density{Clip: true, Energy: energy.Rank1Mixture{}}, far, math.Sqrt(450 + 2)},
	} {
		if got := std(c.layer, c.x); math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("%s: the standard deviation is %g, want %g", c.name, got, c.want)
		}
	}
}

// The noise starts with standard deviation InitStd, and the KL is zero where
// that is the prior's.
func TestInitialNoise(t *testing.T) {
	kl := func(l dul.Density) float64 {
		t.Helper()
		tensor, err := model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
			return stochastic.TallyOf(l.Dense(s.In("layer"), x, 3).Graph()).KL
		}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(2, 4)))
		if err != nil {
			t.Fatal(err)
		}
		return fixtures.FromTensor(t, tensor).Values[0]
	}
	if got := kl(dul.Density{InitStd: 0.3, PriorStd: 0.3}); math.Abs(got) > 1e-12 {
		t.Errorf("KL at the prior is %g, want 0", got)
	}
	// Two variables of 3 units: 6 (log(1/0.001) + (1e-6 - 1)/2).
	want := 6 * (math.Log(1000) + (1e-6-1)/2)
	if got := kl(dul.Density{}); math.Abs(got-want) > 1e-12*want {
		t.Errorf("KL of the default start is %g, want %g", got, want)
	}
}

func TestDensityRejectsNegativeSettings(t *testing.T) {
	for _, l := range []dul.Density{{PriorStd: -1}, {InitStd: -1}} {
		_, err := model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
			return l.Dense(s.In("layer"), x, 3)
		}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(2, 4)))
		if err == nil {
			t.Errorf("no error for %+v", l)
		}
	}
}
