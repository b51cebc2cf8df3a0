// Package energy has models of a layer's inputs h, whose energy gives the variance of the layer's noise (section 2.1).
// For a zero-mean Gaussian, [LDL],
//
//	p_energy(h; omega) = exp(-E(h)) / Z,    E(h) = 1/2 h^T Sigma^-1 h >= 0
//
// Unlike in the paper, the variances in D, or of a feature, are at least 1e-4. Otherwise the variance of a feature that
// is always zero would go to 0.
package energy

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

// Terms are the results of an energy model for a batch of inputs.
type Terms struct {
	// Energy is E(h) >= 0, [..., batch, 1].
	Energy *graph.Node
	// LogLikelihood is log p_energy(h; omega), [..., batch, 1]; nil for a model that is not fitted.
	LogLikelihood *graph.Node
	// Root returns phi(h), [..., batch, K], an affine function of h with E(h) = |phi(h)|^2, from which coherent draws
	// are made. It is nil if the energy is no such sum of squares.
	Root func() *graph.Node
}

// logTwoPi is log(2 pi).
var logTwoPi = math.Log(2 * math.Pi)

// LDL is a zero-mean Gaussian whose precision is parametrized as
//
//	Sigma^-1 = L D L^T,   L unit lower triangular, D = diag(exp(-log variance)),
//
// which is positive definite for all parameters. Energy and log-determinant need neither an inverse nor a determinant
// (section 2.4, "Gaussian energy"):
//
//	E(h) = 1/2 || D^{1/2} L^T h ||^2,   log |Sigma| = sum_j log variance_j
//
// Both parameters start at zero: Sigma = I.
type LDL struct {
	// ReplicatePadding pads the masked convolution of Conv with copies of the border pixels instead of zeros, as the
	// authors' code does. A border pixel then sees itself, so that the map does not preserve volume and the
	// log-likelihood is wrong.
	ReplicatePadding bool
}

// Dense returns the terms of inputs h, [..., batch, features].
func (LDL) Dense(s *model.Scope, h *graph.Node) Terms {
	d := h.Shape().Dim(-1)
	lower := params.New(s, h, "lower", params.Generative, params.Constant(0), d, d)
	logVariance := floored(params.New(s, h, "log_variance", params.Generative, params.Constant(0), 1, d))

	halfPrecision := graph.MulScalar(ops.Exp(graph.Neg(logVariance)), 0.5)
	l := linalg.UnitLowerTriangular(lower)
	energy := ops.QuadraticForm(h, l, halfPrecision)
	logDet := ops.SumColumns(logVariance)
	return Terms{
		Energy:        energy,
		LogLikelihood: graph.Add(graph.Neg(energy), logNormalizer(logDet, d)),
		Root:          func() *graph.Node { return graph.Mul(ops.Product(h, l), graph.Sqrt(halfPrecision)) },
	}
}

// Rank1Mixture is a mixture of K zero-mean Gaussians with covariances
//
//	Sigma_k = v_k v_k^T + D_k,   D_k = diag(exp(log diagonal_k)),
//
// (section 2.4, "Mixture of rank-1 Gaussians"). Inverse and determinant have closed forms of cost O(D):
//
//	h^T Sigma^-1 h = h^T D^-1 h - (v^T D^-1 h)^2 / (1 + v^T D^-1 v)
//	log |Sigma|    = log(1 + v^T D^-1 v) + sum_j log D_jj
//
// The energy is log p(0) - log p(h) >= 0, which for K = 1 is the Gaussian energy.
type Rank1Mixture struct {
	// Fraction sets K = max(1, floor(Fraction * features)); the paper's range
	// is 0.0125 to 0.2. The zero value means 0.1.
	Fraction float64
	// ZeroFactors starts every v_k at 0, as the authors' dense layer does, instead of orthonormal. The components are
	// then identical and the gradient of v is exactly zero, so that the components stay equal except for rounding.
	ZeroFactors bool
	// NegatedLogDet gives the log-determinant in Conv's log-likelihood the wrong sign, as the authors' code does. This
	// objective has no maximum: it grows with the variances, and the energy goes to 0.
	NegatedLogDet bool
}

// Check returns an error if Fraction is negative, NaN or infinite. A layer calls it.
func (m Rank1Mixture) Check() error {
	if !(m.Fraction >= 0) || math.IsInf(m.Fraction, 1) {
		return fmt.Errorf("energy.Rank1Mixture.Fraction is %g; it is a part of the features (1.25%% is 0.0125)", m.Fraction)
	}
	return nil
}

// Components returns K for inputs of the given width.
func (m Rank1Mixture) Components(features int) int {
	fraction := m.Fraction
	if fraction == 0 {
		fraction = 0.1
	}
	return max(1, int(fraction*float64(features)))
}

// Dense returns the terms of inputs h, [..., batch, features].
func (m Rank1Mixture) Dense(s *model.Scope, h *graph.Node) Terms {
	d := h.Shape().Dim(-1)
	k := m.Components(d)
	precision, scaled, capacity, logDet := m.components(s, h, k, d)
	row := func(x *graph.Node) *graph.Node { return graph.Reshape(x, append(leadOf(h), 1, k)...) }
	capacity, logDet = row(capacity), row(logDet)
	logits := params.New(s, h, "mixture_logits", params.Generative, params.Constant(0), 1, k)

	diagonal := ops.ProductTransposed(graph.Mul(h, h), precision) // h^T D_k^-1 h, [..., batch, K]
	along := ops.ProductTransposed(h, scaled)                     // v_k^T D_k^-1 h
	share := graph.Reciprocal(capacity)
	quadratic := atLeast(graph.Sub(diagonal, graph.Mul(graph.Mul(along, along), share)), graph.Mul(along, share))

	logWeights := graph.Sub(logits, ops.LogSumExp(logits))
	atZero := graph.Add(logWeights, logNormalizer(logDet, d)) // log pi_k N(0; 0, Sigma_k)
	logLikelihood := ops.LogSumExp(graph.Add(graph.MulScalar(quadratic, -0.5), atZero))
	return Terms{
		Energy:        notNegative(graph.Add(graph.Neg(logLikelihood), ops.LogSumExp(atZero))),
		LogLikelihood: logLikelihood,
	}
}

// components makes k components of d dimensions: the inverse of D_k and its product with
// v_k, [..., K, D], and 1 + v_k^T D_k^-1 v_k and log |Sigma_k|, [..., K, 1].
func (m Rank1Mixture) components(s *model.Scope, like *graph.Node, k, d int) (precision, scaled, capacity, logDet *graph.Node) {
	start := params.Initializer(params.Orthogonal)
	if m.ZeroFactors {
		start = params.Constant(0)
	}
	v := params.New(s, like, "factors", params.Generative, start, k, d)
	logDiagonals := floored(params.New(s, like, "log_diagonals", params.Generative, params.Constant(0), k, d))
	precision = ops.Exp(graph.Neg(logDiagonals))
	scaled = graph.Mul(v, precision)
	capacity = graph.AddScalar(ops.SumColumns(graph.Mul(v, scaled)), 1)
	return precision, scaled, capacity, graph.Add(graph.Log(capacity), ops.SumColumns(logDiagonals))
}

// atLeast is the quadratic form of a rank-1 covariance with its lower bound t^2: for
// t = v^T D^-1 h / (1 + v^T D^-1 v) it is
//
//	h^T Sigma^-1 h = (h - t v)^T D^-1 (h - t v) + t^2.
//
// Where h is nearly along v and D is small, the difference of two large sums by which
// it is computed is their rounding alone, and may be below 0.
func atLeast(quadratic, t *graph.Node) *graph.Node { return ops.Maximum(quadratic, graph.Mul(t, t)) }

// notNegative is an energy without the rounding that may take it below 0. The
// layer takes its root.
func notNegative(energy *graph.Node) *graph.Node { return ops.AtLeast(energy, 0) }

// logNormalizer is log N(0; 0, Sigma) = -1/2 (D log 2 pi + log |Sigma|).
func logNormalizer(logDet *graph.Node, d int) *graph.Node {
	return graph.MulScalar(graph.AddScalar(logDet, float64(d)*logTwoPi), -0.5)
}

// leadOf returns the replica axes of [..., batch, features].
func leadOf(h *graph.Node) []int {
	return append([]int{}, h.Shape().Dimensions[:h.Rank()-2]...)
}

// lowestVariance is the least variance of a feature in an energy model. Its root is a hundredth of a standardised
// input's deviation.
//
// It is as large as this for the sake of Rank1Mixture. The quadratic form of a component is a difference of two sums
// of squares over the variance; with 1e-8, which training reaches where inputs are constant, as two of Naval are, its
// rounding in float32 alone is larger than an energy.
const lowestVariance = 1e-4

// floored is max(logVariance, log lowestVariance).
//
// A feature that is always 0 in the training data, as of a unit whose ReLU
// never opens, has a likelihood without a maximum: it grows as the log-variance
// goes to minus infinity, and Adam takes it there at a constant pace. The precision
// then overflows, or the unit opens later and the energy is 10^18. Training of a
// log-variance ends at the floor; a gradient that raises it passes, in case the unit
// opens.
func floored(logVariance *graph.Node) *graph.Node {
	g, dtype := logVariance.Graph(), logVariance.DType()
	lowest := graph.Scalar(g, dtype, math.Log(lowestVariance))
	held := graph.IdentityWithCustomGradient(logVariance, func(x, dy *graph.Node) *graph.Node {
		falls := graph.LogicalAnd(graph.LessThan(x, lowest), graph.GreaterThan(dy, graph.ScalarZero(g, dtype)))
		return graph.Where(falls, graph.ZerosLike(dy), dy)
	})
	return graph.Add(held, graph.StopGradient(graph.Sub(graph.Max(logVariance, lowest), logVariance)))
}

// MultiplyAdds returns the number of multiply-adds of the energies of one image of channels x height x width pixels
// under the window w, by the masked convolution at stride 1, masked entries included. For a vector of D features
// pass D channels, one pixel and a window of one pixel.
func (LDL) MultiplyAdds(channels int, w conv.Window, height, width int) int {
	return channels * channels * w.Pixels() * height * width
}

// MultiplyAdds returns the number of multiply-adds of the energies of one image, as for LDL: two convolutions
// with one filter for each component.
func (m Rank1Mixture) MultiplyAdds(channels int, w conv.Window, height, width int) int {
	high, wide := w.Out(height, width)
	return 2 * m.ConvComponents(channels) * channels * w.Pixels() * high * wide
}
