package dul

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/stochastic"
)

// Conv is the layer of Dense as a convolution: with h the window of x at one
// position of one example,
//
//	f^j(h) = w^j . h + eps^j sqrt(E(h)) + eta^j
//	eps^j ~ N(0, gamma^j),  eta^j ~ N(0, beta^j)
//	Var[f^j(h)] = gamma^j E(h) + beta^j            (see HalfD, HalfChannels)
//
// x is [channels, batch, height, width], the result [filters, batch, height',
// width'] for the window's output size. E(h) is what the energy model says of
// the position. KL, log-likelihood and mean energy of each example go to the
// graph's stochastic.LayerLosses.
//
// The KL has one eps and one eta for each filter. With SharedNoise that is the
// evidence lower bound of noise that is drawn once for each filter: drawing it
// anew for each example is its local reparametrisation, since the likelihood is a
// product over examples, and the outputs at two positions p and q have covariance
// gamma sqrt(E_p E_q) + beta. It is not a product over positions. The default,
// noise that is drawn anew at each of P positions, has P independent variables for
// each filter, whose KL would be P times as large: counted once, as in the released
// code, the objective is that bound with the KL tempered by 1/P.
func (l Density) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	l = l.withDefaults()
	seen := l.generativeInput(x)
	terms := l.Energy.Conv(s.In("energy"), seen, c.Window)
	energy := l.noiseEnergy(s, terms.Energy, seen, x, terms.Dimensions)
	addTerms(x.Graph(), terms.MeanEnergy, terms.LogLikelihood)

	output := conv.Layer(s, x, c)
	mean := conv.Channels(output)
	gamma := l.noiseVariance(s, mean, "gamma_log_variance", l.PriorStd, c.Filters, 1)
	beta := l.noiseVariance(s, mean, "beta_log_variance", l.ConvEtaPriorStd, c.Filters, 1)

	dimensions := terms.Dimensions
	if l.HalfChannels {
		dimensions = x.Shape().Dim(0)
	}
	beta = l.constantVariance(beta, dimensions)
	if l.SharedNoise {
		return graph.Add(output, l.sharedNoise(s, output, energy, gamma, beta))
	}
	variance := conv.Outer(gamma, conv.Channels(energy), beta)
	noise := conv.Noise(s, mean, l.Noise)
	y := conv.Entrywise(func(in []*graph.Node) *graph.Node {
		return graph.Add(in[0], ops.SqrtScaled(in[1], in[2]))
	}, mean, variance, noise)
	return conv.LikeImage(y, output)
}

// sharedNoise is eps^j sqrt(E) + eta^j in the shape of the output, [filters,
// batch, height', width'], where eps and eta have one entry for each filter and
// example: for each example the product of [filters, 2] and [2, positions].
func (l Density) sharedNoise(s *model.Scope, output, energy, gamma, beta *graph.Node) *graph.Node {
	dims := output.Shape().Dimensions
	filters, batch, positions := dims[0], dims[1], dims[2]*dims[3]
	draw := func(variance *graph.Node) *graph.Node {
		noise := stochastic.Draw(s, variance, l.Noise, filters, batch)
		return graph.Reshape(graph.Mul(noise, graph.Sqrt(variance)), filters, 1, batch)
	}
	noise := graph.Concatenate([]*graph.Node{draw(gamma), draw(beta)}, 1)
	root := graph.Sqrt(graph.AddScalar(graph.Reshape(energy, 1, batch, positions), minVariance))
	scales := graph.Concatenate([]*graph.Node{root, graph.OnesLike(root)}, 0)
	products := graph.DotGeneral(noise, []int{1}, []int{2}, scales, []int{0}, []int{1}) // [batch, filters, positions]
	return graph.Reshape(graph.Transpose(products, 0, 1), dims...)
}
