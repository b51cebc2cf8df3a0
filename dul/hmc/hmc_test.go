package hmc

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
)

// mostSD is how many standard errors an estimate may be off: 1 in 16,000 is, and seeds are fixed.
const mostSD = 4

// checkMoments compares the mean and the variance of a number in chains with what they must be. Standard errors are by the
// effective sizes; the variance of a variance is that of a Gaussian.
func checkMoments(t *testing.T, what string, chains [][]float64, mean, variance float64) {
	t.Helper()
	var all []float64
	squares := make([][]float64, len(chains))
	for c, chain := range chains {
		all = append(all, chain...)
		for _, v := range chain {
			squares[c] = append(squares[c], (v-mean)*(v-mean))
		}
	}
	size, ofSquares := metrics.EffectiveSize(chains), metrics.EffectiveSize(squares)
	must.Near(t, stat.Mean(all, nil), mean, mostSD*math.Sqrt(variance/size), "%s: the mean (effective size %.0f)", what, size)
	found := stat.Moment(2, all, nil) + (stat.Mean(all, nil)-mean)*(stat.Mean(all, nil)-mean)
	must.Near(t, found/variance, 1, mostSD*math.Sqrt(2/ofSquares), "%s: the variance over %.5f (effective size %.0f)", what, variance, ofSquares)
	if rHat := metrics.SplitRHat(chains); rHat > 1.02 {
		t.Errorf("%s: R-hat is %.3f", what, rHat)
	}
}

// correlated is a Gaussian with deviations from 0.01 to 10 and correlated dimensions, N(mean, L L^T).
func correlated() (density Density, mean []float64, covariance *mat.SymDense) {
	const n = 5
	l, c := mat.NewDense(n, n, nil), mat.NewSymDense(n, nil)
	for i := range n {
		mean = append(mean, float64(i))
		for j := range i + 1 {
			l.Set(i, j, math.Pow(10, float64(i)*0.75-2)*[]float64{1, 0.8}[min(i-j, 1)])
		}
	}
	c.SymOuterK(1, l)
	var factor mat.Cholesky
	if !factor.Factorize(c) {
		panic("the covariance has no factor")
	}
	density = func(at [][]float64) (logs []float64, gradients [][]float64, err error) {
		for _, q := range at {
			d, solved := mat.NewVecDense(n, nil), new(mat.VecDense)
			for i := range q {
				d.SetVec(i, mean[i]-q[i])
			}
			if err := factor.SolveVecTo(solved, d); err != nil {
				return nil, nil, err
			}
			logs, gradients = append(logs, -mat.Dot(d, solved)/2), append(gradients, solved.RawVector().Data)
		}
		return logs, gradients, nil
	}
	return density, mean, c
}

// apart are starts of chains that are apart from each other.
func apart(chains, dims int) [][]float64 {
	rng, start := rand.New(rand.NewPCG(9, 9)), make([][]float64, chains)
	for c := range start {
		for range dims {
			start[c] = append(start[c], rng.NormFloat64())
		}
	}
	return start
}

func TestGaussian(t *testing.T) {
	density, mean, covariance := correlated()
	o := Options{Warmup: 600, Draws: 1500, Leapfrogs: 15, Seed: 4}
	found := must.Get(Sample(context.Background(), density, apart(4, len(mean)), o))(t)
	for i := range mean {
		chains := found.Number(func(draw []float64) float64 { return draw[i] })
		checkMoments(t, "dimension "+string(rune('0'+i)), chains, mean[i], covariance.At(i, i))
		if ratio := found.Scale[i] / math.Sqrt(covariance.At(i, i)); ratio < 0.7 || ratio > 1.4 {
			t.Errorf("dimension %d is scaled by %.2f times its standard deviation", i, ratio)
		}
	}
	sum := 0.0
	for i := range mean {
		for j := range mean {
			sum += covariance.At(i, j)
		}
	}
	checkMoments(t, "the sum of the dimensions", found.Number(func(draw []float64) float64 { return draw[0] + draw[1] + draw[2] + draw[3] + draw[4] }), 10, sum)
	must.Near(t, found.Acceptance, 0.8, 0.1, "the acceptance, for which the step size is tuned")
	if found.Divergences != 0 {
		t.Errorf("%d divergences of a Gaussian", found.Divergences)
	}
	if again := must.Get(Sample(context.Background(), density, apart(4, len(mean)), o))(t); !reflect.DeepEqual(again, found) {
		t.Error("the same seed gave other chains")
	}
}

// Chains that cannot leave their mode are seen to disagree.
func TestChainsStuckApart(t *testing.T) {
	two := func(at [][]float64) (logs []float64, gradients [][]float64, err error) { // modes at -20 and 20
		for _, q := range at {
			d := math.Abs(q[0]) - 20
			logs, gradients = append(logs, -d*d/2), append(gradients, []float64{-d * math.Copysign(1, q[0])})
		}
		return logs, gradients, nil
	}
	found := must.Get(Sample(context.Background(), two, [][]float64{{-19}, {19}, {-21}, {21}}, Options{Warmup: 200, Draws: 200, Leapfrogs: 5}))(t)
	if rHat := metrics.SplitRHat(found.Number(func(draw []float64) float64 { return draw[0] })); rHat < 1.5 {
		t.Errorf("R-hat of chains that are stuck in two modes is %.3f", rHat)
	}
}

// A density that falls off faster than any tuned step can follow has divergences, and they are counted.
func TestDivergences(t *testing.T) {
	count := 0
	cliff := func(at [][]float64) (logs []float64, gradients [][]float64, err error) {
		count++
		for _, q := range at {
			log := -q[0] * q[0] / 2
			if math.Abs(q[0]) > 0.5 && count > 400 { // after the warm-up
				log = math.Inf(-1)
			}
			logs, gradients = append(logs, log), append(gradients, []float64{-q[0]})
		}
		return logs, gradients, nil
	}
	found := must.Get(Sample(context.Background(), cliff, [][]float64{{0}}, Options{Warmup: 400, Draws: 200, Leapfrogs: 1}))(t)
	if found.Divergences < 50 {
		t.Errorf("%d of 200 transitions diverged; most end behind the cliff", found.Divergences)
	}
}

func TestSampleErrors(t *testing.T) {
	density, mean, _ := correlated()
	good := Options{Warmup: 40, Draws: 1, Leapfrogs: 1}
	failing := errors.New("no density")
	for _, c := range []struct {
		want    string
		density Density
		start   [][]float64
		change  func(o *Options)
	}{
		{"no chains", density, nil, nil},
		{"different lengths", density, [][]float64{{1}, {1, 2}}, nil},
		{"Warmup is 39", density, apart(1, len(mean)), func(o *Options) { o.Warmup = 39 }},
		{"Leapfrogs 0", density, apart(1, len(mean)), func(o *Options) { o.Leapfrogs = 0 }},
		{"at most 1000000000", density, apart(1, len(mean)), func(o *Options) { o.Draws = math.MaxInt }},
		{"at most 1000000000", density, apart(1, len(mean)), func(o *Options) { o.Leapfrogs = math.MaxInt }},
		{"no density", func([][]float64) ([]float64, [][]float64, error) { return nil, nil, failing }, apart(1, 2), nil},
		{"start of chain 0 is NaN", func([][]float64) ([]float64, [][]float64, error) { return []float64{math.NaN()}, [][]float64{{0}}, nil }, apart(1, 1), nil},
	} {
		o := good
		if c.change != nil {
			c.change(&o)
		}
		must.GetErr(Sample(context.Background(), c.density, c.start, o))(t, c.want)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	must.GetErr(Sample(ctx, density, apart(1, len(mean)), good))(t, context.Canceled)
}

// newReplicas is a model of a network with a prior, a replica for each chain.
func newReplicas(t *testing.T, l likelihood.Likelihood, chains int, widths ...int) *nets.Model {
	t.Helper()
	seeds := make([]uint64, chains)
	for i := range seeds {
		seeds[i] = uint64(i)
	}
	network := nets.MLP{Layers: Prior{Layers: baselines.Deterministic{}}, Widths: widths}
	return must.Get(nets.NewReplicas(backendtest.Open(t), network, l, seeds...))(t)
}

// linearData are examples with two correlated inputs.
func linearData(n int) train.Dataset {
	rng := rand.New(rand.NewPCG(2, 8))
	var x, y []float64
	for range n {
		a := rng.NormFloat64()
		b := 0.9*a + 0.3*rng.NormFloat64()
		x, y = append(x, a, b), append(y, 1+2*a-b+0.5*rng.NormFloat64())
	}
	return train.Dataset{Inputs: nets.Rows(x, 2), Targets: y}
}

// Linear regression with a Gaussian prior and known noise has a Gaussian posterior: with the rows (1, x) of Phi, the
// covariance is C = (Phi^T Phi / noise^2 + diag(1, 2, 2))^-1 and the mean C Phi^T y / noise^2.
func TestLinearRegression(t *testing.T) {
	const n, noise = 20, 0.5
	data := linearData(n)
	phi, y := mat.NewDense(n, 3, nil), mat.NewVecDense(n, data.Targets)
	for i := range n {
		phi.SetRow(i, append([]float64{1}, data.Inputs.(nets.Floats).Values[2*i:2*i+2]...))
	}
	var precision, covariance mat.Dense
	precision.Mul(phi.T(), phi)
	precision.Scale(1/(noise*noise), &precision)
	precision.Add(&precision, mat.NewDiagDense(3, []float64{1, 2, 2}))
	must.Do(t, covariance.Inverse(&precision))
	var mean mat.VecDense
	mean.MulVec(phi.T(), y)
	mean.MulVec(&covariance, &mean)
	mean.ScaleVec(1/(noise*noise), &mean)

	m := newReplicas(t, likelihood.KnownNoise{Std: noise}, 4)
	p := must.Get(NewPosterior(m, data))(t)
	defer p.Close()
	chains := must.Get(Sample(context.Background(), p.Density, must.Get(p.Start(m))(t), Options{Warmup: 300, Draws: 1000, Leapfrogs: 8, Seed: 1}))(t)
	for i, name := range []string{"bias", "first weight", "second weight"} { // in the order of the variables' paths
		checkMoments(t, name, chains.Number(func(draw []float64) float64 { return draw[i] }), mean.AtVec(i), covariance.At(i, i))
	}
	at := []float64{1, -2, 2} // an input unlike the data
	function := chains.Number(func(draw []float64) float64 { return draw[0]*at[0] + draw[1]*at[1] + draw[2]*at[2] })
	v := mat.NewVecDense(3, at)
	checkMoments(t, "function", function, mat.Dot(v, &mean), mat.Inner(v, &covariance, v))
}

// The gradient is that of the log density, in all parameters of a network, the noise variance among them; and a chain's
// density depends on its own parameters alone.
func TestPosteriorGradient(t *testing.T) {
	m := newReplicas(t, likelihood.Gaussian{}, 3, 4, 3)
	p := must.Get(NewPosterior(m, linearData(6)))(t)
	defer p.Close()
	at := must.Get(p.Start(m))(t)
	if want := 2*4 + 4 + 4*3 + 3 + 3 + 1 + 1; len(at) != 3 || len(at[0]) != want {
		t.Fatalf("%d chains of %d parameters, want 3 of %d", len(at), len(at[0]), want)
	}
	logs, gradients := must.Get2(p.Density(at))(t)
	for i := range at[1] {
		const h = 1e-5
		moved := func(by float64) []float64 {
			q := append([][]float64(nil), at...)
			q[1] = append([]float64(nil), at[1]...)
			q[1][i] += by
			found, _, err := p.Density(q)
			must.Do(t, err)
			if found[0] != logs[0] || found[2] != logs[2] {
				t.Fatalf("moving parameter %d of chain 1 changes the density of another chain", i)
			}
			return found
		}
		want := (moved(h)[1] - moved(-h)[1]) / (2 * h)
		must.Near(t, gradients[1][i], want, 1e-7*(1+math.Abs(want)), "the gradient by parameter %d", i)
	}
}

// Starts are taken from other models, such as trained ones of Float32; and models that cannot have a posterior are refused.
func TestPosteriorModels(t *testing.T) {
	data := linearData(6)
	m := newReplicas(t, likelihood.KnownNoise{Std: 1}, 2, 3)
	p := must.Get(NewPosterior(m, data))(t)
	defer p.Close()
	var trained []*nets.Model
	var want [][]float64
	for seed := range uint64(2) {
		other := must.Get(nets.New(m.Backend, m.Network, m.Likelihood, seed+5))(t)
		fit := train.Trainer{Settings: train.Settings{Epochs: 1, BatchSize: 6, Schedule: train.Cosine{Start: 1e-3}, Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}}}}
		must.Do(t, fit.Fit(context.Background(), other, data))
		trained = append(trained, other)
		want = append(want, must.Get(p.Start(other))(t)...)
	}
	start := must.Get(p.Start(trained...))(t)
	if !reflect.DeepEqual(start, want) || reflect.DeepEqual(start[0], start[1]) {
		t.Error("the starts from two models are not those of each of them")
	}
	must.Do(t, p.Set(start))
	if got := must.Get(p.Start(m))(t); !reflect.DeepEqual(got, start) {
		t.Error("the model's parameters are not those that were set")
	}
	wide := newReplicas(t, likelihood.KnownNoise{Std: 1}, 2, 4)
	must.Get(NewPosterior(wide, data))(t).Close()
	must.GetErr(p.Start(wide))(t, "same network")
	noisy := must.Get(nets.NewReplicas(m.Backend, nets.MLP{Layers: baselines.MCDropout{}}, m.Likelihood, 1, 2))(t)
	single := must.Get(nets.New(m.Backend, m.Network, m.Likelihood, 1))(t)
	must.GetErr(NewPosterior(noisy, data))(t, "noise of its own")
	must.GetErr(NewPosterior(single, data))(t, "NewReplicas")
	must.GetErr(NewPosterior(newReplicas(t, m.Likelihood, 1), train.Dataset{Inputs: data.Inputs}))(t, "0 targets")
	must.GetErr(NewPosterior(newReplicas(t, m.Likelihood, 1), train.Dataset{Inputs: data.Inputs, Targets: slices.Repeat([]float64{math.NaN()}, len(data.Targets))}))(t, "the target of example 0 is NaN")
}
