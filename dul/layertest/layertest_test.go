package layertest_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// noisy is a right family, y = x W + b + sigma eps, and the steps in which a
// test can break it. Any step may be nil.
type noisy struct {
	mean     func(x, mean *graph.Node) *graph.Node              // x W + b
	kl       func(x, kl *graph.Node) *graph.Node                // KL(q(eps) || N(0, 1))
	noise    func(s *model.Scope, like *graph.Node) *graph.Node // eps, of the shape of like
	deviator func(noise *graph.Node) *graph.Node                // sigma eps
	reversed bool                                               // the last two axes of the output
}

func (l noisy) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	mean := params.Dense(s, x, units)
	logVariance := params.New(s, x, "log_variance", params.Variational, params.Constant(-1), 1, units)
	return l.turned(l.finish(s, x, mean, logVariance, graph.Mul))
}

func (l noisy) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	y := conv.Layer(s, x, c)
	mean := conv.Channels(y)
	logVariance := params.New(s, mean, "log_variance", params.Variational, params.Constant(-1), c.Filters, 1)
	return l.turned(conv.LikeImage(l.finish(s, x, mean, logVariance, conv.MulColumn), y))
}

func (l noisy) turned(y *graph.Node) *graph.Node {
	if l.reversed {
		return graph.Transpose(y, -2, -1)
	}
	return y
}

func (l noisy) finish(s *model.Scope, x, mean, logVariance *graph.Node, mul func(a, b *graph.Node) *graph.Node) *graph.Node {
	kl := stochastic.GaussianKL(nil, logVariance, 0, 1)
	if l.kl != nil {
		kl = l.kl(x, kl)
	}
	stochastic.LayerLossesOf(x.Graph()).AddKL(kl)
	if l.mean != nil {
		mean = l.mean(x, mean)
	}
	draw := func(s *model.Scope, like *graph.Node) *graph.Node {
		return stochastic.Draw(s, like, stochastic.Gaussian(), like.Shape().Dim(-2), like.Shape().Dim(-1))
	}
	if l.noise != nil {
		draw = l.noise
	}
	noise := mul(draw(s, mean), ops.Exp(graph.MulScalar(logVariance, 0.5)))
	if l.deviator != nil {
		noise = l.deviator(noise)
	}
	return graph.Add(mean, noise)
}

// moments are those of noisy.
func moments(t testing.TB, at fixtures.Values) (mean, variance []float64) {
	values := fixtures.Evaluate(t, dtypes.Float64, at, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		w, b, x := in["/layer/weights"], in["/layer/bias"], in["x"]
		spread := ops.Exp(in["/layer/log_variance"])
		if x.Rank() == 2 {
			y := ops.Affine(x, w, b)
			return []*graph.Node{y, graph.Add(graph.ZerosLike(y), spread)}
		}
		y := conv.AddColumn(conv.Channels(conv.Convolve(x, w, layertest.MomentsSpec.Window)), b)
		return []*graph.Node{y, conv.AddColumn(graph.ZerosLike(y), spread)}
	})
	return values[0].Values, values[1].Values
}

func TestRightFamilyPasses(t *testing.T) {
	layertest.Checks{Moments: moments}.Dense(t, noisy{})
	layertest.Checks{Moments: moments}.Conv(t, noisy{})
}

// A family without noise has moments, too: its output, and a variance of 0.
func TestDeterministicFamily(t *testing.T) {
	fixtures.GoBackend(t)
	silent := noisy{
		noise:    func(_ *model.Scope, like *graph.Node) *graph.Node { return graph.ZerosLike(like) },
		deviator: func(noise *graph.Node) *graph.Node { return graph.MulScalar(noise, 0) },
	}
	stated := func(mean, variance float64) func(t testing.TB, at fixtures.Values) (means, variances []float64) {
		return func(t testing.TB, at fixtures.Values) (means, variances []float64) {
			means, variances = moments(t, at)
			for i := range means {
				means[i], variances[i] = means[i]+mean, variance
			}
			return means, variances
		}
	}
	checks := layertest.Checks{Deterministic: true, CutGradients: true, Moments: stated(0, 0)}
	checks.Dense(t, silent)
	for name, wrong := range map[string]func(t testing.TB, at fixtures.Values) (mean, variance []float64){"another mean": stated(0.01, 0), "a variance": stated(0, 0.01)} {
		checks.Moments = wrong
		if err := layertest.Failures(func(t testing.TB) { checks.Dense(t, silent) }); err == nil || !slices.Equal(failing(err), []string{"moments"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each broken family fails in the checks that are about its fault, and in these alone.
func TestBrokenFamiliesAreCaught(t *testing.T) {
	fixtures.GoBackend(t) // the checks are tested, which take XLA minutes to compile
	constantDraw := func(_ *model.Scope, like *graph.Node) *graph.Node {
		noise := fixtures.Random(rand.New(rand.NewPCG(1, 2)), like.Shape().Dimensions...)
		return graph.ConstTensor(like.Graph(), fixtures.Tensor(like.DType(), noise))
	}
	ownDraw := func(_ *model.Scope, like *graph.Node) *graph.Node {
		noise := fixtures.Zeros(like.Shape().Dimensions...).Map(func(float64) float64 { return rand.NormFloat64() })
		return graph.ConstTensor(like.Graph(), fixtures.Tensor(like.DType(), noise))
	}
	sharedDraw := func(s *model.Scope, like *graph.Node) *graph.Node {
		one := stochastic.Draw(s, like, stochastic.Gaussian(), 1, like.Shape().Dim(-1))
		return graph.Add(graph.ZerosLike(like), one)
	}
	wrongVariance := func(noise *graph.Node) *graph.Node { return graph.MulScalar(noise, math.Sqrt(1.1)) }
	for _, c := range []struct {
		name   string
		layers noisy
		checks layertest.Checks
		fails  []string // the checks
		image  bool     // whether the fault is one of Conv too
		says   string
	}{
		{
			name: "gradient of the mean stopped", image: true, fails: []string{"gradients"}, says: "gradient with respect to",
			layers: noisy{mean: func(_, mean *graph.Node) *graph.Node { return graph.StopGradient(mean) }},
		},
		{
			name: "gradient of the deviation stopped", image: true, fails: []string{"gradients"}, says: "log_variance",
			layers: noisy{deviator: graph.StopGradient},
		},
		{
			name: "gradient of the KL stopped", image: true, fails: []string{"gradients"}, says: "gradients",
			layers: noisy{kl: func(_, kl *graph.Node) *graph.Node { return graph.StopGradient(kl) }},
		},
		{
			name: "KL negative", image: true, fails: []string{"KL"}, says: "a divergence is not negative",
			layers: noisy{kl: func(_, kl *graph.Node) *graph.Node { return graph.Neg(kl) }},
		},
		{
			name: "KL counted for each example", fails: []string{"KL"}, says: "KL of a larger batch",
			layers: noisy{kl: func(x, kl *graph.Node) *graph.Node { return graph.MulScalar(kl, float64(x.Shape().Dim(-2))) }},
		},
		{
			name: "KL not summed", fails: []string{"shapes", "KL"}, says: "KL of inputs",
			layers: noisy{kl: func(x, kl *graph.Node) *graph.Node {
				return graph.Add(graph.ZerosLike(graph.ReduceAndKeep(x, graph.ReduceSum, -1)), kl)
			}},
		},
		{
			name: "noise not drawn anew", image: true, fails: []string{"noise", "replicas"}, says: "not drawn anew",
			layers: noisy{noise: constantDraw},
		},
		{
			name: "noise of no seed", image: true, fails: []string{"noise", "precision", "gradients", "replicas"},
			says: "the same seed gives different noise", layers: noisy{noise: ownDraw},
		},
		{
			name: "noise of a batch shared", fails: []string{"noise", "moments"}, says: "copies of an example have the same output: true",
			layers: noisy{noise: sharedDraw},
		},
		{name: "noise not shared", checks: layertest.Checks{SharedNoise: true}, image: true, fails: []string{"noise"}, says: "same output: false"},
		{name: "noise not declared", checks: layertest.Checks{Deterministic: true}, image: true, fails: []string{"noise", "moments"}, says: "deterministic"},
		{
			name: "no noise", image: true, fails: []string{"noise", "moments"}, says: "not drawn anew",
			layers: noisy{deviator: func(noise *graph.Node) *graph.Node { return graph.MulScalar(noise, 0) }},
		},
		{
			name: "variance a tenth too large", image: true, fails: []string{"moments"}, says: "z-scores",
			layers: noisy{deviator: wrongVariance},
		},
		{
			name: "mean a twentieth of a deviation too large", image: true, fails: []string{"moments"}, says: "z-scores",
			layers: noisy{deviator: func(noise *graph.Node) *graph.Node { return graph.AddScalar(noise, 0.05) }},
		},
		{
			name: "replicas mixed", fails: []string{"replicas"}, says: "replica 0",
			layers: noisy{mean: func(_, mean *graph.Node) *graph.Node {
				if mean.Rank() == 3 {
					return graph.Add(mean, graph.ReduceAndKeep(mean, graph.ReduceMean, 0))
				}
				return mean
			}},
		},
		{
			name: "examples mixed", image: true, fails: []string{"neighbours", "moments"}, says: "mixes the examples",
			layers: noisy{mean: func(x, mean *graph.Node) *graph.Node {
				rows, columns := mean.Rank()-2, mean.Rank()-1
				if x.Rank() == 4 {
					rows = columns // whose columns are the pixels of all images
				}
				return graph.Sub(mean, graph.MulScalar(graph.ReduceAndKeep(mean, graph.ReduceMean, rows), 0.5))
			}},
		},
		{
			name: "output reversed", image: true, fails: []string{"shapes", "moments"}, says: "output of inputs",
			layers: noisy{reversed: true},
		},
		{
			name: "single precision wrong", image: true, fails: []string{"precision"}, says: "in single precision",
			layers: noisy{mean: func(_, mean *graph.Node) *graph.Node {
				if mean.DType() == dtypes.Float32 {
					return graph.AddScalar(mean, 1e-3)
				}
				return mean
			}},
		},
		{
			name: "double precision rounded", image: true, fails: []string{"gradients"}, says: "gradient",
			layers: noisy{mean: func(_, mean *graph.Node) *graph.Node {
				return graph.ConvertDType(graph.ConvertDType(mean, dtypes.Float32), mean.DType())
			}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(name string, run func(checks layertest.Checks, t testing.TB)) {
				checks := c.checks
				checks.Moments = moments
				err := layertest.Failures(func(t testing.TB) { run(checks, t) })
				must.Err(t, err, c.says)
				want := slices.DeleteFunc(slices.Clone(c.fails), func(f string) bool { return name == "Conv" && f == "replicas" })
				if got := failing(err); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
					t.Errorf("%s: the checks %v fail, want %v: %v", name, got, want, err)
				}
			}
			check("Dense", func(checks layertest.Checks, t testing.TB) { checks.Dense(t, c.layers) })
			if c.image {
				check("Conv", func(checks layertest.Checks, t testing.TB) { checks.Conv(t, c.layers) })
			}
		})
	}
}

// failing are the first words of the failures.
func failing(err error) []string {
	var names []string
	for _, line := range strings.Split(err.Error(), "\n") {
		for _, name := range []string{"shapes", "precision", "gradients", "KL", "neighbours", "noise", "moments", "replicas"} {
			if strings.HasPrefix(line, "/"+name) || strings.HasPrefix(line, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unwritten is a family that panics with a text.
type unwritten struct{}

func (unwritten) Dense(*model.Scope, *graph.Node, int) *graph.Node { panic("not written yet") }

func (unwritten) Conv(*model.Scope, *graph.Node, conv.Spec) *graph.Node { panic("not written yet") }

// A family that panics fails in every check, and each says whose panic it is.
func TestFamilyThatPanics(t *testing.T) {
	for want, checks := range map[string]func(t testing.TB){
		"Dense of layers of type layertest_test.unwritten: not written yet": func(t testing.TB) { layertest.Dense(t, unwritten{}) },
		"Conv of layers of type layertest_test.unwritten: not written yet":  func(t testing.TB) { layertest.Conv(t, unwritten{}) },
	} {
		err := layertest.Failures(checks)
		if err == nil {
			t.Fatal("nothing fails")
		}
		lines := strings.Split(err.Error(), "\n")
		for _, line := range lines {
			if !strings.HasSuffix(line, ": "+want) {
				t.Errorf("there is %q, want %q", line, want)
			}
		}
		if len(lines) < 10 {
			t.Errorf("%d checks fail, want all: %v", len(lines), err)
		}
	}
}

// If a function panics, the helper that builds its graph fails with the panic.
func TestFunctionsThatPanic(t *testing.T) {
	x := fixtures.Values{"x": fixtures.Zeros(1, 1)}
	for name, checks := range map[string]func(t testing.TB){
		"Evaluate": func(t testing.TB) {
			fixtures.Evaluate(t, dtypes.Float64, x, nil, func(*model.Scope, fixtures.Nodes) []*graph.Node { panic("not written yet") })
		},
		"Explore": func(t testing.TB) {
			fixtures.Explore(t, x, func(*model.Scope, fixtures.Nodes) *graph.Node { panic("not written yet") })
		},
		"Gradients": func(t testing.TB) {
			layertest.Gradients(t, x["x"], func(*model.Scope, *graph.Node) *graph.Node { panic("not written yet") })
		},
	} {
		if err := layertest.Failures(checks); err == nil || err.Error() != "building the graph: not written yet" {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// A check may panic, and the others go on.
func TestChecksThatPanic(t *testing.T) {
	err := layertest.Failures(func(t testing.TB) {
		layertest.Checks{Moments: func(testing.TB, fixtures.Values) (mean, variance []float64) { panic("no moments") }}.Dense(t, additive{})
		panic("at the end")
	})
	const want = "moments/host: panic: no moments\nmoments/graph: panic: no moments\npanic: at the end"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
}
