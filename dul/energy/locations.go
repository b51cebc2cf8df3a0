package energy

import (
	"cmp"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

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
