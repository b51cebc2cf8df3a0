package baselines_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
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

// told is a family of the last layer alone, whose graphs have facts.
type told struct {
	nets.Process
	params.Facts
}

func (l told) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	facts := params.FactsOf(x.Graph())
	l.Facts.Replicas, l.Facts.Coherent = facts.Replicas, facts.Coherent
	*facts = l.Facts
	return l.Head(s, x, units)
}

// show trains a head on batches, [replicas..., rows, features], of n examples, and returns what finishes it.
func show(t *testing.T, store *model.Store, head nets.Process, n, units int, batches ...*tensors.Tensor) (finish func(...float64) error) {
	t.Helper()
	exec := must.Get(model.NewExec(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
		s.Store().SetTraining(x.Graph(), true)
		params.FactsOf(x.Graph()).Replicas = x.Shape().Dimensions[:x.Rank()-2]
		defer func() { finish = params.FactsOf(x.Graph()).Finish }()
		return told{head, params.Facts{Examples: n}}.Dense(s.In("head"), x, units)
	}))(t)
	for _, x := range batches {
		must.Get(exec.Call(x))(t)
	}
	return finish
}

// epoch shows a head the rows of x in batches of the given sizes.
func epoch(t *testing.T, store *model.Store, head nets.Process, n int, x []float64, d, units int, sizes ...int) (finish func(...float64) error) {
	t.Helper()
	var batches []*tensors.Tensor
	for _, rows := range sizes {
		batches, x = append(batches, tensors.FromFlatDataAndDimensions(x[:rows*d], rows, d)), x[rows*d:]
	}
	return show(t, store, head, n, units, batches...)
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

// withPosterior is the last layer of an SNGP with a covariance, which its evaluation needs.
type withPosterior struct{ told }

func (l withPosterior) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	params.Statistic(s, x, "covariance_root", params.Normal(0, 0.3), 6, 6)
	return l.told.Dense(s, x, units)
}

func TestSNGP(t *testing.T) {
	check := func(name string, facts params.Facts, checks layertest.Checks) {
		t.Run(name, func(t *testing.T) { checks.Dense(t, withPosterior{told{baselines.SNGP{RandomFeatures: 6}, facts}}) })
	}
	check("images", params.Facts{Classes: true, Images: true, Examples: 1}, layertest.Checks{Deterministic: true})
	check("regression", params.Facts{Examples: 1}, layertest.Checks{})
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
			head := baselines.SNGP{RandomFeatures: features, LengthScale: lengthScale, Orthogonal: orthogonal}
			store := newStore()
			for range 2 { // every epoch begins anew
				epoch(t, store, head, n, x, d, 1, 12, 12, 6)
			}
			must.Do(t, epoch(t, store, head, n, x, d, 1, 12, 12, 6)(noise))
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
				must.Near(t, got[i], prior.At(i, i)-want.At(i, i), 1e-10, "the variance at input %d", i)
				must.Near(t, mean[i], line.At(i, 0)+variable(t, store, "bias").At(0, 0), 1e-12, "the mean at input %d", i)
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
		head := baselines.SNGP{RandomFeatures: features, Orthogonal: orthogonal}
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
			epoch(t, store, head, n, x, d, 1, n)
			phi := fourier(t, store, x, n, lengthScale, math.Sqrt(features/2.))
			for k, p := range pairs {
				estimates[k] = append(estimates[k], mat.Dot(phi.RowView(p.i), phi.RowView(p.j)))
			}
		}
		for k, values := range estimates {
			i, j := pairs[k].i, pairs[k].j
			want := math.Exp(-math.Pow(floats.Distance(x[i*d:(i+1)*d], x[j*d:(j+1)*d], 2)/lengthScale, 2) / 2)
			mean, std := stat.MeanStdDev(values, nil)
			must.Z(t, (mean-want)/(std/math.Sqrt(stores)), "orthogonal=%t: the kernel of inputs %d and %d is %.4f on the mean, want %.4f", orthogonal, i, j, mean, want)
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
	head := baselines.SNGP{RandomFeatures: 8}
	store := newStore()
	finish := epoch(t, store, head, n, x, d, classes, n)
	input := tensors.FromFlatDataAndDimensions(x, n, d)
	dense := func(s *model.Scope, x *graph.Node) *graph.Node {
		return told{head, params.Facts{Classes: true}}.Dense(s.In("head"), x, classes)
	}
	must.GetErr(model.CallOnce(fixtures.Backend(t), store, dense, input))(t, "it is there once train.Trainer has trained")
	must.Do(t, finish())
	mean, variance := headMoments(t, store, head, input, classes)
	logits := must.Get(model.CallOnce(fixtures.Backend(t), store, dense, input))(t)
	for i, got := range tensors.MustCopyFlatData[float64](logits) {
		must.Near(t, got, mean[i]/math.Sqrt(1+25*variance[i/classes]), 1e-12, "logit %d", i)
	}
}

func TestSNGPErrors(t *testing.T) {
	const n, d = 6, 2
	x := points(rand.New(rand.NewPCG(2, 2)), n, d)
	head := baselines.SNGP{RandomFeatures: 4}
	store := newStore()
	must.Err(t, epoch(t, store, head, n, x, d, 1, 4)(1), "4 of 6 examples")
	// Stopped after two thirds of an epoch, whole ones do not help.
	must.Err(t, epoch(t, store, head, n, x, d, 1, n)(1), "train a new model for whole epochs")
	finish := epoch(t, newStore(), head, n, x, d, 1, n)
	must.Do(t, finish(1))
	must.Err(t, finish(1, 1), "2 noise variances for 1 replicas")
	for _, variance := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		must.Err(t, finish(variance), "it must be positive")
	}
	must.GetErr(model.CallOnce(fixtures.Backend(t), newStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		s.Store().SetTraining(x.Graph(), true)
		return baselines.SNGP{}.Head(s, x, 1)
	}, [][]float64{{1, 2}}))(t, "needs the number of training examples")
}

// A replica without a factor is named, and the others have their covariance.
func TestSNGPFailsByReplica(t *testing.T) {
	store := model.NewStore()
	params.SetSeeds(store, 1, 2, 3)
	finish := show(t, store, baselines.SNGP{RandomFeatures: 2}, 2, 1, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(3, 2, 1)))
	must.Do(t, store.GetVariable("/head/training_sums/precision_sum").SetValue(tensors.FromFlatDataAndDimensions([]float64{3, 0, 0, 8, -5, 0, 0, 1, 0, 0, 0, 3}, 3, 2, 2)))
	err := finish(1, 1, 1)
	var failed baselines.FailedReplicas
	if !errors.As(err, &failed) || len(failed) != 1 || !errors.Is(failed[1], linalg.ErrNotPositiveDefinite) || !errors.Is(err, linalg.ErrNotPositiveDefinite) ||
		!strings.HasPrefix(err.Error(), "replicas map[1:SNGP: ") {
		t.Errorf("error %v", err)
	}
	want := []float64{0.5, 0, 0, 1. / 3, 0, 0, 0, 0, 1, 0, 0, 0.5}
	if got := variableAt(t, store, "/head/covariance_root"); !floats.EqualApprox(got, want, 1e-15) {
		t.Errorf("roots %v, want %v", got, want)
	}
	// So is one that has diverged.
	failed = nil
	if err := finish(math.NaN(), 1, 1); !errors.As(err, &failed) || len(failed) != 2 || !strings.Contains(err.Error(), "[0:SNGP: the noise variance is NaN") {
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
	fitted := regression(t, must.Get(nets.MLP{Widths: []int{16, 16}}.Over(baselines.SNGP{RandomFeatures: 64}))(t))
	kept := must.Get(predict.NewPredictor(fitted, predict.Options{Samples: 1}))(t)
	for range 2 { // a stopped training leaves no process, and a further one starts its sums and finishes the process anew
		ctx, cancel := context.WithCancel(t.Context())
		stopped := adam(1)
		stopped.Progress = func(train.Progress) { cancel() }
		must.Err(t, stopped.Fit(ctx, fitted, sine(n)), context.Canceled)
		must.GetErr(kept.Predict(t.Context(), sine(n).Inputs))(t, "no covariance")
		must.Do(t, adam(1).Fit(t.Context(), fitted, sine(n-10)))
		must.Get(kept.Predict(t.Context(), sine(n).Inputs))(t)
	}
	must.Do(t, adam(148).Fit(t.Context(), fitted, sine(n)))
	best := adam(1)
	best.KeepBest.Score = func(context.Context, *nets.Model) ([]float64, error) { return []float64{0}, nil }
	must.Err(t, best.Fit(t.Context(), regression(t, fitted.Network), sine(n)), "leave KeepBest out")
	resumed := adam(1) // So does one that has no step left.
	resumed.Checkpoints.Folder = t.TempDir()
	m := regression(t, fitted.Network)
	for _, m := range []*nets.Model{m, m, regression(t, fitted.Network)} {
		must.Do(t, resumed.Fit(t.Context(), m, sine(n)))
		must.Get(predict.Marginals(t.Context(), m, sine(n).Inputs))(t)
	}
	noise := must.Get(fitted.NoiseVariances())(t)
	if want := math.Exp(variableAt(t, fitted.Store, "/model/observation_log_variance")[0]); len(noise) != 1 || noise[0] != want {
		t.Errorf("noise variances %v, want %g", noise, want)
	}
	checkSine(t, fitted, 0.1, 5)
	found, err := predict.Sample(t.Context(), fitted.With(nets.Headless{Network: fitted.Network}), nets.Rows([]float64{-0.5, 0, 0.5, 10}, 1), predict.Options{Samples: 1})
	if err != nil || found.Width != 16 || len(found.Outputs[0]) != 4*16 {
		t.Errorf("features %+v, error %v", found, err)
	}
}

// Zero settings have the defaults of tables, also with classes, or of images.
func TestDefaultsOfSNGP(t *testing.T) {
	bytes := make([]byte, 6*16)
	for i := range bytes {
		bytes[i] = byte(i * i)
	}
	table, x := baselines.SNGP{Hidden: baselines.SpectralNormed{Bound: 0.95}, RandomFeatures: 256, LengthScale: 2, FeatureScale: math.Sqrt(128)}, nets.Rows(points(rand.New(rand.NewPCG(9, 9)), 5, 4), 4)
	perceptron := func(l nets.ConvLayers) (nets.Network, error) { return nets.MLP{Widths: []int{3}}.Over(l) }
	for name, c := range map[string]struct {
		settings   baselines.SNGP
		likelihood likelihood.Likelihood
		data       train.Dataset
		of         func(l nets.ConvLayers) (nets.Network, error)
	}{
		"regression": {table, likelihood.Gaussian{}, train.Dataset{Inputs: x, Targets: []float64{1, 0, 2, -1, 1}}, perceptron},
		"classes":    {table, likelihood.Categorical{Classes: 2}, train.Dataset{Inputs: x, Labels: []int{1, 0, 1, 0, 1}}, perceptron},
		"images": {
			baselines.SNGP{Hidden: baselines.SpectralNormed{Bound: 3}, RandomFeatures: 1024, LengthScale: 4, FeatureScale: 2, Orthogonal: true},
			likelihood.Categorical{Classes: 2}, train.Dataset{Labels: []int{0, 1, 0, 1, 1, 0}, Inputs: nets.Pixels{
				Bytes: bytes, Height: 4, Width: 4, Standardization: nets.Standardization{Mean: []float64{0.5}, Std: []float64{0.2}},
			}},
			func(l nets.ConvLayers) (nets.Network, error) {
				return nets.ResNet{Blocks: []int{1}, Widths: []int{2}, Stem: 2}.Over(l)
			},
		},
	} {
		var found [2]*predict.Prediction
		for i, layers := range []baselines.SNGP{c.settings, {}} {
			m := must.Get(nets.New(fixtures.Backend(t), must.Get(c.of(layers))(t), c.likelihood, 1))(t)
			must.Do(t, adam(2).Fit(t.Context(), m, c.data))
			found[i] = must.Get(predict.Sample(t.Context(), m, c.data.Inputs, predict.Options{Samples: 1}))(t)
		}
		if !reflect.DeepEqual(found[0], found[1]) {
			t.Errorf("%s: with defaults %+v, want %+v", name, found[1], found[0])
		}
	}
}

func variableAt(t *testing.T, store *model.Store, path string) []float64 {
	t.Helper()
	return tensors.MustCopyFlatData[float64](store.GetVariable(path).MustValue())
}
