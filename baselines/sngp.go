package baselines

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// SNGP is the spectral-normalised neural Gaussian process (Liu et al. 2020). The hidden layers are SpectralNormed. The
// head is a Gaussian process with a radial kernel of length scale l, approximated by D random Fourier features with
// fixed W and b:
//
//	phi(h) = cos(h W / l + b) / FeatureScale,   W_ij ~ N(0, 1),   b_j ~ U(0, 2 pi),
//	f_k = phi(h) beta_k + c_k,                  p(beta_k) = N(0, I).
//
// beta is trained like any weight. Its posterior is Laplace's approximation, whose covariance is computed once after
// training:
//
//	var f(h) = phi(h) P^-1 phi(h)^T,   P = I + sum_i phi(h_i)^T phi(h_i) / sigma^2,
//
// where sigma = 1 for classes. (Their equation 9 has a covariance for each class, and weights of examples.) The sum is
// over the last epoch, during which weights and augmentation change. The covariance belongs to the model, and
// checkpoint.Export writes it too.
//
// SNGP is a nets.Process: give it to nets.MLP.Over or another Architecture, and train.Trainer does the rest. With images, a fixed
// random matrix projects h to 128 numbers, which are normalised for each example (mean 0, variance 1, then a trained scale and
// shift). With a LengthScale of 1 these are the settings of the DUE authors' code, which the paper used.
type SNGP struct {
	// Hidden makes the layers below. A Bound of 0 means 0.95 for dense layers, and 3 for convolutions.
	Hidden SpectralNormed
	// RandomFeatures is D; 0 means 256, and with images 1024.
	RandomFeatures int
	// LengthScale is l; 0 means the root of the number of inputs: distances of standardised inputs grow with it, and the
	// layers below stretch them little.
	LengthScale float64
	// FeatureScale divides the cosines. The prior variance of f is D / (2 FeatureScale^2). 0 means sqrt(D/2), for a prior variance
	// of 1, and with images 2.
	FeatureScale float64
	// Orthogonal draws W in blocks of orthogonal columns, with lengths distributed as for Gaussian columns. This
	// reduces the kernel's error. Images have it always.
	Orthogonal bool
}

const (
	projectedInputs = 128 // of the random features of images
	// meanField is the factor lambda of the mean-field approximation of the softmax's
	// mean, softmax(f / sqrt(1 + lambda var)), of the DUE authors' code.
	meanField = 25
)

// Dense is SpectralNormed.Dense.
func (l SNGP) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	l.Hidden.Bound = cmp.Or(l.Hidden.Bound, 0.95)
	return below(x.Graph(), l.Hidden).Dense(s, x, units)
}

// Conv is SpectralNormed.Conv.
func (l SNGP) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	return below(x.Graph(), l.Hidden).Conv(s, x, c)
}

// Norm is SpectralNormed.Norm.
func (l SNGP) Norm(s *model.Scope, x *graph.Node) *graph.Node { return l.Hidden.Norm(s, x) }

// filled replaces zeros by the usual settings. It panics on settings that cannot be, at the first training step.
func (l SNGP) filled(facts *params.Facts) SNGP {
	features, scale := 256, 0.
	if facts.Images {
		features, scale, l.Orthogonal = 1024, 2, true
	}
	l.RandomFeatures = number("baselines.SNGP.RandomFeatures", l.RandomFeatures, features)
	l.LengthScale = setting("baselines.SNGP.LengthScale", l.LengthScale, math.Sqrt(float64(max(facts.Inputs, 1))))
	l.FeatureScale = setting("baselines.SNGP.FeatureScale", l.FeatureScale, cmp.Or(scale, math.Sqrt(float64(l.RandomFeatures)/2)))
	return l
}

// Head is the Gaussian process, [..., n, width] -> [..., n, units]. In training it returns the mean of f and adds the batch to P.
// In evaluation it returns, for classes, the mean-field logits, and for a regression a draw of f for each input separately.
// It panics in evaluation of a model whose training was not finished, and on invalid settings.
func (l SNGP) Head(s *model.Scope, x *graph.Node, units int) *graph.Node {
	facts := params.FactsOf(x.Graph())
	l = l.filled(facts)
	if s.Store().IsTraining(x.Graph()) {
		examples := facts.Examples
		facts.Finish = func(noiseVariances ...float64) error {
			return posterior(s.Store(), s.Scope(), examples, noiseVariances...)
		}
		facts.OnlyFinished = true
		phi, mean := l.mean(s, x, units)
		accumulate(s, graph.StopGradient(phi), examples)
		return mean
	}
	mean, variance := l.Moments(s, x, units)
	if !facts.Classes {
		eps := stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(-2), units)
		return graph.Add(mean, graph.Mul(eps, graph.Sqrt(variance)))
	}
	scale := graph.Sqrt(graph.AddScalar(graph.MulScalar(variance, meanField), 1))
	return graph.Div(mean, scale)
}

// Moments returns the posterior mean of f, [..., n, units], and its variance, the same for all units, [..., n, 1]. It
// panics if the model's training was not finished.
func (l SNGP) Moments(s *model.Scope, x *graph.Node, units int) (mean, variance *graph.Node) {
	phi, mean := l.filled(params.FactsOf(x.Graph())).mean(s, x, units)
	d, sums := phi.Shape().Dim(-1), s.In(params.TrainingSums)
	for i, name := range []string{precisionSum, seenExamples} {
		if size := []int{d, 1}[i]; s.Store().GetVariable(model.JoinPath(sums.Scope(), name)) != nil {
			params.Statistic(sums, phi, name, nil, size, size) // used, for params.CheckLoaded
		}
	}
	if s.Store().GetVariable(model.JoinPath(s.Scope(), params.Covariance)) == nil && !params.HasNoValues(s.Store()) {
		panic(fmt.Errorf("SNGP has no covariance at %s: it is there once train.Trainer has trained the model to the end", s.Scope()))
	}
	// |phi R|^2 with P^-1 = R R^T, so that no rounding makes it negative.
	z := ops.Product(phi, params.Statistic(s, phi, params.Covariance, nil, d, d).NodeValue(x))
	return mean, ops.SumColumns(graph.Mul(z, z))
}

// mean returns phi, [..., n, D], and phi beta + c, [..., n, units].
func (l SNGP) mean(s *model.Scope, x *graph.Node, units int) (phi, mean *graph.Node) {
	phi = l.features(s, x)
	d := phi.Shape().Dim(-1)
	beta := params.New(s, x, "weights", params.Weight, params.Uniform(1/math.Sqrt(float64(d))), d, units)
	return phi, ops.Affine(phi, beta, params.Bias(s, phi, units))
}

// features is phi(x), [..., n, D].
func (l SNGP) features(s *model.Scope, x *graph.Node) *graph.Node {
	if params.FactsOf(x.Graph()).Images {
		width := x.Shape().Dim(-1)
		projection := params.Statistic(s, x, "projection", params.Normal(0, 0.05), width, projectedInputs)
		x = layerNorm(s, ops.Product(x, projection.NodeValue(x)))
	}
	in, d := x.Shape().Dim(-1), l.RandomFeatures
	draw := params.Normal(0, 1)
	if l.Orthogonal {
		draw = orthogonalBlocks
	}
	w := params.Statistic(s, x, "frequencies", draw, in, d).NodeValue(x)
	b := params.Statistic(s, x, "phases", params.Uniform(math.Pi), 1, d).NodeValue(x)
	angle := ops.Affine(x, graph.MulScalar(w, 1/l.LengthScale), b)
	return graph.MulScalar(graph.Cos(angle), 1/l.FeatureScale)
}

// orthogonalBlocks starts a [rows, columns] matrix with blocks of orthogonal
// columns of random directions, whose lengths are distributed as those of columns
// of independent draws from N(0, 1).
func orthogonalBlocks(rng *rand.Rand, dims []int, values []float64) {
	rows, columns := dims[0], dims[1]
	directions := make([]float64, len(values))
	params.Orthogonal(rng, []int{columns, rows}, directions)
	for j := range columns {
		squares := 0.0
		for range rows {
			x := rng.NormFloat64()
			squares += x * x
		}
		for i := range rows {
			values[i*columns+j] = math.Sqrt(squares) * directions[j*rows+i]
		}
	}
}

// layerNorm is (x - mean)/sqrt(variance + 1e-5) scale + shift by rows, [..., n, m].
func layerNorm(s *model.Scope, x *graph.Node) *graph.Node {
	m := x.Shape().Dim(-1)
	scale := params.New(s, x, "norm_scale", params.Weight, params.Constant(1), 1, m)
	shift := params.New(s, x, "norm_shift", params.Weight, params.Constant(0), 1, m)
	centred := graph.Sub(x, graph.MulScalar(ops.SumColumns(x), 1/float64(m)))
	variance := graph.MulScalar(ops.SumColumns(graph.Mul(centred, centred)), 1/float64(m))
	return graph.Add(graph.Mul(graph.Div(centred, graph.Sqrt(graph.AddScalar(variance, 1e-5))), scale), shift)
}

// The head's variables that posterior reads.
const (
	precisionSum = "precision_sum"
	seenExamples = "seen_examples"
)

// accumulate adds a batch to the sum in P, [..., D, D]. A sum that has all examples
// starts anew.
func accumulate(s *model.Scope, phi *graph.Node, examples int) {
	if examples < 1 {
		panic(fmt.Errorf("SNGP at %s needs the number of training examples, the same for each replica; train the model by train.Trainer, with sets of one size", s.Scope()))
	}
	sums := s.In(params.TrainingSums)
	n, d := phi.Shape().Dim(-2), phi.Shape().Dim(-1)
	batch := ops.TransposedProduct(phi, phi)
	sum := params.Statistic(sums, phi, precisionSum, params.Constant(0), d, d)
	seen := params.Statistic(sums, phi, seenExamples, params.Constant(0), 1, 1)
	before := seen.NodeValue(phi)
	// 1 while examples are missing, 0 when the sum is complete.
	keep := graph.MinScalar(graph.MaxScalar(graph.AddScalar(graph.Neg(before), float64(examples)), 0), 1)
	sum.SetNodeValue(graph.Add(graph.Mul(sum.NodeValue(phi), keep), batch))
	seen.SetNodeValue(graph.AddScalar(graph.Mul(before, keep), float64(n)))
}

// posterior computes the covariance from the sum of the last epoch, for the head in the given scope, in double precision on the
// host. noiseVariance is sigma^2 of each replica; there is none for classes.
//
// It is an error if the sum does not cover a whole epoch, as when training stopped within one and was not
// resumed. The error is FailedReplicas if a noise variance is not positive and finite, as after a divergence, or if P has no
// Cholesky factor (it wraps linalg.ErrNotPositiveDefinite). The covariance of these replicas is then zero.
func posterior(store *model.Store, head string, examples int, noiseVariance ...float64) error {
	sum, shape, err := params.Values(store, model.JoinPath(head, params.TrainingSums, precisionSum))
	seen, _, err2 := params.Values(store, model.JoinPath(head, params.TrainingSums, seenExamples))
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("SNGP: %w", err)
	}
	if n := int(seen[0]); n != examples {
		return fmt.Errorf("SNGP: the precision has %d of %d examples; train a new model for whole epochs", n, examples)
	}
	d := shape.Dim(-1)
	replicas := shape.Size() / (d * d)
	if len(noiseVariance) == 0 {
		noiseVariance = slices.Repeat([]float64{1}, replicas)
	}
	if len(noiseVariance) != replicas {
		return fmt.Errorf("SNGP: %d noise variances for %d replicas", len(noiseVariance), replicas)
	}
	root, failed := make([]float64, len(sum)), make(FailedReplicas)
	for r, variance := range noiseVariance {
		if !(variance > 0) || math.IsInf(variance, 1) {
			failed[r] = fmt.Errorf("SNGP: the noise variance is %g; it must be positive: has the training diverged?", variance)
			continue
		}
		block := sum[r*d*d : (r+1)*d*d]
		precision := mat.NewSymDense(d, nil)
		for i := range d {
			for j := i; j < d; j++ {
				precision.SetSym(i, j, block[i*d+j]/variance)
			}
			precision.SetSym(i, i, precision.At(i, i)+1)
		}
		inverse, err := inverseRoot(precision)
		if err != nil {
			failed[r] = fmt.Errorf("SNGP: the precision: %w", err)
			continue
		}
		mat.NewDense(d, d, root[r*d*d:(r+1)*d*d]).Copy(inverse)
	}
	if err := params.SetStatistic(store, model.JoinPath(head, params.Covariance), params.FromFloat64(shape, root)); err != nil {
		return fmt.Errorf("SNGP: %w", err)
	}
	return failed.asError()
}

// inverseRoot is R with P^-1 = R R^T: L^-T for P = L L^T.
func inverseRoot(p *mat.SymDense) (mat.Matrix, error) {
	var c mat.Cholesky
	if !c.Factorize(p) {
		return nil, linalg.ErrNotPositiveDefinite
	}
	var l, inverse mat.TriDense
	c.LTo(&l)
	var conditioned mat.Condition // only a warning: the inverse is there
	if err := inverse.InverseTri(&l); err != nil && !errors.As(err, &conditioned) {
		return nil, err
	}
	return inverse.T(), nil
}
