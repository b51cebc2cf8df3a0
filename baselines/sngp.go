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

// SNGP is the spectral-normalised neural Gaussian process (Liu et al. 2020): the
// hidden layers are SpectralNormed, and the head is a Gaussian process with a
// radial kernel of length scale l, approximated by D random Fourier features,
//
//	phi(h) = cos(h W / l + b) / FeatureScale,   W_ij ~ N(0, 1),   b_j ~ U(0, 2 pi),
//	f_k = phi(h) beta_k + c_k,                  p(beta_k) = N(0, I / Ridge),
//
// with W and b fixed. beta is trained as any weight; its posterior is Laplace's
// approximation, whose covariance is found once after training by Posterior:
//
//	var f(h) = phi(h) P^-1 phi(h)^T,   P = Ridge I + sum_i w_i phi(h_i)^T phi(h_i) / sigma^2,
//
// where w_i = 1 (sigma = 1 but for Gaussian), or with PerClass, p_ik (1 - p_ik)
// for each class (their equation 9). The sum is over the last epoch of the
// training, during which weights and augmentation change. Posterior makes the
// covariance a part of the model: one that is exported after it (checkpoint.Export)
// predicts as it does where it is loaded.
//
// SNGP is a family whose Dense is the head: for nets.ResNet, of whose layers the
// last alone is dense, and for nets.ResidualMLP as its Head. The zero value, with
// Orthogonal, has the settings of the DUE authors' code, with which the paper ran
// it; Examples must be set.
type SNGP struct {
	Hidden SpectralNormed
	// Examples is the number of training examples N, in every replica the same: the
	// padding of shorter replicas' batches would count as examples.
	Examples int
	// RandomFeatures is D; 0 means 1024.
	RandomFeatures int
	// Inputs is the number of inputs of the random features: h, [n, width], is
	// projected to it by a fixed random matrix, and normalised by example (mean 0,
	// variance 1, then a trained scale and shift). 0 means 128.
	Inputs int
	// Plain takes h as it is, without projection and normalisation.
	Plain bool
	// LengthScale is l; 0 means 1.
	LengthScale float64
	// FeatureScale divides the cosines; 0 means 2. With sqrt(D/2) the prior
	// variance of f is 1, with any other s it is D / (2 s^2), for a Ridge of 1.
	FeatureScale float64
	// Orthogonal draws W in blocks of orthogonal columns with the same lengths as
	// those of Gaussian ones, which makes the kernel's error smaller.
	Orthogonal bool
	// Ridge is the prior precision of beta; 0 means 1.
	Ridge float64
	// MeanField is the factor lambda of the mean-field approximation of the
	// softmax's mean, softmax(f / sqrt(1 + lambda var)); 0 means 25. The probit
	// approximation has pi/8.
	MeanField float64
	// Momentum, if not 0, replaces the sum over the last epoch by a moving
	// average, S = Momentum S + (1 - Momentum) N/n sum_batch. (Liu et al. have it
	// without N/n, so that their sum does not grow with the number of examples.)
	Momentum float64
	// PerClass keeps a covariance for each class, which takes 4 D^2 bytes each.
	PerClass   bool
	Likelihood Likelihood
}

// usualFeatures is the number of random features where none is given.
const usualFeatures = 1024

// RegressionSNGP is the head of a regression on N examples: D random features of
// h as it is, 0 for 1024, with a prior variance of 1.
func RegressionSNGP(n, features int) SNGP {
	features = number("the number of features of baselines.RegressionSNGP", features, usualFeatures)
	return SNGP{
		Examples: n, RandomFeatures: features, Plain: true,
		FeatureScale: math.Sqrt(float64(features) / 2), Likelihood: Gaussian,
	}
}

// Conv is that of SpectralNormed.
func (l SNGP) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	return l.Hidden.Conv(s, x, c)
}

// Norm is that of SpectralNormed.
func (l SNGP) Norm(s *model.Scope, x *graph.Node) *graph.Node { return l.Hidden.Norm(s, x) }

// filled has the usual settings in the place of zeros. It panics on settings that
// cannot be: at the first training step, and not when Posterior or a prediction
// needs them after the last.
func (l SNGP) filled() SNGP {
	l.RandomFeatures = number("baselines.SNGP.RandomFeatures", l.RandomFeatures, usualFeatures)
	l.Inputs = number("baselines.SNGP.Inputs", l.Inputs, 128)
	l.LengthScale = setting("baselines.SNGP.LengthScale", l.LengthScale, 1)
	l.FeatureScale = setting("baselines.SNGP.FeatureScale", l.FeatureScale, 2)
	l.Ridge = setting("baselines.SNGP.Ridge", l.Ridge, 1)
	l.MeanField = setting("baselines.SNGP.MeanField", l.MeanField, 25)
	if !(l.Momentum >= 0 && l.Momentum < 1) {
		panic(fmt.Errorf("baselines.SNGP.Momentum is %g; it must be at least 0 and less than 1", l.Momentum))
	}
	if l.PerClass && l.Likelihood != Softmax {
		panic(errors.New("baselines.SNGP.PerClass weighs examples by p (1 - p), which a regression has not; leave it out, or set Likelihood to Softmax"))
	}
	return l
}

// Dense is the head, [..., n, width] -> [..., n, units]. In training it returns
// the mean of f and adds the batch to P. In evaluation, for Softmax, it returns
// the mean-field logits; for Gaussian, a draw of f at each input by itself.
// It panics in evaluation before Posterior was called.
func (l SNGP) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	l = l.filled()
	if s.Store().IsTraining(x.Graph()) {
		phi, mean := l.mean(s, x, units)
		l.accumulate(s, graph.StopGradient(phi), graph.StopGradient(mean))
		return mean
	}
	mean, variance := l.Moments(s, x, units)
	if l.Likelihood == Gaussian {
		eps := stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(-2), units)
		return graph.Add(mean, graph.Mul(eps, graph.Sqrt(variance)))
	}
	scale := graph.Sqrt(graph.AddScalar(graph.MulScalar(variance, l.MeanField), 1))
	return graph.Div(mean, scale)
}

// Moments are the posterior mean of f, [..., n, units], and its variance,
// [..., n, 1], or with PerClass [..., n, units]. It panics before Posterior was called.
func (l SNGP) Moments(s *model.Scope, x *graph.Node, units int) (mean, variance *graph.Node) {
	phi, mean := l.filled().mean(s, x, units)
	claim(s, phi)
	v := s.Store().GetVariable(model.JoinPath(s.Scope(), covarianceRoot))
	if v == nil {
		panic(fmt.Errorf("SNGP has no covariance at %s: call SNGP.Posterior after training, and before the model is exported", s.Scope()))
	}
	// |phi R|^2 with P^-1 = R R^T, so that no rounding makes it negative.
	z := ops.Product(phi, params.Input(s.Store(), v, x))
	d := phi.Shape().Dim(-1)
	lead, n, covariances := x.Shape().Dimensions[:x.Rank()-2], x.Shape().Dim(-2), z.Shape().Dim(-1)/d
	z = graph.Reshape(z, slices.Concat(lead, []int{n * covariances, d})...)
	variance = ops.SumColumns(graph.Mul(z, z))
	return mean, graph.Reshape(variance, slices.Concat(lead, []int{n, covariances})...)
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
	if !l.Plain {
		width := x.Shape().Dim(-1)
		projection := params.Statistic(s, x, "projection", params.Normal(0, 0.05), width, l.Inputs)
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

// The head's variables that Posterior reads and makes.
const (
	precisionSum   = "precision_sum"
	seenExamples   = "seen_examples"
	covarianceRoot = "covariance_root"
)

// claim asks for those of the head's variables that are there. Training has no need
// of the covariance, nor evaluation of the sums, but a model that was loaded from a
// file has all of them, and each must be asked for to be known as its own.
func claim(s *model.Scope, phi *graph.Node) {
	d := phi.Shape().Dim(-1)
	for _, name := range []string{precisionSum, covarianceRoot, seenExamples} {
		v := s.Store().GetVariable(model.JoinPath(s.Scope(), name))
		switch {
		case v == nil:
		case name == seenExamples:
			params.Statistic(s, phi, name, nil, 1, 1)
		default:
			params.Statistic(s, phi, name, nil, d, v.Shape().Dim(-1))
		}
	}
}

// accumulate adds a batch to the sum in P, [..., D, C D] with the C covariances
// side by side. A sum that has all examples starts anew.
func (l SNGP) accumulate(s *model.Scope, phi, mean *graph.Node) {
	if l.Examples < 1 {
		panic(fmt.Errorf("SNGP.Examples is %d at %s; it must be the number of training examples", l.Examples, s.Scope()))
	}
	claim(s, phi)
	weighted := phi
	if l.PerClass {
		p := ops.Softmax(mean)
		weighted = columnsOfClasses(phi, graph.Mul(p, graph.OneMinus(p)))
	}
	n, d := phi.Shape().Dim(-2), phi.Shape().Dim(-1)
	batch := ops.TransposedProduct(phi, weighted)
	sum := params.Statistic(s, phi, precisionSum, params.Constant(0), d, weighted.Shape().Dim(-1))
	seen := params.Statistic(s, phi, seenExamples, params.Constant(0), 1, 1)
	before := seen.NodeValue(phi)
	if l.Momentum != 0 {
		batch = graph.MulScalar(batch, (1-l.Momentum)*float64(l.Examples)/float64(n))
		sum.SetNodeValue(graph.Add(graph.MulScalar(sum.NodeValue(phi), l.Momentum), batch))
		seen.SetNodeValue(graph.AddScalar(before, float64(n)))
		return
	}
	// 1 while examples are missing, 0 when the sum is complete.
	keep := graph.MinScalar(graph.MaxScalar(graph.AddScalar(graph.Neg(before), float64(l.Examples)), 0), 1)
	sum.SetNodeValue(graph.Add(graph.Mul(sum.NodeValue(phi), keep), batch))
	seen.SetNodeValue(graph.AddScalar(graph.Mul(before, keep), float64(n)))
}

// columnsOfClasses is phi times each class's weights, side by side: [..., n, D]
// and [..., n, K] -> [..., n, K D].
func columnsOfClasses(phi, weights *graph.Node) *graph.Node {
	lead, n, d, k := phi.Shape().Dimensions[:phi.Rank()-2], phi.Shape().Dim(-2), phi.Shape().Dim(-1), weights.Shape().Dim(-1)
	reshaped := func(x *graph.Node, dims ...int) *graph.Node { return graph.Reshape(x, slices.Concat(lead, dims)...) }
	return reshaped(graph.Mul(reshaped(phi, n, 1, d), reshaped(weights, n, k, 1)), n, k*d)
}

// Posterior computes the covariance from the sum that the training has left, for
// the head at the given scope, such as "/model/network/output", in double
// precision on the host. noiseVariance is sigma^2 of each replica
// (nets.Model.NoiseVariances), or none for Softmax. Training the model further makes the covariance stale.
//
// It returns an error where the sum is not that of one whole epoch (see Restart),
// and FailedReplicas, wrapping linalg.ErrNotPositiveDefinite, where a P has no
// Cholesky factor: its covariance, of the replica or of a class of it, is then zero.
func (l SNGP) Posterior(store *model.Store, head string, noiseVariance ...float64) error {
	sum, shape, err := params.Values(store, model.JoinPath(head, precisionSum))
	if err != nil {
		return fmt.Errorf("SNGP.Posterior: the head has no precision, has it been trained? %w", err)
	}
	seen, _, err := params.Values(store, model.JoinPath(head, seenExamples))
	if err != nil {
		return fmt.Errorf("SNGP.Posterior: %w", err)
	}
	if n := int(seen[0]); n == 0 || l.Momentum == 0 && n != l.Examples {
		return fmt.Errorf("SNGP.Posterior: the precision has %d of %d examples; train whole epochs of as many examples as SNGP.Examples says, after SNGP.Restart where a training was stopped within one", n, l.Examples)
	}
	d := shape.Dim(-2)
	covariances, replicas := shape.Dim(-1)/d, shape.Size()/(d*shape.Dim(-1))
	if len(noiseVariance) == 0 && l.Likelihood == Softmax {
		noiseVariance = slices.Repeat([]float64{1}, replicas)
	}
	if len(noiseVariance) != replicas {
		return fmt.Errorf("SNGP.Posterior: %d noise variances for %d replicas", len(noiseVariance), replicas)
	}
	root, failed := make([]float64, len(sum)), make(FailedReplicas)
	for r, variance := range noiseVariance {
		if !(variance > 0) || math.IsInf(variance, 1) {
			return fmt.Errorf("SNGP.Posterior: the noise variance of replica %d is %g; it must be positive", r, variance)
		}
		for c := range covariances {
			first := r*d*covariances*d + c*d // of a d x d block in rows of covariances*d
			precision := mat.NewSymDense(d, nil)
			for i := range d {
				for j := i; j < d; j++ {
					precision.SetSym(i, j, sum[first+i*covariances*d+j]/variance)
				}
				precision.SetSym(i, i, precision.At(i, i)+cmp.Or(l.Ridge, 1))
			}
			block, err := inverseRoot(precision)
			if err != nil {
				failed[r] = errors.Join(failed[r], fmt.Errorf("SNGP.Posterior: the precision of covariance %d: %w", c, err))
				continue
			}
			for i := range d {
				for j := range d {
					root[first+i*covariances*d+j] = block.At(i, j)
				}
			}
		}
	}
	if err := params.SetStatistic(store, model.JoinPath(head, covarianceRoot), params.FromFloat64(shape, root)); err != nil {
		return fmt.Errorf("SNGP.Posterior: %w", err)
	}
	return failed.asError()
}

// Restart lets the next training step begin a new sum, for the head at the given
// scope. It is needed where the steps so far are no whole epochs: a training was
// stopped and does not go on from a checkpoint, or the network was applied as in
// training to other examples.
func (l SNGP) Restart(store *model.Store, head string) error {
	path := model.JoinPath(head, seenExamples)
	seen, shape, err := params.Values(store, path)
	if err != nil {
		return fmt.Errorf("SNGP.Restart: the head has no precision, has it been trained? %w", err)
	}
	for i := range seen {
		seen[i] = float64(l.Examples)
	}
	if err := params.SetStatistic(store, path, params.FromFloat64(shape, seen)); err != nil {
		return fmt.Errorf("SNGP.Restart: %w", err)
	}
	return nil
}

// inverseRoot is R with P^-1 = R R^T: L^-T for P = L L^T.
func inverseRoot(p *mat.SymDense) (mat.Matrix, error) {
	var c mat.Cholesky
	if !c.Factorize(p) {
		d := p.SymmetricDim()
		return nil, linalg.Diagnose(mat.DenseCopyOf(p).RawMatrix().Data, d)
	}
	var l, inverse mat.TriDense
	c.LTo(&l)
	var conditioned mat.Condition // only a warning: the inverse is there
	if err := inverse.InverseTri(&l); err != nil && !errors.As(err, &conditioned) {
		return nil, err
	}
	return inverse.T(), nil
}
