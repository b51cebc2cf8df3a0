package dul

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// Conv is the layer of Dense as a convolution: with h the window of x at one
// position, drawn anew for each position and example,
//
//	f^j(h) = w^j . h + eps^j sqrt(E(h)) + eta^j
//	eps^j ~ N(0, gamma^j),  eta^j ~ N(0, beta^j)
//	Var[f^j(h)] = gamma^j E(h) + beta^j            (beta^j D/2, see PlainBias, ChannelBias)
//
// x is [channels, batch, height, width], the result [filters, batch, height',
// width'] for the window's output size. E(h) is what the energy model says of
// the position; Clip limits that of energy.LDL to [0, channels]. KL,
// log-likelihood and mean energy of each example go to the graph's
// stochastic.Tally.
func (l Density) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	l = l.withDefaults()
	terms := l.Energy.Conv(s.In("energy"), l.generativeInput(x), c.Window)
	channels := float64(x.Shape().Dim(0))
	energyOfInput := terms.Energy
	if l.Clip {
		if _, isLDL := l.Energy.(energy.LDL); isLDL {
			energyOfInput = graph.ClipScalar(energyOfInput, 0, channels)
		}
	}
	if !l.Attached {
		energyOfInput = graph.StopGradient(energyOfInput)
	}
	tally := stochastic.TallyOf(x.Graph())
	tally.AddEnergy(terms.MeanEnergy)
	tally.AddLogLikelihood(terms.LogLikelihood)

	output := conv.Layer(s, x, c)
	mean := conv.Channels(output)
	gamma := l.channelLogVariance(s, mean, "gamma_log_variance")
	beta := l.channelLogVariance(s, mean, "beta_log_variance")
	betaPriorStd := l.PriorStd
	if l.FixedBetaPrior {
		betaPriorStd = math.Exp(0.5)
	}
	tally.AddKL(stochastic.GaussianKL(nil, gamma, 0, l.PriorStd))
	tally.AddKL(stochastic.GaussianKL(nil, beta, 0, betaPriorStd))

	bias := float64(terms.Dimensions) / 2
	switch {
	case l.PlainBias:
		bias = 1
	case l.ChannelBias:
		bias = channels / 2
	}
	// 1e-16 gives the square root of a variance that underflows a derivative.
	offset := graph.AddScalar(graph.MulScalar(graph.Exp(beta), bias), 1e-16)
	variance := conv.Outer(graph.Exp(gamma), conv.Channels(energyOfInput), offset)
	noise := stochastic.Draw(s, mean, l.Noise, mean.Shape().Dim(0), mean.Shape().Dim(1))
	return conv.LikeImage(graph.Add(mean, ops.SqrtScaled(variance, noise)), output)
}

// channelLogVariance is a log-variance for each row of like, [rows, 1].
func (l Density) channelLogVariance(s *model.Scope, like *graph.Node, name string) *graph.Node {
	return params.New(s, like, name, params.Variational, params.Constant(2*math.Log(l.InitStd)), like.Shape().Dim(0), 1)
}
