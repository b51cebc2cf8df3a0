package likelihood_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/params"
	"densityuncertainty/environment/must"
)

// The NLL is -log p of another library, or computed by hand, in both precisions, and
// its gradient that of finite differences.
func TestNLL(t *testing.T) {
	t3 := func(m, v, y float64) float64 {
		return -distuv.StudentsT{Mu: m, Sigma: math.Exp(v), Nu: 3}.LogProb(y)
	}
	counts := []float64{0, 1, 3, 20, 400}
	rates := []float64{-1, 0.5, 1, 3, 6.1}
	var poisson []float64
	for i, y := range counts {
		poisson = append(poisson, -distuv.Poisson{Lambda: math.Exp(rates[i])}.LogProb(y))
	}
	for _, c := range []struct {
		name   string
		l      likelihood.Likelihood
		values fixtures.Values
		want   []float64
		single float64 // tolerance in single precision
	}{
		{"StudentT", likelihood.StudentT{Nu: 3}, fixtures.Values{
			"outputs": fixtures.Matrix(3, 1, 1, -1, 0.3), "target": fixtures.Matrix(3, 1, 3, -1.5, 40), "/observation_log_scale": fixtures.Matrix(1, 1, 0.4),
		}, []float64{t3(1, 0.4, 3), t3(-1, 0.4, -1.5), t3(0.3, 0.4, 40)}, 1e-5},
		{"Poisson", likelihood.Poisson{}, fixtures.Values{
			"outputs": fixtures.Matrix(5, 1, rates...), "target": fixtures.Matrix(5, 1, counts...),
		}, poisson, 1e-5},
		{"Quantiles", likelihood.Quantiles{Levels: []float64{0.1, 0.5}}, fixtures.Values{
			"outputs": fixtures.Matrix(2, 2, 1, 2, -1, 3), "target": fixtures.Matrix(2, 1, 3, -2),
		}, []float64{0.1*2 + 0.5*1, 0.9*1 + 0.5*5}, 1e-6},
	} {
		t.Run(c.name, func(t *testing.T) {
			nll := func(s *model.Scope, in fixtures.Nodes) *graph.Node { return c.l.NLL(s, in["outputs"], in["target"]) }
			for dtype, tolerance := range map[dtypes.DType]float64{dtypes.Float64: 1e-13, dtypes.Float32: c.single} {
				out := fixtures.Evaluate(t, dtype, c.values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node { return []*graph.Node{nll(s, in)} })[0]
				fixtures.Compare(t, "NLL", out, fixtures.Matrix(len(c.want), 1, c.want...), tolerance)
			}
			parameters := slices.DeleteFunc(slices.Sorted(maps.Keys(c.values)), func(name string) bool { return name == "target" })
			fixtures.CheckGradient(t, c.values, nil, nll, parameters...)
		})
	}
}

// Large counts keep their digits in single precision too, at the mode and two deviations from it (Stirling's series).
func TestPoissonOfLargeCounts(t *testing.T) {
	var counts, rates, want []float64
	for _, y := range []float64{1e3, 1e4, 1e5, 1e6, 1e7} {
		for _, deviations := range []float64{0, 2} {
			rate := float64(float32(math.Log(y + deviations*math.Sqrt(y))))
			u := rate - math.Log(y)
			counts, rates, want = append(counts, y), append(rates, rate), append(want, y*(math.Expm1(u)-u)+0.5*math.Log(2*math.Pi*y)+1/(12*y)-1/(360*y*y*y))
		}
	}
	values := fixtures.Values{"outputs": fixtures.Matrix(len(rates), 1, rates...), "target": fixtures.Matrix(len(counts), 1, counts...)}
	for dtype, tolerance := range map[dtypes.DType]float64{dtypes.Float64: 1e-12, dtypes.Float32: 5e-4} { // of the logarithm's last digit, 1e-6, times 2 sqrt(y)
		out := fixtures.Evaluate(t, dtype, values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{likelihood.Poisson{}.NLL(s, in["outputs"], in["target"])}
		})[0]
		fixtures.Compare(t, "NLL", out, fixtures.Matrix(len(want), 1, want...), tolerance)
	}
}

// With replicas each has a scale of its own, and the same loss as alone.
func TestStudentTOfReplicas(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	values := fixtures.Values{"outputs": fixtures.Random(rng, 2, 3, 1), "target": fixtures.Random(rng, 2, 3, 1), "/observation_log_scale": fixtures.Random(rng, 2, 1, 1)}
	l := likelihood.StudentT{Nu: 5}
	nll := func(replicas ...int) fixtures.Function {
		return func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			params.FactsOf(in["outputs"].Graph()).Replicas = replicas
			return []*graph.Node{l.NLL(s, in["outputs"], in["target"])}
		}
	}
	together := fixtures.Evaluate(t, dtypes.Float64, values, nil, nll(2))[0]
	for r := range 2 {
		one := fixtures.Values{}
		for name, a := range values {
			size := len(a.Values) / 2
			one[name] = fixtures.Matrix(size, 1, a.Values[r*size:(r+1)*size]...)
		}
		fixtures.Compare(t, "NLL", fixtures.Matrix(3, 1, together.Values[r*3:r*3+3]...), fixtures.Evaluate(t, dtypes.Float64, one, nil, nll())[0], 1e-14)
	}
}

func TestRefused(t *testing.T) {
	for want, err := range map[string]error{
		"has 0 degrees":               likelihood.StudentT{}.Check(),
		"has NaN degrees":             likelihood.StudentT{Nu: math.NaN()}.Check(),
		"has +Inf degrees":            likelihood.StudentT{Nu: math.Inf(1)}.Check(),
		"has 1e+12 degrees":           likelihood.StudentT{Nu: 1e12}.Check(),
		"no Levels":                   likelihood.Quantiles{}.Check(),
		"Levels [0.5 0.5]":            likelihood.Quantiles{Levels: []float64{0.5, 0.5}}.Check(),
		"Levels [0]":                  likelihood.Quantiles{Levels: []float64{0}}.Check(),
		"Levels [1]":                  likelihood.Quantiles{Levels: []float64{1}}.Check(),
		"1 classes":                   likelihood.Categorical{Classes: 1}.Check(),
		"cannot have -1":              likelihood.Poisson{}.CheckTarget(-1),
		"cannot have 0.5; give the c": likelihood.Poisson{}.CheckTarget(0.5),
	} {
		must.Err(t, err, want)
	}
	for _, err := range []error{likelihood.StudentT{Nu: 0.5}.Check(), likelihood.Quantiles{Levels: []float64{0.1, 0.9}}.Check(), likelihood.Poisson{}.CheckTarget(7)} {
		must.Do(t, err)
	}
}

// With the largest number of degrees of freedom probabilities are those of a Gaussian within 1e-6.
func TestManyDegreesOfFreedom(t *testing.T) {
	d := (likelihood.StudentT{Nu: 1e6}).Given([]float64{0, 0})
	for _, y := range []float64{-3, 0, 1} {
		must.Near(t, d.CDF(y), distuv.UnitNormal.CDF(y), 1e-6, "the CDF at %v", y)
		must.Near(t, d.LogProb(y), distuv.UnitNormal.LogProb(y), 2e-5, "the log density at %v", y)
	}
}
