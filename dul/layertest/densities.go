package layertest

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/ops"
	"densityuncertainty/environment/must"
)

// Integrals are sums over points h = sinh(u), which are dense near 0 and reach beyond 1000.
const (
	gridPoints = 201
	gridStep   = 16. / (gridPoints - 1) // of u, from -8 to 8
)

func gridU(k int) float64 { return float64(k)*gridStep - 8 }

// Energy tests an energy model of vectors, such as energy.LDL, in one and two dimensions and at random parameters:
//
//   - E(h) is finite and not negative;
//   - |Root|^2 = E(h), if there is a Root;
//   - if there is a log-likelihood, log p(h) + E(h) is the same for all h, and the integral of p is 1.
//
// The integral is a sum over 201 points in each dimension. At the random parameters, drawn from N(0, 0.5^2), the scales
// of h must be between 0.1 and 100.
func Energy(t testing.TB, m interface {
	Dense(s *model.Scope, h *graph.Node) energy.Terms
}) {
	t.Helper()
	for d := 1; d <= 2; d++ {
		run(t, fmt.Sprintf("dimensions=%d", d), func(t testing.TB) {
			var points, weights []float64
			for i := range int(math.Pow(gridPoints, float64(d))) {
				weight := 1.0
				for k, rest := 0, i; k < d; k, rest = k+1, rest/gridPoints {
					u := gridU(rest % gridPoints)
					points, weight = append(points, math.Sinh(u)), weight*gridStep*math.Cosh(u)
				}
				weights = append(weights, weight)
			}
			checkEnergy(t, fixtures.Matrix(len(weights), d, points...), weights, m.Dense)
		})
	}
}

func checkEnergy(t testing.TB, h fixtures.Array, weights []float64, dense func(s *model.Scope, h *graph.Node) energy.Terms) {
	t.Helper()
	var hasLikelihood, hasRoot bool
	parts := func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		terms := dense(s.In("energy"), in["h"])
		all := []*graph.Node{terms.Energy, terms.Energy, terms.Energy}
		if hasLikelihood = terms.LogLikelihood != nil; hasLikelihood {
			all[1] = terms.LogLikelihood
		}
		if hasRoot = terms.Root != nil; hasRoot {
			root := terms.Root()
			all[2] = ops.SumColumns(graph.Mul(root, root))
		}
		return all
	}
	values, _ := fixtures.Explore(t, fixtures.Values{"h": h}, func(s *model.Scope, in fixtures.Nodes) *graph.Node {
		all := parts(s, in)
		return graph.Add(graph.Add(all[0], all[1]), all[2])
	})
	found := fixtures.Evaluate(t, dtypes.Float64, values, nil, parts)
	e, log, square := found[0].Values, found[1].Values, found[2].Values
	if len(e) != len(weights) {
		t.Fatalf("the energies of %d inputs are of shape %v", len(weights), found[0].Dims)
	}
	integral := 0.0
	for i := range e {
		at := h.Values[i*h.Dims[1] : (i+1)*h.Dims[1]]
		rounding := 1e-9 * max(1, e[i])
		switch {
		case !(e[i] >= 0) || math.IsInf(e[i], 1):
			t.Fatalf("the energy at %.3v is %g; it must be finite and not negative", at, e[i])
		case hasRoot && !(math.Abs(square[i]-e[i]) <= rounding):
			t.Fatalf("the squares of the root at %.3v add up to %g; the energy is %g", at, square[i], e[i])
		case hasLikelihood && !(math.Abs(log[i]+e[i]-log[0]-e[0]) <= 1e-9*max(1, e[i], e[0])):
			t.Fatalf("the sum of log-likelihood and energy at %.3v is %g, elsewhere %g; it must be a constant", at, log[i]+e[i], log[0]+e[0])
		}
		integral += weights[i] * math.Exp(log[i])
	}
	if hasLikelihood && !(math.Abs(integral-1) <= 1e-6) {
		t.Errorf("the integral of the density is %g; it must be 1", integral)
	}
}

// Likelihood tests a likelihood at random outputs and parameters:
//
//   - its settings pass its Check;
//   - for a Distribution or a Regression, NLL is -log p(target) up to one constant, and the distribution function
//     increases and is the integral of p; for counts, for which CheckTarget(0.5) is an error, it is the sum of p;
//   - mean and variance are those of p, if tails beyond 1000 do not matter;
//   - for a Classification, the probabilities exp(-NLL) sum to 1, and are those of LogProbabilities.
//
// A likelihood of another kind is an error.
func Likelihood(t testing.TB, l likelihood.Likelihood) {
	t.Helper()
	if c, is := l.(likelihood.Checker); is {
		must.Do(t, c.Check())
	}
	switch l := l.(type) {
	case likelihood.Classification:
		checkClasses(t, l)
	case likelihood.Distribution:
		checkDistribution(t, l, l.Parameters, l.Given)
	case likelihood.Regression:
		checkDistribution(t, l, func(s *model.Scope, outputs *graph.Node) *graph.Node {
			mean, logVariance := l.Moments(s, outputs)
			return graph.Concatenate([]*graph.Node{mean, graph.Add(graph.ZerosLike(mean), logVariance)}, -1)
		}, func(p []float64) likelihood.Univariate { return distuv.Normal{Mu: p[0], Sigma: math.Exp(p[1] / 2)} })
	default:
		t.Fatalf("%T is neither a Classification nor a Distribution nor a Regression: there is nothing to compare its NLL with", l)
	}
}

func checkDistribution(t testing.TB, l likelihood.Likelihood, parameters func(s *model.Scope, outputs *graph.Node) *graph.Node, given func(parameters []float64) likelihood.Univariate) {
	t.Helper()
	allowed := func(y float64) bool {
		c, is := l.(likelihood.TargetChecker)
		return !is || c.CheckTarget(y) == nil
	}
	counts, at := !allowed(0.5), func(k int) float64 { return math.Sinh(gridU(k)) }
	if counts {
		at = func(k int) float64 { return float64(k) }
	}
	var targets, outputs []float64
	const examples = 3
	rng := newRand()
	for range examples {
		row := fixtures.Random(rng, l.Outputs()).Values
		for k := range gridPoints {
			if y := at(k); allowed(y) {
				targets, outputs = append(targets, y), append(outputs, row...)
			}
		}
	}
	n := len(targets)
	if n == 0 {
		t.Fatal("CheckTarget allows no target")
	}
	inputs := fixtures.Values{"y": fixtures.Matrix(n, 1, targets...), "outputs": fixtures.Matrix(n, l.Outputs(), outputs...)}
	parts := func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{l.NLL(s, in["outputs"], in["y"]), parameters(s, in["outputs"])}
	}
	values, _ := fixtures.Explore(t, inputs, func(s *model.Scope, in fixtures.Nodes) *graph.Node {
		all := parts(s, in)
		return graph.Add(all[0], ops.SumColumns(all[1]))
	})
	constant := math.NaN()
	for _, factor := range []float64{1, -0.5} { // of the likelihood's own parameters
		for _, path := range values.Parameters() {
			values[path] = values[path].Scale(factor)
		}
		found := fixtures.Evaluate(t, dtypes.Float64, values, nil, parts)
		width := found[1].Dims[len(found[1].Dims)-1]
		for i, nll := range found[0].Values {
			p := given(found[1].Values[i*width : (i+1)*width])
			if math.IsNaN(constant) {
				constant = nll + p.LogProb(targets[i])
			}
			if got := nll + p.LogProb(targets[i]); !(math.Abs(got-constant) <= 1e-8*max(1, math.Abs(nll))) {
				t.Fatalf("NLL is -log p + %g at the target %.3g, elsewhere -log p + %g; the sum must be a constant", got, targets[i], constant)
			}
		}
		for first := 0; first < n; first += n / examples {
			checkUnivariate(t, given(found[1].Values[first*width:(first+1)*width]), targets[first:first+n/examples], counts)
		}
	}
}

// checkUnivariate compares the distribution function and the moments with integrals of the density by Simpson's rule in u.
func checkUnivariate(t testing.TB, p likelihood.Univariate, targets []float64, counts bool) {
	t.Helper()
	below, all, mean, square := p.CDF(targets[0]), 0.0, 0.0, 0.0
	add := func(y, weight float64) {
		mass := weight * math.Exp(p.LogProb(y))
		all, mean, square = all+mass, mean+mass*y, square+mass*y*y
	}
	if counts {
		below = 0
		add(targets[0], 1)
	}
	for k := 1; k < len(targets); k++ {
		if low, high := p.CDF(targets[k-1]), p.CDF(targets[k]); !(0 <= low && low <= high && high <= 1+1e-12) {
			t.Fatalf("the distribution function goes from %g to %g between %.3g and %.3g; it must ascend from 0 to 1", low, high, targets[k-1], targets[k])
		}
		if counts {
			add(targets[k], 1)
		} else {
			const parts = 32 // enough for a density with a kink between two targets
			from, to := math.Asinh(targets[k-1]), math.Asinh(targets[k])
			for part := range parts {
				for i, weight := range []float64{1, 4, 1} {
					u := from + (to-from)*(float64(part)+float64(i)/2)/parts
					add(math.Sinh(u), weight*(to-from)/parts/6*math.Cosh(u))
				}
			}
		}
		if got := p.CDF(targets[k]); !(math.Abs(got-below-all) <= 1e-5) {
			t.Fatalf("the distribution function at %.3g is %g; the density below it has %g", targets[k], got, below+all)
		}
	}
	for _, end := range []float64{targets[0], targets[len(targets)-1]} {
		if math.Exp(p.LogProb(end))*math.Abs(end*end*end) > 1e-6 {
			return
		}
	}
	if v := square - mean*mean; !(math.Abs(mean-p.Mean()) <= 1e-4*(1+math.Abs(mean)) && math.Abs(v-p.Variance()) <= 1e-4*(1+v)) {
		t.Errorf("mean and variance are said to be %g and %g; those of the density are %g and %g", p.Mean(), p.Variance(), mean, v)
	}
}

func checkClasses(t testing.TB, l likelihood.Classification) {
	t.Helper()
	classes, rng := l.Outputs(), newRand()
	var outputs, labels []float64
	for range 3 {
		row := fixtures.Random(rng, classes).Values
		for label := range classes {
			outputs, labels = append(outputs, row...), append(labels, float64(label))
		}
	}
	inputs := fixtures.Values{"outputs": fixtures.Matrix(len(labels), classes, outputs...), "labels": fixtures.Matrix(len(labels), 1, labels...)}
	parts := func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{l.NLL(s, in["outputs"], graph.ConvertDType(in["labels"], dtypes.Int32)), l.LogProbabilities(s, in["outputs"])}
	}
	values, _ := fixtures.Explore(t, inputs, func(s *model.Scope, in fixtures.Nodes) *graph.Node {
		all := parts(s, in)
		return graph.Add(all[0], ops.SumColumns(all[1]))
	})
	found := fixtures.Evaluate(t, dtypes.Float64, values, nil, parts)
	if len(found[1].Values) != len(outputs) {
		t.Fatalf("LogProbabilities are of shape %v for outputs of shape [%d %d]; want one for each output", found[1].Dims, len(labels), classes)
	}
	for first := 0; first < len(labels); first += classes {
		total := 0.0
		for label, v := range found[0].Values[first : first+classes] {
			total += math.Exp(-v)
			if log := found[1].Values[(first+label)*classes+label]; !(math.Abs(v+log) <= 1e-9*max(1, math.Abs(v))) && v != -log {
				t.Errorf("the NLL of label %d is %g, and LogProbabilities say %g", label, v, -log)
			}
		}
		if !(math.Abs(total-1) <= 1e-9) {
			t.Errorf("the probabilities of the %d labels add up to %g", classes, total)
		}
	}
}
