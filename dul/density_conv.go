package dul

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/ops"
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
	channels := x.Shape().Dim(0)
	energyOfInput := l.energyOfNoise(terms.Energy, channels)
	tally := stochastic.TallyOf(x.Graph())
	tally.AddEnergy(terms.MeanEnergy)
	tally.AddLogLikelihood(terms.LogLikelihood)

	output := conv.Layer(s, x, c)
	mean := conv.Channels(output)
	gamma := l.noiseLogVariance(s, mean, "gamma_log_variance", c.Filters, 1)
	beta := l.noiseLogVariance(s, mean, "beta_log_variance", c.Filters, 1)
	betaPriorStd := l.PriorStd
	if l.FixedBetaPrior {
		betaPriorStd = math.Exp(0.5)
	}
	tally.AddKL(stochastic.GaussianKL(nil, gamma, 0, l.PriorStd))
	tally.AddKL(stochastic.GaussianKL(nil, beta, 0, betaPriorStd))

	dimensions := terms.Dimensions
	if l.ChannelBias {
		dimensions = channels
	}
	variance := conv.Outer(graph.Exp(gamma), conv.Channels(energyOfInput), l.constantVariance(beta, dimensions))
	noise := conv.Noise(s, mean, l.Noise)
	y := conv.Entrywise(func(in []*graph.Node) *graph.Node {
		return graph.Add(in[0], ops.SqrtScaled(in[1], in[2]))
	}, mean, variance, noise)
	return conv.LikeImage(y, output)
}
