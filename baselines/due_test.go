package baselines_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// A smallProblem is a regression in two dimensions with few examples, all of
// which are inducing points.
type smallProblem struct {
	x, y, test               []float64
	noise, length, amplitude float64 // amplitude is k(x, x)
}

// Of smallK classes all have the same targets.
const smallN, smallD, smallTests, smallK = 12, 2, 5, 2

func newSmallProblem() smallProblem {
	rng := rand.New(rand.NewPCG(1, 9))
	p := smallProblem{noise: 0.2, length: 0.9, amplitude: math.Ln2}
	p.x, p.test = points(rng, smallN, smallD), points(rng, smallTests, smallD)
	for i := range smallN {
		p.y = append(p.y, math.Sin(2*p.x[i*smallD])+0.3*rng.NormFloat64())
	}
	return p
}

// head is DUE with the problem's inducing points and length scale.
func (p smallProblem) head() baselines.DUE {
	return baselines.DUE{
		Start:  []baselines.Inducing{{Points: p.x, LengthScale: p.length}},
		Jitter: 1e-12,
	}
}

// covariance is the kernel matrix of rows.
func (p smallProblem) covariance(a, b []float64) *mat.Dense {
	n, m := len(a)/smallD, len(b)/smallD
	k := mat.NewDense(n, m, nil)
	for i := range n {
		for j := range m {
			r := math.Hypot(a[2*i]-b[2*j], a[2*i+1]-b[2*j+1]) / p.length
			k.Set(i, j, p.amplitude*math.Exp(-r*r/2))
		}
	}
	return k
}

// exact is Gaussian process regression by gonum: the moments of f at the test
// inputs and the log evidence.
func (p smallProblem) exact(t *testing.T) (mean, variance []float64, evidence float64) {
	t.Helper()
	noisy := mat.NewSymDense(smallN, p.covariance(p.x, p.x).RawMatrix().Data)
	for i := range smallN {
		noisy.SetSym(i, i, noisy.At(i, i)+p.noise)
	}
	var c mat.Cholesky
	if !c.Factorize(noisy) {
		t.Fatal("not positive definite")
	}
	cross := p.covariance(p.x, p.test)
	y := mat.NewVecDense(smallN, p.y)
	var weights mat.VecDense
	var solved mat.Dense
	must.Do(t, errors.Join(c.SolveVecTo(&weights, y), c.SolveTo(&solved, cross)))
	for i := range smallTests {
		mean = append(mean, mat.Dot(cross.ColView(i), &weights))
		variance = append(variance, p.amplitude-mat.Dot(cross.ColView(i), solved.ColView(i)))
	}
	evidence = -(mat.Dot(y, &weights) + c.LogDet() + smallN*math.Log(2*math.Pi)) / 2
	return mean, variance, evidence
}

// setOptimum sets the variational distribution to the best one, with A = L^-1
// K(Z, X): S S^T = (I + A A^T / sigma^2)^-1, m = S S^T A y / sigma^2 (Titsias 2009).
func (p smallProblem) setOptimum(t *testing.T, store *model.Store) {
	t.Helper()
	k := p.covariance(p.x, p.x)
	symmetric := mat.NewSymDense(smallN, k.RawMatrix().Data)
	for i := range smallN {
		symmetric.SetSym(i, i, symmetric.At(i, i)*(1+1e-12))
	}
	var c, inner mat.Cholesky
	if !c.Factorize(symmetric) {
		t.Fatal("not positive definite")
	}
	var l mat.TriDense
	c.LTo(&l)
	var a, ay mat.Dense
	must.Do(t, a.Solve(&l, p.covariance(p.x, p.x)))
	precision := mat.NewSymDense(smallN, nil)
	precision.SymOuterK(1/p.noise, &a)
	for i := range smallN {
		precision.SetSym(i, i, precision.At(i, i)+1)
	}
	if !inner.Factorize(precision) {
		t.Fatal("not positive definite")
	}
	var covariance mat.SymDense
	must.Do(t, inner.InverseTo(&covariance))
	ay.Mul(&a, mat.NewVecDense(smallN, p.y))
	var mean mat.Dense
	mean.Mul(&covariance, &ay)
	mean.Scale(1/p.noise, &mean)
	var s mat.Cholesky
	if !s.Factorize(&covariance) {
		t.Fatal("not positive definite")
	}
	var factor mat.TriDense
	s.LTo(&factor)
	raw := mat.DenseCopyOf(&factor)
	for i := range smallN {
		raw.Set(i, i, math.Log(factor.At(i, i)))
	}
	setHead(t, store, "variational_mean", slices.Repeat(mean.RawMatrix().Data, smallK))
	setHead(t, store, "variational_factor", slices.Repeat(raw.RawMatrix().Data, smallK))
}

// setHead sets a variable of the head at /head.
func setHead(t *testing.T, store *model.Store, name string, values []float64) {
	t.Helper()
	v := store.GetVariable("/head/" + name)
	if v == nil {
		t.Fatalf("the head has no variable %s", name)
	}
	must.Do(t, v.SetValue(params.FromFloat64(v.Shape(), values)))
}

// bound is N times the objective with the mean of the log-likelihood in closed
// form: the lower bound of the log evidences of all classes.
func (p smallProblem) bound(s *model.Scope, head baselines.DUE, x *graph.Node) *graph.Node {
	g := x.Graph()
	head.Head(s.In("head"), x, smallK) // which adds the KL
	mean, variance := head.Moments(s.At("head"), x, smallK)
	residual := graph.Sub(graph.Reshape(graph.Const(g, p.y), smallN, 1), mean)
	squares := graph.Add(graph.Mul(residual, residual), variance)
	fit := graph.AddScalar(graph.MulScalar(graph.ReduceAllSum(squares), -0.5/p.noise), -smallK*smallN*math.Log(2*math.Pi*p.noise)/2)
	return graph.Sub(fit, graph.Reshape(stochastic.LayerLossesOf(g).KL))
}

func TestDUE(t *testing.T) {
	points := fixtures.Random(rand.New(rand.NewPCG(31, 3)), 3, 4).Values
	head := baselines.DUE{Start: []baselines.Inducing{{Points: points, LengthScale: math.Sqrt2}}, Jitter: 1e-4}
	t.Run("regression", func(t *testing.T) { layertest.Checks{Features: 4}.Dense(t, told{head, params.Facts{}}) })
	t.Run("classes", func(t *testing.T) {
		fixtures.SkipShortOffGo(t)
		layertest.Checks{Features: 4, NoReplicas: true}.Dense(t, told{head, params.Facts{Classes: true}})
	})
}

// With all training inputs as inducing points and the best variational
// distribution DUE is exact Gaussian process regression, and its bound the evidence.
func TestDUEAtItsOptimumIsExact(t *testing.T) {
	p := newSmallProblem()
	head, store := p.head(), newStore()
	test := tensors.FromFlatDataAndDimensions(p.test, smallTests, smallD)
	headMoments(t, store, head, test, smallK) // makes the parameters
	p.setOptimum(t, store)
	mean, variance := headMoments(t, store, head, test, smallK)
	wantMean, wantVariance, evidence := p.exact(t)
	for k := range mean {
		must.Near(t, mean[k], wantMean[k/smallK], 1e-8, "input %d: the mean", k/smallK)
		must.Near(t, variance[k], wantVariance[k/smallK], 1e-8, "input %d: the variance", k/smallK)
	}
	bound := must.Get(model.CallOnce(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
		return p.bound(s, head, x)
	}, tensors.FromFlatDataAndDimensions(p.x, smallN, smallD)))(t)
	must.Near(t, bound.Value().(float64), smallK*evidence, 1e-7, "the bound, %d times the log evidence", smallK)
}

// The draws of training have the moments of q(f), and evaluation gives the
// logarithm of their mean softmax.
func TestDUESamples(t *testing.T) {
	const n, copies, classes = 3, 125, 2 // copies of each of n inputs, all of them with draws of their own
	const draws, samples = 32, 32 * copies
	rng := rand.New(rand.NewPCG(6, 6))
	x := slices.Repeat(points(rng, n, 2), copies)
	head := told{baselines.DUE{Start: []baselines.Inducing{{Points: points(rng, 4, 2), LengthScale: 1.5}}}, params.Facts{Classes: true}}
	store := newStore()
	input := tensors.FromFlatDataAndDimensions(x, copies*n, 2)
	headMoments(t, store, head, input, classes)
	setHead(t, store, "variational_mean", points(rng, classes*4, 1))
	setHead(t, store, "variational_factor", points(rng, classes*4, 4))
	mean, variance := headMoments(t, store, head, input, classes)
	out := must.Get(model.CallOnceN(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) []*graph.Node {
		stochastic.SetNoiseSource(x.Graph(), stochastic.NewHostSampler(1).NewBuffers())
		predicted := head.Dense(s.In("head"), x, classes)
		s.Store().SetTraining(x.Graph(), true)
		return []*graph.Node{predicted, head.Dense(s.At("head"), x, classes)}
	}, input))(t)
	f := tensors.MustCopyFlatData[float64](out[1])
	if len(f) != samples*n*classes {
		t.Fatalf("%d draws, want %d of each input", len(f), draws)
	}
	probabilities := make([]float64, n) // of the first class
	for m := range samples {
		for i := range n {
			a, b := f[(m*n+i)*classes], f[(m*n+i)*classes+1]
			probabilities[i] += 1 / (1 + math.Exp(b-a)) / samples
		}
	}
	for i := range n * classes {
		var values []float64
		for m := range samples {
			values = append(values, f[m*n*classes+i])
		}
		fixtures.CheckMoments(t, fmt.Sprintf("f_%d", i), values, mean[i], variance[i])
	}
	logs, found := tensors.MustCopyFlatData[float64](out[0]), make([]float64, n)
	for k := range n * copies {
		must.Near(t, math.Exp(logs[2*k])+math.Exp(logs[2*k+1]), 1, 1e-12, "the sum of probabilities")
		found[k%n] += math.Exp(logs[2*k]) / copies
	}
	for i, got := range found {
		// Two independent estimates with standard errors of at most 0.5/sqrt(samples).
		must.Near(t, got, probabilities[i], 4*math.Sqrt(0.5/samples), "a probability in evaluation, by the draws of training")
	}
}

// The kernel matrix of nearly equal inducing points with almost no jitter has no factor, and the end of the training says so. Its 31 pivots
// after the first are rounding errors. A factor would need all of them positive.
func TestDUEWithoutFactor(t *testing.T) {
	near, far := points(rand.New(rand.NewPCG(8, 8)), 32, 2), make([]float64, 64)
	for i, v := range near {
		near[i], far[i] = 1e-8*v, 1e3*v
	}
	head := baselines.DUE{Start: []baselines.Inducing{{Points: near, LengthScale: 1}}, Jitter: 1e-300}
	x := []float64{1, 2, 3, 4}
	must.Err(t, epoch(t, newStore(), head, 2, x, 2, 2, 2)(), linalg.ErrNotPositiveDefinite)
	// Of replicas, those that have a factor are fine.
	fine := baselines.Inducing{Points: far, LengthScale: 1}
	replicas := baselines.DUE{Start: []baselines.Inducing{fine, head.Start[0], fine, head.Start[0]}, Jitter: head.Jitter}
	store := model.NewStore()
	params.SetSeeds(store, 1, 2, 3, 4)
	var failed baselines.FailedReplicas
	if err := show(t, store, replicas, 2, 1, tensors.FromFlatDataAndDimensions(slices.Repeat(x, 4), 4, 2, 2))(); !errors.As(err, &failed) || len(failed) != 2 || failed[1] == nil || failed[3] == nil {
		t.Errorf("two of four replicas: %v", err)
	}
	head.Jitter = 1e-4
	must.Do(t, epoch(t, newStore(), head, 2, x, 2, 2, 2)())
	// A model that has failed can be trained again.
	architecture := nets.MLP{Widths: []int{2}}
	m := regression(t, must.Get(architecture.Over(head))(t))
	must.Do(t, adam(1).Fit(t.Context(), m, sine(4)))
	must.Do(t, params.SetStatistic(m.Store, nets.HeadScope+"/training_sums/failed_steps", tensors.FromFlatDataAndDimensions([]float64{1}, 1, 1)))
	must.Do(t, adam(1).Fit(t.Context(), m, sine(4)))
}

func TestDUERejectsBadStarts(t *testing.T) {
	for says, start := range map[string][]baselines.Inducing{
		"has 0 inducing points":          nil,
		"3 coordinates":                  {{Points: []float64{1, 2, 3}, LengthScale: 1}},
		"the length scale":               {{Points: []float64{1, 2}}},
		"it must be positive and finite": {{Points: []float64{1, 2}, LengthScale: math.Inf(1)}},
	} {
		t.Run(says, func(t *testing.T) {
			must.GetErr(model.CallOnce(fixtures.Backend(t), newStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
				return baselines.DUE{Start: start}.Head(s, x, 3)
			}, [][]float64{{1, 2}}))(t, says)
		})
	}
}

// The whole of a regression by DUE: start, training, draws and moments.
func TestDUERegression(t *testing.T) {
	const n = 64
	architecture, due := nets.MLP{Widths: []int{8, 8}}, baselines.DUE{Hidden: baselines.SpectralNormed{Bound: 0.95}, Inducing: 10}
	fitted := regression(t, must.Get(architecture.Over(due))(t))
	must.GetErr(predict.Sample(t.Context(), fitted, sine(n).Inputs, predict.Options{}))(t, "no inducing points yet")
	must.Do(t, adam(200).Fit(t.Context(), fitted, sine(n)))
	checkSine(t, fitted, 0.15, 3)
	// Each replica starts from the points that it has as a single model.
	still := adam(1)
	still.Groups[0].Except = []string{"inducing_points"} // which stay where they start
	points := func(m *nets.Model, err error) []float64 {
		must.Do(t, err)
		must.Do(t, still.Fit(t.Context(), m, slices.Repeat([]train.Dataset{sine(n)}, m.Count())...))
		values, _ := must.Get2(params.Values(m.Store, nets.HeadScope+"/inducing_points"))(t)
		return values
	}
	own := points(nets.New(fixtures.Backend(t), fitted.Network, fitted.Likelihood, 3))
	all := points(nets.NewReplicas(fixtures.Backend(t), fitted.Network, fitted.Likelihood, 4, 3))
	if !floats.EqualApprox(all[len(own):], own, 1e-4) || floats.EqualApprox(all[:len(own)], own, 1e-2) {
		t.Errorf("inducing points %v of replicas, and %v of the second alone", all, own)
	}
	due.Inducing = n + 1
	must.Err(t, adam(1).Fit(t.Context(), regression(t, must.Get(architecture.Over(due))(t)), sine(n)), "65 centres of 64 points")
}
