package predict_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	gomlx "github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// coherentInputs are inputs of three features, the last one like the first.
var coherentInputs = nets.Rows([]float64{1, 0.5, -1, 0.2, -2, 0.3, 3, 1, 1, 1, 0.5, -1}, 3)

// regression is Bayesian linear regression: its data are random, and its posterior is N(mean, covariance).
type regression struct{ mean, covariance *mat.Dense }

const regressionExamples, regressionAlpha, regressionBeta = 20, 0.5, 4.0

// The posterior of the regression is equation 6 of the paper: with Lambda = beta X'X + alpha I, the mean beta Lambda^-1 X'y
// and the covariance Lambda^-1.
func posterior(t *testing.T) regression {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	x, y := mat.NewDense(regressionExamples, 3, nil), mat.NewDense(regressionExamples, 1, nil)
	x.Apply(func(_, j int, _ float64) float64 { return random.NormFloat64() + float64(j) }, x)
	y.Apply(func(i, _ int, _ float64) float64 { return x.At(i, 0) - x.At(i, 2) + 0.5*random.NormFloat64() }, y)
	precision, sight := &mat.Dense{}, &mat.Dense{}
	precision.Mul(x.T(), x)
	precision.Scale(regressionBeta, precision)
	for i := range 3 {
		precision.Set(i, i, precision.At(i, i)+regressionAlpha)
	}
	found := regression{&mat.Dense{}, &mat.Dense{}}
	must.Do(t, found.covariance.Inverse(precision))
	sight.Mul(x.T(), y)
	sight.Scale(regressionBeta, sight)
	found.mean.Mul(found.covariance, sight)
	return found
}

// set sets parameters of the layer "output".
func set(t *testing.T, m *nets.Model, values map[string][]float64) {
	t.Helper()
	for name, value := range values {
		v := m.Store.GetVariable("/model/network/output/" + name)
		if v == nil {
			t.Fatalf("the layer has no %s", name)
		}
		must.Do(t, v.SetValue(params.FromFloat64(v.Shape(), value)))
	}
}

// Coherent draws of a layer have the variances of the layer at each input, and the covariances of the affine function that
// has them. For the energy of Bayesian linear regression they are draws of its posterior. Other draws have the same
// variances, and are independent.
func TestCoherentDrawsOfALayer(t *testing.T) {
	exact := posterior(t)
	// Var = 2/(beta N) E, E = 1/2 h' Sigma^-1 h (section 2.1): Sigma^-1 = beta N Lambda^-1 = L D L'.
	const scale = regressionBeta * regressionExamples
	chol := &mat.Cholesky{}
	if !chol.Factorize(mat.NewSymDense(3, exact.covariance.RawMatrix().Data)) {
		t.Fatal("the covariance has no root")
	}
	root := &mat.TriDense{}
	chol.LTo(root)
	lower, logVariance := make([]float64, 9), make([]float64, 3)
	for j := range 3 {
		logVariance[j] = -math.Log(scale * root.At(j, j) * root.At(j, j))
		for i := j; i < 3; i++ {
			lower[3*i+j] = root.At(i, j) / root.At(j, j)
		}
	}
	form := func(a, b []float64) float64 {
		return mat.Inner(mat.NewVecDense(3, a), exact.covariance, mat.NewVecDense(3, b))
	}
	const gamma, beta = 0.3, 0.2
	for name, c := range map[string]struct {
		layer       dul.Density
		gamma, beta float64
		more        map[string][]float64
		covariance  func(a, b []float64) float64
	}{
		"Bayesian linear regression": {dul.Density{}, 2 / scale, 1e-30, map[string][]float64{"energy/lower": lower, "energy/log_variance": logVariance}, form},
		"LDL, half": {dul.Density{HalfD: true}, gamma, beta, map[string][]float64{"energy/lower": lower, "energy/log_variance": logVariance},
			func(a, b []float64) float64 { return gamma/2*scale*form(a, b) + beta*3/2 }},
		"Diagonal": {dul.Density{Energy: energy.Diagonal{}}, gamma, beta, map[string][]float64{"energy/log_variance": {0, math.Log(4), math.Log(0.5)}},
			func(a, b []float64) float64 { return gamma/2*(a[0]*b[0]+a[1]*b[1]/4+a[2]*b[2]/0.5) + beta }},
		"Constant":    {dul.Density{Energy: energy.Constant{}}, gamma, beta, nil, func(_, _ []float64) float64 { return gamma*3/2 + beta }},
		"mean energy": {dul.Density{MeanEnergy: true}, gamma, beta, map[string][]float64{"mean_energy": {0.7}}, func(_, _ []float64) float64 { return gamma*0.7 + beta }},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, nets.MLP{Layers: c.layer}, likelihood.Gaussian{}, 1)
			sample(t, m, coherentInputs, predict.Options{Samples: 1})
			set(t, m, map[string][]float64{
				"weights": exact.mean.RawMatrix().Data, "bias": {0},
				"gamma_log_variance": {math.Log(c.gamma)}, "beta_log_variance": {math.Log(c.beta)},
			})
			set(t, m, c.more)
			const draws = 5000
			function := sample(t, m, coherentInputs, predict.Options{Samples: draws, Seed: new(uint64(3)), Coherent: true}).Mean
			single := sample(t, m, coherentInputs, predict.Options{Samples: draws, Seed: new(uint64(3))}).Mean
			inputs := slices.Collect(slices.Chunk(coherentInputs.Values, 3))
			// at are the differences from the mean at an input.
			at := func(of [][]float64, i int) []float64 {
				all := make([]float64, draws)
				for k := range all {
					all[k] = of[k][i] - mat.Dot(mat.NewVecDense(3, inputs[i]), exact.mean.ColView(0))
				}
				return all
			}
			for i, a := range inputs[:3] {
				fixtures.CheckMoments(t, "a function", at(function, i), 0, c.covariance(a, a))
				fixtures.CheckMoments(t, "draws", at(single, i), 0, c.covariance(a, a))
				for j, b := range inputs[:i] {
					products := floats.MulTo(make([]float64, draws), at(function, i), at(function, j))
					cov := c.covariance(a, b)
					fixtures.CheckMoments(t, "products of a function", products, cov, c.covariance(a, a)*c.covariance(b, b)+cov*cov)
					fixtures.CheckUncorrelated(t, "draws", at(single, i), at(single, j))
				}
			}
		})
	}
}

// Each coherent sample of a network is one function: the same input has the same output wherever it stands, and whatever
// the batches are. At each input by itself the samples have the distribution that they have else.
func TestCoherentSamplesAreFunctions(t *testing.T) {
	for name, layers := range map[string]nets.Layers{
		"Density":              dul.Density{InitStd: 0.5},
		"Density, diagonal":    dul.Density{InitStd: 0.5, Energy: energy.Diagonal{}, HalfD: true},
		"Density, constant":    dul.Density{InitStd: 0.5, Energy: energy.Constant{}},
		"Density, mean energy": dul.Density{InitStd: 0.5, MeanEnergy: true},
		"Deterministic":        baselines.Deterministic{},
		"MFVI":                 baselines.MFVI{InitStd: 0.5},
		"Rank1":                baselines.Rank1{InitStd: 0.5},
		"MCDropout":            baselines.MCDropout{Rate: 0.3},
		"VDropout":             baselines.VDropout{Alpha: 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "Density" && name != "Rank1" {
				fixtures.SkipShortOffGo(t)
			}
			m := mlp(t, layers, 1)
			const draws = 4000
			o := predict.Options{Samples: draws, Seed: new(uint64(2)), Coherent: true}
			function := sample(t, m, coherentInputs, o).Mean
			last := coherentInputs.Len() - 1
			reversed := slices.Concat(slices.Collect(func(yield func([]float64) bool) {
				for i := range coherentInputs.Len() {
					at := 3 * (last - i)
					if !yield(coherentInputs.Values[at : at+3]) {
						return
					}
				}
			})...)
			o.BatchSize = 3
			other := sample(t, m, nets.Rows(reversed, 3), o).Mean
			o = predict.Options{Samples: draws, Seed: new(uint64(7))}
			single := sample(t, m, coherentInputs, o).Mean
			for k := range function {
				if function[k][0] != function[k][last] {
					t.Fatalf("sample %d is %v at equal inputs", k, []float64{function[k][0], function[k][last]})
				}
				slices.Reverse(other[k])
				if !floats.EqualApprox(function[k], other[k], 1e-10) {
					t.Fatalf("sample %d is %v, in another order and other batches %v", k, function[k], other[k])
				}
			}
			if name == "Deterministic" {
				return
			}
			if function[0][0] == function[1][0] {
				t.Error("two samples are equal")
			}
			for i := range last {
				compareMoments(t, fixtures.Matrix(draws, last+1, slices.Concat(function...)...).Column(i), fixtures.Matrix(draws, last+1, slices.Concat(single...)...).Column(i))
			}
		})
	}
}

// compareMoments fails if the means or the second moments of two independent samples differ.
func compareMoments(t *testing.T, a, b []float64) {
	t.Helper()
	for power := 1.0; power <= 2; power++ {
		var mean, variance [2]float64
		for k, of := range [][]float64{a, b} {
			for _, v := range of {
				mean[k] += math.Pow(v, power) / float64(len(of))
			}
			for _, v := range of {
				variance[k] += math.Pow(math.Pow(v, power)-mean[k], 2) / float64(len(of)*len(of))
			}
		}
		must.Z(t, (mean[0]-mean[1])/math.Sqrt(variance[0]+variance[1]), "moment %g is %g for functions and %g else", power, mean[0], mean[1])
	}
}

// noisy is a family of your own that draws its noise for each example.
type noisy struct{}

func (noisy) Dense(s *gomlx.Scope, x *graph.Node, units int) *graph.Node {
	return graph.Add(params.Dense(s, x, units), stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(-2), units))
}

// What has no coherent draws is refused by name.
func TestCoherentIsRefused(t *testing.T) {
	seeded := predict.Options{Samples: 1, Seed: new(uint64), Coherent: true}
	training := seeded
	training.Training = true
	start := []baselines.Inducing{{Points: []float64{0, 1, 2, 2}, LengthScale: 1}}
	for name, c := range map[string]struct {
		model *nets.Model
		x     nets.Inputs
		o     predict.Options
		want  string
	}{
		"mixture":    {mlp(t, dul.Density{Energy: energy.Rank1Mixture{}}, 1), coherentInputs, seeded, "energy model energy.Rank1Mixture, whose Terms have no Root"},
		"clip":       {mlp(t, dul.Density{Clip: true}, 1), coherentInputs, seeded, "coherent draws with Clip"},
		"noise":      {mlp(t, dul.Density{Noise: stochastic.Uniform01()}, 1), coherentInputs, seeded, "Noise of type stochastic.uniform01"},
		"your own":   {mlp(t, noisy{}, 1), coherentInputs, seeded, "layer /model/network/hidden_0 of type predict_test.noisy"},
		"DUE":        {newModel(t, nets.ResidualMLP{Layers: baselines.Deterministic{}, Head: baselines.DUE{Start: start}, Width: 4, Depth: 1}, likelihood.Gaussian{}, 1), coherentInputs, seeded, "noise of shape (Float64)[4, 1], its own for each example"},
		"images":     {classifier(t, baselines.MCDropout{}), photos(2), seeded, "its own for each example"},
		"no seed":    {mlp(t, dul.Density{}, 1), coherentInputs, predict.Options{Coherent: true}, "needs a Seed"},
		"statistics": {mlp(t, dul.Density{}, 1), coherentInputs, training, "no Training"},
	} {
		t.Run(name, func(t *testing.T) { must.GetErr(predict.Sample(context.Background(), c.model, c.x, c.o))(t, c.want) })
	}
}
