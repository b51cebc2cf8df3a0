package energy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/environment/must"
)

// windows are those of the networks.
var windows = []conv.Window{conv.Same(1, 1), conv.Same(1, 2), conv.Same(3, 1), conv.Same(3, 2)}

// convTerms evaluates energy, log-likelihood and mean energy of images, [channels, batch, height, width], at given parameters.
func convTerms(t *testing.T, dtype dtypes.DType, values fixtures.Values, of func(s *model.Scope, x *graph.Node) energy.ConvTerms) []fixtures.Array {
	t.Helper()
	return fixtures.Evaluate(t, dtype, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		terms := of(s.In("energy"), in["x"])
		return []*graph.Node{terms.Energy, terms.LogLikelihood, terms.MeanEnergy}
	})
}

// ldlConv is convTerms of energy.LDL.
func ldlConv(t *testing.T, dtype dtypes.DType, l energy.LDL, w conv.Window, kernel, logVariance, x fixtures.Array) []fixtures.Array {
	t.Helper()
	values := fixtures.Values{"x": x, "/energy/kernel": kernel, "/energy/log_variance": logVariance}
	return convTerms(t, dtype, values, func(s *model.Scope, x *graph.Node) energy.ConvTerms { return l.Conv(s, x, w) })
}

// size is the size of the window of a kernel [filters, channels*size*size] of as many filters as channels.
func size(kernel fixtures.Array) int {
	return int(math.Round(math.Sqrt(float64(kernel.Dims[1]) / float64(kernel.Dims[0]))))
}

func TestLDLConvMatchesTheReleasedModel(t *testing.T) {
	fixtures.Each(t, "density_conv_*", func(t *testing.T, c fixtures.Case) {
		kernel, x := c.Array("p_masked_conv__conv__weight"), c.Array("x")
		w := fixtures.ByName(t, c, map[string]conv.Window{
			"_k1s1": conv.Same(1, 1), "_k1s2": conv.Same(1, 2), "_k3s1": conv.Same(3, 1), "_k3s2": conv.Same(3, 2),
		})
		got := ldlConv(t, c.DType, energy.LDL{ReplicatePadding: true}, w, kernel, c.Array("p_logvar"), x)
		forValues, _ := c.Tolerances()
		compareTerms(t, got, forValues, c.Array("energy_pooled"), c.Column("loglik"), exampleMeans(c.Array("energy")))
	})
}

// exampleMeans are the means over the positions of one-channel images, [batch, 1].
func exampleMeans(a fixtures.Array) fixtures.Array {
	batch := a.Dims[1]
	means, positions := fixtures.Zeros(batch, 1), len(a.Values)/batch
	for i, v := range a.Values {
		means.Values[i/positions] += v / float64(positions)
	}
	return means
}

// With zero padding the energies add up to that of one Gaussian over the whole
// image, whose density is exact.
func TestLDLConvMatchesTheDenseGaussian(t *testing.T) {
	fixtures.Each(t, "conv_gauss_zero_pad_*", func(t *testing.T, c fixtures.Case) {
		kernel, logVariance, x := c.Kernel("weight"), c.Array("logvar"), c.Array("x")
		channels, height, width := x.Dims[0], x.Dims[2], x.Dims[3]
		pixels, n := float64(height*width), channels*height*width
		w := conv.Same(size(kernel), 1)
		terms := func(x fixtures.Array) []fixtures.Array {
			return ldlConv(t, dtypes.Float64, energy.LDL{}, w, kernel, logVariance, x)
		}

		got := terms(x)
		ll, mean := got[1], got[2]
		energies := c.Array("energy_map") // [batch, height, width]
		energies.Dims = append([]int{1}, energies.Dims...)
		pooled := energies
		if w.Size > 1 {
			pooled = c.Array("pool3_count_pad")
		}
		compareTerms(t, got, exact, pooled, c.Column("logpdf").Scale(1/pixels), exampleMeans(energies))

		whole := func(x fixtures.Array) fixtures.Array {
			images := fixtures.Array{Values: x.Values, Dims: []int{x.Dims[0], channels, height, width}}
			return terms(images.ChannelsFirst())[2].Scale(pixels)
		}
		precision := energyOfBasis(n, whole)
		var full mat.Dense
		full.CloneFrom(precision)
		fixtures.Compare(t, "precision", fixtures.Matrix(n, n, full.RawMatrix().Data...), c.Array("precision"), exact)
		var factors mat.Cholesky
		if !factors.Factorize(precision) {
			t.Fatalf("the precision is not positive definite:\n%.4g", mat.Formatted(precision))
		}
		logDet := pixels * (-2*(ll.Values[0]+mean.Values[0]) - float64(channels)*math.Log(2*math.Pi))
		must.Near(t, -factors.LogDet(), logDet, 1e-8*max(1, math.Abs(logDet)), "log |Sigma| of the quadratic form")
	})
}

func TestLDLConvRejectsEvenWindows(t *testing.T) {
	must.GetErr(model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		return energy.LDL{}.Conv(s, x, conv.Window{Size: 2, Stride: 1}).Energy
	}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(1, 1, 4, 4))))(t, "odd")
}

func TestConvMixtureMatchesTheReleasedModel(t *testing.T) {
	fixtures.Each(t, "rank1_conv_mixture_*", func(t *testing.T, c fixtures.Case) {
		v, x := c.Array("p_v"), c.Array("x")
		values := mixtureValues(v, c.Array("p_log_diagonals"), c.Array("p_mixture_logits"), x)
		m := energy.Rank1Mixture{NegatedLogDet: strings.Contains(c.Name, "released")}
		w := fixtures.ByName(t, c, map[string]conv.Window{"mixture_a": conv.Same(3, 1), "mixture_b": conv.Same(3, 2)})
		terms := func(s *model.Scope, x *graph.Node) energy.ConvTerms { return m.ConvWith(s, x, w, v.Dims[0]) }
		forValues, forGradients := c.Tolerances()
		image := func(name string) fixtures.Array { // [batch, height, width]
			a := c.Array(name)
			a.Dims = append([]int{1}, a.Dims...)
			return a
		}
		compareTerms(t, convTerms(t, c.DType, values, terms), forValues, c.Array("energy"), exampleMeans(image("loglik")), exampleMeans(image("energy")))

		for _, parameter := range []struct{ recorded, name string }{
			{"v", "factors"}, {"log_diagonals", "log_diagonals"}, {"mixture_logits", "mixture_logits"},
		} {
			got := fixtures.Evaluate(t, c.DType, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
				ll := terms(s.In("energy"), in["x"]).LogLikelihood
				return graph.Gradient(graph.ReduceAllMean(ll), in["/energy/"+parameter.name])
			})[0]
			fixtures.Compare(t, "gradient of "+parameter.name, got, c.Array("gll__"+parameter.recorded), forGradients)
		}
	})
}

// The energy of a mixture keeps its digits where other convolutions have 8 bits: also
// where variances along the factors are a hundredth, and it is the difference of forms
// that are a thousand times as large, it is that of single precision.
func TestMixtureInBFloat16(t *testing.T) {
	if ops.IsGo(fixtures.Backend(t)) {
		t.Skip("bfloat16 has no effect on the pure Go backend; set GOMLX_BACKEND")
	}
	const channels, k = 4, 3
	rng := rand.New(rand.NewPCG(13, 14))
	w := conv.Same(3, 1)
	d := channels * w.Pixels()
	v := fixtures.Zeros(k, d)
	for i := range v.Values {
		v.Values[i] = 3 // so that images of one brightness lie along it
	}
	values := mixtureValues(v, fixtures.Zeros(k, d).Map(func(float64) float64 { return math.Log(0.01) }), fixtures.Zeros(k, 1),
		fixtures.Random(rng, channels, 2, 5, 5).Map(func(x float64) float64 { return 1 + 0.01*x }))
	terms := func(narrow bool) []fixtures.Array {
		return convTerms(t, dtypes.Float32, values, func(s *model.Scope, x *graph.Node) energy.ConvTerms {
			if narrow {
				params.FactsOf(x.Graph()).BFloat16 = true
			}
			return energy.Rank1Mixture{}.ConvWith(s, x, w, k)
		})
	}
	compareTerms(t, terms(true), 1e-6, terms(false)...)
}

// The factors of a new mixture are orthonormal, or zero.
func TestConvStart(t *testing.T) {
	for _, zero := range []bool{false, true} {
		t.Run(fmt.Sprintf("ZeroFactors=%t", zero), func(t *testing.T) {
			store := model.NewStore()
			params.SetSeeds(store, 1)
			v := fixtures.FromTensor(t, must.Get(model.CallOnce(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
				mean := energy.Rank1Mixture{ZeroFactors: zero}.Conv(s.In("energy"), x, conv.Same(3, 1)).MeanEnergy
				factors := store.GetVariable("/energy/factors").NodeValue(x)
				return graph.Add(factors, graph.MulScalar(graph.ReduceAllSum(mean), 0))
			}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(3, 2, 4, 4))))(t))
			rows := mat.NewDense(v.Dims[0], v.Dims[1], v.Values)
			var products mat.Dense
			products.Mul(rows, rows.T())
			for i := range v.Dims[0] {
				for j := range v.Dims[0] {
					want := 0.0
					if i == j && !zero {
						want = 1
					}
					must.Near(t, products.At(i, j), want, 1e-13, "the product of factors %d and %d", i, j)
				}
			}
		})
	}
}
