package energy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
)

// Diagonal is LDL with a lower triangle, or a kernel, of zeros.
func TestDiagonalIsLDLWithoutCorrelations(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 21))
	logVariance := fixtures.Random(rng, 1, 3)
	for _, w := range windows {
		t.Run(fmt.Sprintf("%+v", w), func(t *testing.T) {
			x := fixtures.Random(rng, 3, 2, 4, 5)
			got := convTerms(t, dtypes.Float64, fixtures.Values{"x": x, "/energy/log_variance": logVariance},
				func(s *model.Scope, x *graph.Node) energy.ConvTerms { return energy.Diagonal{}.Conv(s, x, w) })
			compareTerms(t, got, 1e-13, ldlConv(t, dtypes.Float64, energy.LDL{}, w, fixtures.Zeros(3, 3*w.Size*w.Size), logVariance.Transposed(), x)...)
		})
	}
}

// At its fit by maximum likelihood, s_d^2 the mean of h_d^2, weighted where the
// examples are, the gradient is zero, and without weights the mean energy is D/2
// and the mean log-likelihood -1/2 (D log 2 pi e + sum log s_d^2).
func TestMaximumLikelihoodFits(t *testing.T) {
	const n, d = 30, 4
	rng := rand.New(rand.NewPCG(22, 22))
	x := fixtures.Random(rng, n, d)
	equal := fixtures.Zeros(n, 1).Map(func(float64) float64 { return 1.0 / n })
	unequal := fixtures.Zeros(n, 1).Map(func(float64) float64 { return rng.Float64() / n })
	for _, c := range []struct {
		name    string
		weights fixtures.Array
	}{{"equal weights", equal}, {"weighted", unequal}} {
		weights := c.weights.Values
		total := 0.0
		moment := mat.NewSymDense(d, nil)
		for i, w := range weights {
			total += w
			moment.SymRankOne(moment, w, mat.NewVecDense(d, x.Values[i*d:(i+1)*d]))
		}
		moment.ScaleSym(1/total, moment)
		logVariance, logDet := fixtures.Zeros(1, d), 0.0
		for j := range d {
			logVariance.Values[j] = math.Log(moment.At(j, j))
			logDet += logVariance.Values[j]
		}
		gradients := func(t *testing.T, values fixtures.Values, dense func(s *model.Scope, h *graph.Node) energy.Terms) []fixtures.Array {
			values["x"], values["weights"] = x, c.weights
			return fixtures.Evaluate(t, dtypes.Float64, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
				terms := dense(s.In("energy"), in["x"])
				ll := graph.ReduceAllSum(graph.Mul(terms.LogLikelihood, in["weights"]))
				e := graph.ReduceAllSum(graph.Mul(terms.Energy, in["weights"]))
				var nodes []*graph.Node
				for _, path := range values.Parameters() {
					nodes = append(nodes, in[path])
				}
				return append([]*graph.Node{e, ll}, graph.Gradient(ll, nodes...)...)
			})
		}
		check := func(t *testing.T, out []fixtures.Array, logDet float64) {
			for _, g := range out[2:] {
				fixtures.Compare(t, "gradient at the maximum", g, fixtures.Zeros(g.Dims...), 1e-12)
			}
			fixtures.Compare(t, "mean energy", out[0], fixtures.Matrix(1, 1, total*d/2), 1e-12)
			fixtures.Compare(t, "mean log-likelihood", out[1], fixtures.Matrix(1, 1, -total/2*(d*math.Log(2*math.Pi*math.E)+logDet)), 1e-12)
		}
		t.Run(c.name+"/Diagonal", func(t *testing.T) {
			check(t, gradients(t, fixtures.Values{"/energy/log_variance": logVariance}, energy.Diagonal{}.Dense), logDet)
		})
		t.Run(c.name+"/LDL", func(t *testing.T) {
			lower, logVariance := precisionFactors(t, moment)
			logDet, _ := mat.LogDet(moment)
			check(t, gradients(t, fixtures.Values{"/energy/lower": lower, "/energy/log_variance": logVariance}, energy.LDL{}.Dense), logDet)
		})
	}
}

// Constant is D/2 at every input and position, and makes no parameters.
func TestConstant(t *testing.T) {
	for _, c := range []struct {
		name  string
		x     []int
		terms func(s *model.Scope, x *graph.Node) (energies []*graph.Node, logLikelihood *graph.Node)
		want  [][]int // shapes of the energies
	}{
		{"dense", []int{4, 6}, constantDense, [][]int{{4, 1}}},
		{"replicas", []int{2, 4, 6}, constantDense, [][]int{{2, 4, 1}}},
		{"1x1", []int{6, 2, 4, 5}, constantConv(conv.Same(1, 1)), [][]int{{1, 2, 4, 5}, {2, 1}}},
		{"3x3, stride 2", []int{6, 2, 4, 5}, constantConv(conv.Same(3, 2)), [][]int{{1, 2, 2, 3}, {2, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := fixtures.Random(rand.New(rand.NewPCG(1, 2)), c.x...)
			out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"x": x}, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
				energies, logLikelihood := c.terms(s, in["x"])
				if logLikelihood != nil {
					t.Error("it has a log-likelihood")
				}
				return energies
			})
			for i, e := range out {
				fixtures.Compare(t, fmt.Sprintf("energy %d", i), e, fixtures.Zeros(c.want[i]...).Map(func(float64) float64 { return 3 }), 0)
			}
		})
	}
}

func constantDense(s *model.Scope, x *graph.Node) ([]*graph.Node, *graph.Node) {
	terms := energy.Constant{}.Dense(s, x)
	return []*graph.Node{terms.Energy}, terms.LogLikelihood
}

func constantConv(w conv.Window) func(s *model.Scope, x *graph.Node) ([]*graph.Node, *graph.Node) {
	return func(s *model.Scope, x *graph.Node) ([]*graph.Node, *graph.Node) {
		terms := energy.Constant{}.Conv(s, x, w)
		return []*graph.Node{terms.Energy, terms.MeanEnergy}, terms.LogLikelihood
	}
}

// A model of vectors without a log-likelihood has none of images.
func TestPixelwiseWithoutLikelihood(t *testing.T) {
	fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"x": fixtures.Zeros(3, 2, 4, 4)}, nil,
		func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			terms := energy.Pixelwise(energy.Constant{}, s, in["x"], conv.Same(3, 1))
			if terms.LogLikelihood != nil {
				t.Error("it has a log-likelihood")
			}
			return []*graph.Node{terms.MeanEnergy}
		})
}

// Laplace's approximation to a logistic regression has logits of variance
//
//	2 E(x) / W,   Sigma = (sum_i weight_i x_i x_i^T + alpha I) / W,   W = sum_i weight_i,
//
// with E the energy of N(0, Sigma): an energy model that is fitted with weights.
func TestLaplaceVarianceIsAWeightedEnergy(t *testing.T) {
	for name, alpha := range map[string]float64{
		"logistic_laplace_a": 0.5,
		"logistic_laplace_b": 2,
	} {
		t.Run(name, func(t *testing.T) {
			c := fixtures.Open(t, name)
			x, w := c.Array("X"), c.Array("w_map").Transposed()
			n, d := x.Dims[0], x.Dims[1]
			weights := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"x": x, "w": w}, nil,
				func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
					return []*graph.Node{energy.LaplaceWeights(graph.MatMul(in["x"], in["w"]))}
				})[0]
			fixtures.Compare(t, "weights", weights, c.Column("data_weights"), exact)
			total, precision := 0.0, mat.NewSymDense(d, nil)
			for j := range d {
				precision.SetSym(j, j, alpha)
			}
			for i := range n {
				total += weights.Values[i]
				precision.SymRankOne(precision, weights.Values[i], mat.NewVecDense(d, x.Values[i*d:(i+1)*d]))
			}
			got := mat.NewSymDense(d, nil)
			got.ScaleSym(1/total, precision)
			lower, logVariance := precisionFactors(t, got)
			e := ldl(t, lower, logVariance, c.Array("X_test"))[0]
			fixtures.Compare(t, "variance of the logits", e.Scale(2/total), c.Column("logit_var"), exact)
		})
	}
}

// The weights of K classes are those of two for K = 2, and else half of sum p (1 - p).
func TestLaplaceWeightsOfClasses(t *testing.T) {
	weights := func(logits fixtures.Array) fixtures.Array {
		return fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"logits": logits}, nil,
			func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
				return []*graph.Node{energy.LaplaceWeights(in["logits"])}
			})[0]
	}
	t.Run("two", func(t *testing.T) {
		fixtures.Compare(t, "weights", weights(fixtures.Matrix(2, 2, 1, 1.7, 3, -2)), weights(fixtures.Matrix(2, 1, 0.7, -5)), 1e-12)
	})
	t.Run("three, replicas", func(t *testing.T) {
		logits := fixtures.Array{Dims: []int{2, 1, 3}, Values: []float64{
			math.Log(0.5), math.Log(0.3), math.Log(0.2), 4 + math.Log(0.8), 4 + math.Log(0.1), 4 + math.Log(0.1)}}
		fixtures.Compare(t, "weights", weights(logits), fixtures.Array{Dims: []int{2, 1, 1}, Values: []float64{0.31, 0.17}}, 1e-12)
	})
}

// The log-likelihood is a mixture's, with gonum's determinants. The information is subtracted from the energy: in training the
// batch's, the mean of log p(component | h) / p(component), and in prediction the stored one.
func TestLocationMixture(t *testing.T) {
	const n, d, k = 6, 2, 3
	rng := rand.New(rand.NewPCG(31, 31))
	h, centres, logits, logVariance := fixtures.Random(rng, n, d), fixtures.Random(rng, k, d), fixtures.Random(rng, 1, k), fixtures.Random(rng, 1, d)
	lower := fixtures.Matrix(d, d, 0, 0, 0.7, 0)
	l, precision := mat.NewDense(d, d, []float64{1, 0, 0.7, 1}), mat.NewSymDense(d, nil)
	for i := range d {
		precision.SymRankOne(precision, math.Exp(-logVariance.Values[i]), l.ColView(i))
	}
	total := 0.0
	for _, v := range logits.Values {
		total += math.Exp(v)
	}
	u, ll, information := fixtures.Zeros(n, 1), fixtures.Zeros(n, 1), 0.0
	for i := range n {
		p, joint := make([]float64, k), 0.0
		for c := range k {
			off := mat.NewVecDense(d, nil)
			off.SubVec(mat.NewVecDense(d, h.Values[i*d:(i+1)*d]), mat.NewVecDense(d, centres.Values[c*d:(c+1)*d]))
			p[c] = math.Exp(logits.Values[c]) / total * math.Sqrt(mat.Det(precision)) / math.Pow(2*math.Pi, d/2.) * math.Exp(-mat.Inner(off, precision, off)/2)
			joint += p[c]
		}
		ll.Values[i] = math.Log(joint)
		u.Values[i] = -ll.Values[i] - 0.5*(d*math.Log(2*math.Pi)+logVariance.Values[0]+logVariance.Values[1])
		for c := range k {
			r := p[c] / joint
			information += r * math.Log(r*total/math.Exp(logits.Values[c])) / n
		}
	}
	const stored = 0.2
	for _, training := range []bool{false, true} {
		less := map[bool]float64{false: stored, true: information}[training]
		out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{
			"h": h, "/energy/lower": lower, "/energy/log_variance": logVariance, "/energy/centres": centres, "/energy/logits": logits, "/energy/information": fixtures.Matrix(1, 1, stored),
		}, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			s.Store().SetTraining(in["h"].Graph(), training)
			terms := energy.LocationMixture{Components: k}.Dense(s.In("energy"), in["h"])
			return []*graph.Node{terms.Energy, terms.LogLikelihood}
		})
		fixtures.Compare(t, "energy", out[0], u.Map(func(v float64) float64 { return max(0, v-less) }), 1e-12)
		fixtures.Compare(t, "log-likelihood", out[1], ll, 1e-12)
	}
}
