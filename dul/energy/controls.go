package energy

import (
	"cmp"
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

// Constant is the energy E(h) = D/2 of every input of D features, the mean energy of a fitted Gaussian. It is a
// control: the noise does not depend on the input, and all else is the same. It has no parameters and no
// log-likelihood.
type Constant struct{}

// Dense returns the terms of inputs h, [..., batch, features].
func (Constant) Dense(_ *model.Scope, h *graph.Node) Terms {
	dims := append([]int{}, h.Shape().Dimensions...)
	d := dims[len(dims)-1]
	dims[len(dims)-1] = 1
	energy := halfOf(d, h, dims)
	return Terms{Energy: energy, Root: func() *graph.Node { return graph.Sqrt(energy) }}
}

// Conv returns the terms of images x, [channels, batch, height, width], for a layer with window w. D is the number of
// channels, as for LDL. The energy is D/2 at the border too.
func (Constant) Conv(_ *model.Scope, x *graph.Node, w conv.Window) ConvTerms {
	d, batch := x.Shape().Dim(0), x.Shape().Dim(1)
	high, wide := w.Out(x.Shape().Dim(2), x.Shape().Dim(3))
	return ConvTerms{
		Energy:     halfOf(d, x, []int{1, batch, high, wide}),
		MeanEnergy: halfOf(d, x, []int{batch, 1}),
		Dimensions: d,
	}
}

// halfOf is d/2 in the type of x and a shape.
func halfOf(d int, x *graph.Node, dims []int) *graph.Node {
	return graph.MulScalar(graph.Ones(x.Graph(), shapes.Make(x.DType(), dims...)), float64(d)/2)
}

// Diagonal is the zero-mean Gaussian with independent features,
//
//	E(h) = 1/2 sum_d h_d^2 / s_d^2,   log |Sigma| = sum_d log s_d^2,
//
// which is LDL without correlations, as a control for them. Its maximum-likelihood fit is s_d^2 = mean of h_d^2, at
// least 1e-4. The log s_d^2 start at zero: Sigma = I.
type Diagonal struct{}

// Dense returns the terms of inputs h, [..., batch, features].
func (Diagonal) Dense(s *model.Scope, h *graph.Node) Terms {
	d := h.Shape().Dim(-1)
	logVariance := floored(params.New(s, h, "log_variance", params.Generative, params.Constant(0), 1, d))
	halfPrecision := graph.MulScalar(ops.Exp(graph.Neg(logVariance)), 0.5)
	energy := ops.WeightedSquares(h, halfPrecision)
	logDet := ops.SumColumns(logVariance)
	return Terms{
		Energy:        energy,
		LogLikelihood: graph.Add(graph.Neg(energy), logNormalizer(logDet, d)),
		Root:          func() *graph.Node { return graph.Mul(h, graph.Sqrt(halfPrecision)) },
	}
}

// Conv returns the terms of images x, [channels, batch, height, width], for a layer with window w, by Pixelwise: those
// of LDL with a kernel of zero.
func (m Diagonal) Conv(s *model.Scope, x *graph.Node, w conv.Window) ConvTerms {
	return Pixelwise(m, s, x, w)
}

// Pixelwise applies a model of vectors to the channels of each pixel of images x,
// [channels, batch, height, width], and returns the terms for a layer with window w:
//
//	Energy         mean of the pixels' energies in the window, padding counted as zero, as for LDL
//	MeanEnergy     mean of all pixels' energies
//	LogLikelihood  mean of all pixels' log-likelihoods
func Pixelwise(m interface {
	Dense(s *model.Scope, h *graph.Node) Terms
}, s *model.Scope, x *graph.Node, w conv.Window) ConvTerms {
	terms := m.Dense(s, graph.Transpose(conv.Channels(x), 0, 1))
	image := func(perPixel *graph.Node) *graph.Node {
		return conv.LikeImage(graph.Reshape(perPixel, 1, perPixel.Shape().Size()), x)
	}
	energy := image(terms.Energy)
	of := ConvTerms{
		Energy:     averagePool(energy, w),
		MeanEnergy: conv.ExampleMeans(energy),
		Dimensions: x.Shape().Dim(0),
	}
	if terms.LogLikelihood != nil {
		of.LogLikelihood = conv.ExampleMeans(image(terms.LogLikelihood))
	}
	return of
}

// LaplaceWeights returns the weights of examples, [..., batch, 1], in the energy model that grounds a linear classifier
// (appendix "Bayesian Uncertainty in Linear Classification"). Laplace's approximation to its posterior has the
// precision
//
//	Lambda = sum_i weight_i h_i h_i^T + alpha I,   weight_i = sigma(a_i) (1 - sigma(a_i))
//
// for the logit a_i, so that uncertain examples have the largest weights. logits are [..., batch, 1] for two classes,
// or [..., batch, K] for K classes with probabilities p_k. Then
//
//	weight_i = 1/2 sum_k p_k (1 - p_k),
//
// half the trace of the Hessian of the cross-entropy, which agrees for K = 2. Bayes' rule gives these weights to the
// last layer; train.Settings.WeightEnergies gives them to all layers.
func LaplaceWeights(logits *graph.Node) *graph.Node {
	if logits.Shape().Dim(-1) == 1 {
		p := ops.Sigmoid(logits)
		return graph.Mul(p, graph.OneMinus(p))
	}
	p := ops.Softmax(logits)
	return graph.MulScalar(ops.SumColumns(graph.Mul(p, graph.OneMinus(p))), 0.5)
}

// LocationMixture is a mixture of K Gaussians with one covariance and their own means, all trained by the generative
// objective. It is this project's, not the paper's:
//
//	p(h) = sum_k pi_k N(h; mu_k, Sigma),   Sigma^-1 = L D L^T as in LDL
//	E(h) = max(0, U(h) - I),   U(h) = -log sum_k pi_k exp(-1/2 (h - mu_k)^T Sigma^-1 (h - mu_k))
//	log p(h) = -U(h) - 1/2 (D log 2 pi + log |Sigma|)
//
// Unlike a zero-mean Gaussian, it can give a high energy to a gap between two clusters of data. I is the mutual
// information of h and its component, 0 <= I <= log K. A fitted model has a mean U of D/2 + I, so that subtracting I
// gives the mean energy of the other models, D/2. In training I is computed on the batch; prediction uses a running
// mean (0.9 old + 0.1 batch, from 0). Replicas must have equally many examples, because padded rows count.
//
// The means start at draws from N(0, 1), since inputs are standardised; weights are equal, and Sigma = I. In a small
// network a training step takes about 1.5 times as long as with LDL. There is no Root, and so there are no coherent
// draws (predict.Options.Coherent).
type LocationMixture struct {
	// Components is K. The zero value means 16.
	Components int
}

// Check returns an error if Components is negative. A layer calls it.
func (m LocationMixture) Check() error {
	if m.Components < 0 {
		return fmt.Errorf("energy.LocationMixture.Components is %d; it is a number of means, or 0 for 16", m.Components)
	}
	return nil
}

// Dense returns the terms of inputs h, [..., batch, features].
func (m LocationMixture) Dense(s *model.Scope, h *graph.Node) Terms {
	k, d := cmp.Or(m.Components, 16), h.Shape().Dim(-1)
	l := linalg.UnitLowerTriangular(params.New(s, h, "lower", params.Generative, params.Constant(0), d, d))
	logVariance := floored(params.New(s, h, "log_variance", params.Generative, params.Constant(0), 1, d))
	centres := params.New(s, h, "centres", params.Generative, params.Normal(0, 1), k, d)
	logits := params.New(s, h, "logits", params.Generative, params.Constant(0), 1, k)
	root := ops.Exp(graph.MulScalar(logVariance, -0.5))

	z, c := graph.Mul(ops.Product(h, l), root), graph.Mul(ops.Product(centres, l), root)
	squares := graph.Add(ops.SumColumns(graph.Mul(z, z)), ops.ProductTransposed(ops.FullRow(z, 1, d), graph.Mul(c, c)))
	half := graph.MulScalar(notNegative(graph.Sub(squares, graph.MulScalar(ops.ProductTransposed(z, c), 2))), 0.5)
	joint := graph.Sub(graph.Sub(logits, ops.LogSumExp(logits)), half) // [..., batch, K]
	u := notNegative(graph.Neg(ops.LogSumExp(joint)))

	information := params.Statistic(s, h, "information", params.Constant(0), 1, 1)
	running := information.NodeValue(h.Graph())
	if s.Store().IsTraining(h.Graph()) { // log r_k/pi_k = U - half_k
		of := graph.Sub(u, ops.SumColumns(graph.Mul(ops.Softmax(joint), half)))
		running = graph.StopGradient(ops.MeanRows(of))
		params.Follow(information, running)
	}
	return Terms{
		Energy:        notNegative(graph.Sub(u, running)),
		LogLikelihood: graph.Add(graph.Neg(u), logNormalizer(ops.SumColumns(logVariance), d)),
	}
}

// Conv returns the terms of images x, [channels, batch, height, width], for a layer with window w, by [Pixelwise].
func (m LocationMixture) Conv(s *model.Scope, x *graph.Node, w conv.Window) ConvTerms {
	return Pixelwise(m, s, x, w)
}
