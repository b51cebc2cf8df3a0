package baselines_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
)

// points are n rows of d draws from N(0, 1).
func points(rng *rand.Rand, n, d int) []float64 {
	x := make([]float64, n*d)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

// headMoments are those of a head on inputs as they are, [n, units] and [n, ...].
func headMoments(t *testing.T, store *model.Store, head interface {
	Moments(s *model.Scope, x *graph.Node, outputs int) (mean, variance *graph.Node)
}, x *tensors.Tensor, units int) (mean, variance []float64) {
	t.Helper()
	out := must.Get(model.CallOnceN(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) []*graph.Node {
		mean, variance := head.Moments(s.In("head"), x, units)
		return []*graph.Node{mean, variance}
	}, x))(t)
	return tensors.MustCopyFlatData[float64](out[0]), tensors.MustCopyFlatData[float64](out[1])
}

// epoch shows a head the rows of x in batches of the given sizes, in training.
func epoch(t *testing.T, store *model.Store, head nets.Layers, x []float64, d, units int, sizes ...int) {
	t.Helper()
	exec := must.Get(model.NewExec(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
		s.Store().SetTraining(x.Graph(), true)
		return head.Dense(s.In("head"), x, units)
	}))(t)
	for _, n := range sizes {
		must.Get(exec.Call(tensors.FromFlatDataAndDimensions(x[:n*d], n, d)))(t)
		x = x[n*d:]
	}
}

func newStore() *model.Store {
	store := model.NewStore()
	params.SetSeeds(store, 7)
	return store
}

// variable is the value of a head's variable as a matrix.
func variable(t *testing.T, store *model.Store, name string) *mat.Dense {
	t.Helper()
	v := store.GetVariable("/head/" + name)
	if v == nil {
		t.Fatalf("the head has no variable %s", name)
	}
	dims := v.Shape().Dimensions
	return mat.NewDense(dims[0], dims[1], tensors.MustCopyFlatData[float64](v.MustValue()))
}

// fourier is phi of a head with plain inputs, from its frequencies and phases.
func fourier(t *testing.T, store *model.Store, x []float64, n int, lengthScale, scale float64) *mat.Dense {
	t.Helper()
	w, b := variable(t, store, "frequencies"), variable(t, store, "phases")
	var phi mat.Dense
	phi.Mul(mat.NewDense(n, len(x)/n, x), w)
	phi.Apply(func(_, j int, v float64) float64 { return math.Cos(v/lengthScale+b.At(0, j)) / scale }, &phi)
	return &phi
}

// withPosterior is an SNGP with a covariance, which its evaluation needs.
type withPosterior struct{ baselines.SNGP }

func (l withPosterior) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	params.Statistic(s, x, "covariance_root", params.Normal(0, 0.3), l.RandomFeatures, l.RandomFeatures)
	return l.SNGP.Dense(s, x, units)
}

// regressionSNGP is the head of a regression on n examples, with a prior variance of 1.
func regressionSNGP(n, features int) baselines.SNGP {
	return baselines.SNGP{Examples: n, RandomFeatures: features, Plain: true, FeatureScale: math.Sqrt(float64(features) / 2), Likelihood: baselines.Gaussian}
}

func TestSNGP(t *testing.T) {
	for _, c := range []struct {
		name   string
		head   baselines.SNGP
		checks layertest.Checks
	}{
		{"classification", baselines.SNGP{RandomFeatures: 6}, layertest.Checks{Deterministic: true}},
		{"regression", regressionSNGP(1, 6), layertest.Checks{}},
	} {
		t.Run(c.name, func(t *testing.T) { c.checks.Dense(t, withPosterior{c.head}) })
	}
}

// With inputs as they are, the variance is that of Bayesian linear regression on
// the random features, in its dual form, a Gaussian process with kernel
// k(x, z) = phi(x) phi(z)^T: k(x, x) - k(x, X) (k(X, X) + sigma^2 I)^-1 k(X, x).
func TestSNGPVarianceIsThatOfRidgeRegression(t *testing.T) {
	const n, d, features, noise, lengthScale = 30, 3, 40, 0.3, 1.7
	rng := rand.New(rand.NewPCG(1, 2))
	x, test := points(rng, n, d), points(rng, 8, d)
	for _, orthogonal := range []bool{false, true} {
		t.Run(fmt.Sprintf("Orthogonal=%t", orthogonal), func(t *testing.T) {
			head := regressionSNGP(n, features)
			head.LengthScale, head.Orthogonal = lengthScale, orthogonal
			store := newStore()
			for range 3 { // every epoch begins anew
				epoch(t, store, head, x, d, 1, 12, 12, 6)
			}
			must.Do(t, head.Posterior(store, "/head", noise))
			mean, got := headMoments(t, store, head, tensors.FromFlatDataAndDimensions(test, 8, d), 1)

			scale := math.Sqrt(features / 2.)
			phi, at := fourier(t, store, x, n, lengthScale, scale), fourier(t, store, test, 8, lengthScale, scale)
			var kernel, cross, prior, solved, want, line mat.Dense
			kernel.Mul(phi, phi.T())
			for i := range n {
				kernel.Set(i, i, kernel.At(i, i)+noise)
			}
			cross.Mul(phi, at.T())
			prior.Mul(at, at.T())
			must.Do(t, solved.Solve(&kernel, &cross))
			want.Mul(cross.T(), &solved)
			line.Mul(at, variable(t, store, "weights"))
			for i := range 8 {
				if w := prior.At(i, i) - want.At(i, i); math.Abs(got[i]-w) > 1e-10 {
					t.Errorf("variance %g at input %d, want %g", got[i], i, w)
				}
				if w := line.At(i, 0) + variable(t, store, "bias").At(0, 0); math.Abs(mean[i]-w) > 1e-12 {
					t.Errorf("mean %g at input %d, want %g", mean[i], i, w)
				}
			}
		})
	}
}

// The products of random features are unbiased estimates of the radial kernel
// exp(-|x - z|^2 / (2 l^2)); orthogonal ones are closer.
func TestRandomFeaturesApproximateTheKernel(t *testing.T) {
	const n, d, features, lengthScale, stores = 12, 8, 256, 2.5, 40
	x := points(rand.New(rand.NewPCG(5, 6)), n, d)
	squared := map[bool]float64{} // error, mean over stores and pairs
	for _, orthogonal := range []bool{false, true} {
		head := regressionSNGP(n, features)
		head.Orthogonal = orthogonal
		type pair struct{ i, j int }
		var pairs []pair
		for i := range n {
			for j := range i {
				pairs = append(pairs, pair{i, j})
			}
		}
		estimates := make([][]float64, len(pairs))
		for seed := range uint64(stores) {
			store := model.NewStore()
			params.SetSeeds(store, seed)
			epoch(t, store, head, x, d, 1, n)
			phi := fourier(t, store, x, n, lengthScale, math.Sqrt(features/2.))
			for k, p := range pairs {
				estimates[k] = append(estimates[k], mat.Dot(phi.RowView(p.i), phi.RowView(p.j)))
			}
		}
		for k, values := range estimates {
			i, j := pairs[k].i, pairs[k].j
			want := math.Exp(-math.Pow(floats.Distance(x[i*d:(i+1)*d], x[j*d:(j+1)*d], 2)/lengthScale, 2) / 2)
			mean, std := stat.MeanStdDev(values, nil)
			if z := (mean - want) / (std / math.Sqrt(stores)); math.Abs(z) > 4 {
				t.Errorf("orthogonal=%t: the kernel of inputs %d and %d is %.4f on the mean, want %.4f (z = %.1f)", orthogonal, i, j, mean, want, z)
			}
			squared[orthogonal] += (std*std + (mean-want)*(mean-want)) / float64(len(estimates))
		}
	}
	// The variance is at most 1/D for independent features.
	if squared[false] > 1./features || squared[true] > 0.9*squared[false] {
		t.Errorf("mean squared errors of the kernel: %.5f for independent features, %.5f for orthogonal ones", squared[false], squared[true])
	}
}

// The mean-field logits are the means over sqrt(1 + 25 variance).
func TestSNGPMeanField(t *testing.T) {
	const n, d, classes = 10, 2, 3
	x := points(rand.New(rand.NewPCG(7, 8)), n, d)
	head := baselines.SNGP{Examples: n, RandomFeatures: 8}
	store := newStore()
	epoch(t, store, head, x, d, classes, n)
	input := tensors.FromFlatDataAndDimensions(x, n, d)
	dense := func(s *model.Scope, x *graph.Node) *graph.Node { return head.Dense(s.In("head"), x, classes) }
	must.GetErr(model.CallOnce(fixtures.Backend(t), store, dense, input))(t, "call SNGP.Posterior")
	must.Do(t, head.Posterior(store, "/head"))
	mean, variance := headMoments(t, store, head, input, classes)
	logits := must.Get(model.CallOnce(fixtures.Backend(t), store, dense, input))(t)
	for i, got := range tensors.MustCopyFlatData[float64](logits) {
		if want := mean[i] / math.Sqrt(1+25*variance[i/classes]); math.Abs(got-want) > 1e-12 {
			t.Errorf("logit %d is %g, want %g", i, got, want)
		}
	}
}

func TestSNGPErrors(t *testing.T) {
	const n, d = 6, 2
	x := points(rand.New(rand.NewPCG(2, 2)), n, d)
	head := regressionSNGP(n, 4)
	store := newStore()
	must.Err(t, head.Posterior(store, "/head", 1), "has it been trained")
	epoch(t, store, head, x, d, 1, 4)
	must.Err(t, head.Posterior(store, "/head", 1), "4 of 6 examples")
	// Stopped after two thirds of an epoch, whole ones do not help.
	epoch(t, store, head, x, d, 1, n)
	must.Err(t, head.Posterior(store, "/head", 1), "train a new model for whole epochs")
	store = newStore()
	epoch(t, store, head, x, d, 1, n)
	must.Do(t, head.Posterior(store, "/head", 1))
	must.Err(t, head.Posterior(store, "/head"), "0 noise variances for 1 replicas")
	for _, variance := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if err := head.Posterior(store, "/head", variance); err == nil || !strings.Contains(err.Error(), "it must be positive") {
			t.Errorf("a noise variance of %g: %v", variance, err)
		}
	}
	_, err := model.CallOnce(fixtures.Backend(t), newStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		s.Store().SetTraining(x.Graph(), true)
		return baselines.SNGP{}.Dense(s, x, 1)
	}, [][]float64{{1, 2}})
	must.Err(t, err, "Examples is 0")
}

// A replica without a factor is named, and the others have their covariance.
func TestSNGPFailsByReplica(t *testing.T) {
	head := baselines.SNGP{Examples: 2, Likelihood: baselines.Gaussian}
	store := newStore()
	set := func(name string, values []float64, dims ...int) {
		store.VariableWithValue("/head/"+name, tensors.FromFlatDataAndDimensions(values, dims...))
	}
	set("precision_sum", []float64{3, 0, 0, 8, -5, 0, 0, 1, 0, 0, 0, 3}, 3, 2, 2)
	set("seen_examples", []float64{2, 2, 2}, 3, 1, 1)
	err := head.Posterior(store, "/head", 1, 1, 1)
	var failed baselines.FailedReplicas
	if !errors.As(err, &failed) || len(failed) != 1 || !errors.Is(failed[1], linalg.ErrNotPositiveDefinite) || !errors.Is(err, linalg.ErrNotPositiveDefinite) ||
		!strings.HasPrefix(err.Error(), "replicas map[1:SNGP.Posterior: ") {
		t.Errorf("error %v", err)
	}
	want := []float64{0.5, 0, 0, 1. / 3, 0, 0, 0, 0, 1, 0, 0, 0.5}
	if got := variableAt(t, store, "/head/covariance_root"); !floats.EqualApprox(got, want, 1e-15) {
		t.Errorf("roots %v, want %v", got, want)
	}
	// So is one that has diverged.
	failed = nil
	if err := head.Posterior(store, "/head", math.NaN(), 1, 1); !errors.As(err, &failed) || len(failed) != 2 || !strings.Contains(err.Error(), "[0:SNGP.Posterior: the noise variance is NaN") {
		t.Errorf("error %v", err)
	}
	copy(want, []float64{0, 0, 0, 0})
	if got := variableAt(t, store, "/head/covariance_root"); !floats.EqualApprox(got, want, 1e-15) {
		t.Errorf("roots %v, want %v", got, want)
	}
}

// A regression is more certain near its data than far away, and its draws have
// the moments that it states.
func TestSNGPRegression(t *testing.T) {
	const n = 64
	ctx := context.Background()
	set := sine(n)
	head := regressionSNGP(n, 64)
	fitted := regression(t, nets.ResidualMLP{Layers: baselines.SpectralNormed{Bound: 0.95}, Head: head, Width: 16, Depth: 2})
	must.Do(t, adam(150).Fit(ctx, fitted, set))
	noise := must.Get(fitted.NoiseVariances())(t)
	if want := math.Exp(variableAt(t, fitted.Store, "/model/observation_log_variance")[0]); len(noise) != 1 || noise[0] != want {
		t.Errorf("noise variances %v, want %g", noise, want)
	}
	must.Do(t, head.Posterior(fitted.Store, "/model/network/output", noise...))
	checkSine(t, fitted, 0.1, 5)
	headless := fitted.With(nets.ResidualMLP{Layers: baselines.SpectralNormed{Bound: 0.95}, Head: baselines.Headless{}, Width: 16, Depth: 2})
	found, err := predict.Sample(ctx, headless, nets.Rows([]float64{-0.5, 0, 0.5, 10}, 1), predict.Options{Samples: 1})
	if err != nil || found.Width != 16 || len(found.Outputs[0]) != 4*16 {
		t.Errorf("features %+v, error %v", found, err)
	}
}

func variableAt(t *testing.T, store *model.Store, path string) []float64 {
	t.Helper()
	return tensors.MustCopyFlatData[float64](store.GetVariable(path).MustValue())
}
