// Package dul implements the density uncertainty layers of Park & Blei, "Density Uncertainty Layers for Reliable
// Uncertainty Estimation" (AISTATS 2024), for GoMLX: linear layers that add more noise to an input that is improbable under
// a Gaussian fitted to the layer's inputs.
package dul

import (
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// EnergyModel is a model of a layer's inputs h, such as energy.LDL. It gives their energy E(h) and how it is fitted.
// Your own model needs both methods; energy.Pixelwise gives you Conv if you have Dense, and layertest.Energy tests
// Dense. If the type has a method Check() error, a layer panics with its error.
type EnergyModel interface {
	// Dense returns the terms of inputs h, [..., batch, features], and creates
	// the model's parameters in s with params.New and the role params.Generative.
	Dense(s *model.Scope, h *graph.Node) energy.Terms
	// Conv returns the terms of images x, [channels, batch, height, width], for
	// a convolution with window w.
	Conv(s *model.Scope, x *graph.Node, w conv.Window) energy.ConvTerms
}

// GradientFlow says which parameters the two objectives of section 2.4 train: L_phi, the evidence lower bound, and
// L_omega, the log-likelihood of the energy models. h is a layer's input and omega are its energy model's parameters.
type GradientFlow int

const (
	// PaperGradients are the gradients of the paper. phi are the weights and noise variances of all layers:
	//
	//	L_phi     trains phi, also through the noise's scale E(h; omega), which depends on h; it does not train omega
	//	L_omega   trains omega with each layer's h as data; it does not train phi
	//
	// The gradient through E(h; omega) takes 3 to 16% of a layer's training step on the pure Go backend. It can make
	// training diverge, because it adds the curvature gamma Sigma^-1 along h, which is large where features hardly
	// vary. With the settings of the paper's text 18 of 20 trainings on Naval diverge (figures/uci/tables.md), and none
	// with Detached. A lower InitStd helps too, as it lowers gamma.
	PaperGradients GradientFlow = iota
	// Detached makes E(h; omega) in the noise a constant, as the authors' code does. L_phi then lacks the gradient
	// through E(h; omega), so its gradient is not that of the paper's objective. L_omega is as in the paper.
	Detached
	// Attached stops no gradient. L_phi trains omega too, so that the energy models no longer fit the data alone.
	// L_omega trains phi too, so that the weights change to make activations probable.
	Attached
)

// Density is the family of density uncertainty layers. The zero value is the
// paper's layer with its default settings; each field changes one thing. The last
// five are switches of the authors' code, and an ablation (SharedNoise).
type Density struct {
	// Energy is the layer's energy model; nil means energy.LDL{}.
	Energy EnergyModel
	// PriorStd is the prior standard deviation of the noise variables epsilon
	// and eta; 0 means 1 (section 4: searched over {0.1, 1, 10}).
	PriorStd float64
	// InitStd is the initial value of sqrt(gamma) and sqrt(beta), the posterior standard deviations; 0 means 1e-3
	// (section 4; the appendix has 0.1 for UCI).
	InitStd float64
	// Noise is the distribution of the numbers that are multiplied by sqrt(Var) of Dense or Conv; nil means
	// stochastic.Gaussian(). With mean m and variance v, the output has the mean w . h + b + m sqrt(Var) and the
	// variance v Var. The authors' code draws stochastic.Uniform01(). The KL remains the Gaussians'.
	Noise stochastic.Distribution
	// Gradients says which parameters the two objectives train.
	Gradients GradientFlow
	// MeanEnergy replaces E(h) in the noise by the mean energy of the training examples, the same for every input. It
	// is a control with as much noise on average; neither the paper nor the authors' code has it. Training uses the
	// mean over the batch (in Conv also over positions), evaluation its running mean (params.Follow, from D/2). The
	// reported energies and the log-likelihood do not change. Give replicas equally many examples: the mean of a batch
	// counts padded rows, and nothing checks this.
	MeanEnergy bool

	// Switches of the authors' code, and an ablation.

	// Clip limits the energy that scales the noise to [0, D]. D is the number of features in Dense, and
	// energy.ConvTerms.Dimensions in Conv: twice the mean energy of a fitted Gaussian. The variance is then at most
	// gamma D + beta, and no longer grows with E for improbable inputs. The log-likelihood and the reported energies
	// are not clipped. The authors' code clips energy.LDL but not energy.Rank1Mixture.
	Clip bool
	// HalfD makes the variance gamma E + beta D/2, with D as in Clip, as the released code does; in the paper it is
	// gamma E + beta. D/2 is the mean energy of a fitted Gaussian, so that equal gamma and beta contribute equally for a
	// typical input, whatever the width of the layer.
	HalfD bool
	// HalfChannels sets D in HalfD to the number of channels in Conv, as the authors' code does. It needs HalfD. It
	// makes a difference only for energy.Rank1Mixture, whose D is channels size^2, since its energy spans a whole
	// window.
	HalfChannels bool
	// ConvEtaPriorStd is the prior standard deviation of eta in Conv; 0 means
	// PriorStd. The authors' code has exp(1/2) there, whatever PriorStd is.
	ConvEtaPriorStd float64
	// SharedNoise makes Conv draw epsilon and eta once for each filter and example, for all positions. By default Conv
	// draws them for each position, as the released code does. Conv says what this means for the KL.
	SharedNoise bool
}

// Dense returns the output of a density uncertainty layer, equation "stochastic_linear_layer1" (section 2.4):
//
//	f^j(h) = w^j . h + eps^j sqrt(E(h)) + eta^j
//	eps^j ~ N(0, gamma^j),  eta^j ~ N(0, beta^j)
//	Var[f^j(h)] = gamma^j E(h) + beta^j            (see HalfD)
//
// h is [batch, features], or [replicas, batch, features], and the result [..., batch, units]; for more axes use
// nets.Positions. The layer draws one number for each example and unit and multiplies it by sqrt(Var); for Gaussian
// noise this has the distribution of the sum of both terms. It is the local reparametrisation of one draw of eps and eta
// for each unit, so the KL counts once for the whole training set.
//
// Coherent draws (params.Facts.Coherent, predict.Options) are affine functions of h. For the energy E(h) = 1/2 h' L D
// L' h and standard normal Z, [features, units], and xi, [1, units], which all examples share,
//
//	f(h) = h W + b + h W' + b',   W'_j = sqrt(gamma_j/2) L D^(1/2) Z_j,   b'_j = sqrt(beta_j) xi_j
//	Cov[f^j(h), f^j(g)] = gamma^j/2 h' L D L' g + beta^j
//
// At each single h, f(h) has the same distribution as above. If all inputs have the same energy (MeanEnergy,
// energy.Constant), W' is 0 and all noise is in the bias. Dense panics if the noise is not
// Gaussian and, without MeanEnergy, for Clip and the mixtures of package energy: they have no such draws.
//
// The layer adds KL(q(eps) || p(eps)) + KL(q(eta) || p(eta)), its energy and, if the energy model has one, log
// p_energy(h) to the graph's stochastic.LayerLosses. It panics on invalid settings.
func (l Density) Dense(s *model.Scope, h *graph.Node, units int) *graph.Node {
	l = l.withDefaults()
	features := h.Shape().Dim(-1)
	seen := l.generativeInput(h)
	terms := l.Energy.Dense(s.In("energy"), seen)
	each := h.Shape().Clone()
	each.Dimensions[h.Rank()-1] = 1
	l.addTerms(each, terms.Energy, terms.LogLikelihood)

	mean := params.Dense(s, h, units)
	gamma := l.noiseVariance(s, h, "gamma_log_variance", l.PriorStd, 1, units)
	beta := l.noiseVariance(s, h, "beta_log_variance", l.PriorStd, 1, units)

	energy, beta := l.noiseEnergy(s, terms.Energy, seen, h, features), l.constantVariance(beta, features)
	if params.FactsOf(h.Graph()).Coherent {
		return graph.Add(mean, l.coherentNoise(s, h, l.root(energy, terms.Root), gamma, beta))
	}
	noise := stochastic.Draw(s, h, l.Noise, h.Shape().Dim(-2), units)
	return graph.Add(mean, graph.Mul(graph.Sqrt(ops.Affine(energy, gamma, beta)), noise))
}

// coherentNoise is the noise of a coherent draw, [..., batch, units]. root is phi(h), whose squares add up to the energy.
func (l Density) coherentNoise(s *model.Scope, h, root, gamma, beta *graph.Node) *graph.Node {
	units := gamma.Shape().Dim(-1)
	z := stochastic.Draw(s, h, l.Noise, root.Shape().Dim(-1), units)
	xi := stochastic.Draw(s, h, l.Noise, 1, units)
	return ops.Affine(root, graph.Mul(graph.Sqrt(gamma), z), graph.Mul(graph.Sqrt(beta), xi))
}

// root is an affine function of the input whose squares add up to the energy e that scales the noise. It panics if there
// is none.
func (l Density) root(e *graph.Node, of func() *graph.Node) *graph.Node {
	switch {
	case l.Noise != stochastic.Gaussian():
		panic(fmt.Errorf("dul.Density: coherent draws with Noise of type %T; a sum of such noise has another distribution, and only stochastic.Gaussian() keeps its own", l.Noise))
	case l.MeanEnergy: // the same for all inputs
		return graph.Sqrt(e)
	case l.Clip:
		panic(errors.New("dul.Density: coherent draws with Clip; a clipped energy is no sum of squares of affine functions, so that no draw of the weights has its variance"))
	case of == nil:
		panic(fmt.Errorf("dul.Density: coherent draws with the energy model %T, whose Terms have no Root; they need an energy that is a sum of squares of affine functions, such as that of energy.LDL or energy.Diagonal. The energy of a mixture is none", l.Energy))
	}
	return of()
}

// addTerms adds what the energy model says of each example, of shape each, to the
// graph's stochastic.LayerLosses.
func (l Density) addTerms(each shapes.Shape, energy, logLikelihood *graph.Node) {
	l.assertShape("energy", energy, each)
	losses := stochastic.LayerLossesOf(energy.Graph())
	losses.AddEnergy(energy)
	if logLikelihood != nil {
		l.assertShape("log-likelihood", logLikelihood, each)
		losses.AddLogLikelihood(logLikelihood)
	}
}

// assertShape panics on a term of the energy model that has another shape than it should; GoMLX might broadcast it.
func (l Density) assertShape(name string, term *graph.Node, want shapes.Shape) {
	if term == nil {
		panic(fmt.Errorf("dul.Density: the energy model %T gives no %s; want shape %s", l.Energy, name, want))
	}
	if !term.Shape().Equal(want) {
		panic(fmt.Errorf("dul.Density: the %s that the energy model %T gives has shape %s, want %s", name, l.Energy, term.Shape(), want))
	}
}

// generativeInput is the input h as the energy model sees it: with a stopped gradient, unless Attached. The Identity makes
// a node of its own, so that PaperGradients can ask for the gradient with respect to it.
func (l Density) generativeInput(h *graph.Node) *graph.Node {
	switch l.Gradients {
	case Attached:
		return h
	case Detached:
		return graph.StopGradient(h)
	}
	return graph.Identity(graph.StopGradient(h))
}

// noiseEnergy is the energy e, [..., batch, 1] or an image of one channel, as it scales the noise, with the gradient that
// l.Gradients allows. e was computed from seen, a copy of h, of D dimensions.
func (l Density) noiseEnergy(s *model.Scope, e, seen, h *graph.Node, dimensions int) *graph.Node {
	switch l.Gradients {
	case PaperGradients:
		e = throughInput(e, seen, h)
	case Detached:
		e = graph.StopGradient(e)
	}
	if l.Clip {
		e = ops.AtMost(ops.AtLeast(e, 0), float64(dimensions))
	}
	if l.MeanEnergy {
		e = meanEnergy(s, e, dimensions)
	}
	return e
}

// meanEnergy replaces each of the energies e by their mean. The running
// mean starts at D/2, as for a fitted Gaussian.
func meanEnergy(s *model.Scope, e *graph.Node, dimensions int) *graph.Node {
	g, column := e.Graph(), e
	if e.Rank() == 4 {
		column = graph.Reshape(e, e.Shape().Size(), 1)
	}
	running := params.Statistic(s, column, "mean_energy", params.Constant(float64(dimensions)/2), 1, 1)
	mean := running.NodeValue(g)
	if s.Store().IsTraining(g) {
		mean = ops.MeanRows(column)
		params.Follow(running, mean)
	}
	return graph.Reshape(graph.BroadcastToDims(mean, column.Shape().Dimensions...), e.Shape().Dimensions...)
}

// throughInput is the energy e with a gradient that reaches the input h and not the energy model's parameters. e was
// computed from seen, a copy of h, so that one evaluation serves both objectives: the derivative with respect to h is built
// when the gradient arrives.
func throughInput(e, seen, h *graph.Node) *graph.Node {
	return ops.WithGradient([]*graph.Node{h},
		func(in []*graph.Node) *graph.Node { return ops.Tied(graph.StopGradient(e), in) },
		func(_, de *graph.Node) []*graph.Node {
			return []*graph.Node{ops.FirstOrder(graph.Gradient(graph.ReduceAllSum(graph.Mul(e, graph.StopGradient(de))), seen)[0])}
		})
}

// noiseVariance is gamma or beta, the exponential of the named parameter, with one entry for each output. It adds the KL.
func (l Density) noiseVariance(s *model.Scope, like *graph.Node, name string, priorStd float64, rows, columns int) *graph.Node {
	logVariance := params.New(s, like, name, params.Variational, params.Constant(2*math.Log(l.InitStd)), rows, columns)
	stochastic.LayerLossesOf(like.Graph()).AddKL(stochastic.GaussianKL(nil, logVariance, 0, priorStd))
	return ops.Exp(logVariance)
}

// minVariance gives the square root of a variance that underflows a derivative.
const minVariance = 1e-16

// constantVariance is the part of the variance that does not depend on the
// energy, beta or beta D/2, for an energy of D dimensions.
func (l Density) constantVariance(beta *graph.Node, dimensions int) *graph.Node {
	if l.HalfD {
		beta = graph.MulScalar(beta, float64(dimensions)/2)
	}
	return graph.AddScalar(beta, minVariance)
}

func (l Density) withDefaults() Density {
	if !(min(l.PriorStd, l.InitStd, l.ConvEtaPriorStd) >= 0 && max(l.PriorStd, l.InitStd, l.ConvEtaPriorStd) < math.Inf(1)) {
		panic(fmt.Errorf("dul.Density: PriorStd %g, InitStd %g and ConvEtaPriorStd %g must be finite and not negative", l.PriorStd, l.InitStd, l.ConvEtaPriorStd))
	}
	if l.Gradients < PaperGradients || l.Gradients > Attached {
		panic(fmt.Errorf("dul.Density: Gradients is %d; it must be PaperGradients, Detached or Attached", l.Gradients))
	}
	if l.HalfChannels && !l.HalfD {
		panic(errors.New("dul.Density: HalfChannels says what D is in HalfD, which is not set"))
	}
	if l.Energy == nil {
		l.Energy = energy.LDL{}
	}
	if e, has := l.Energy.(interface{ Check() error }); has {
		if err := e.Check(); err != nil {
			panic(err)
		}
	}
	if l.Noise == nil {
		l.Noise = stochastic.Gaussian()
	}
	if l.PriorStd == 0 {
		l.PriorStd = 1
	}
	if l.ConvEtaPriorStd == 0 {
		l.ConvEtaPriorStd = l.PriorStd
	}
	if l.InitStd == 0 {
		l.InitStd = 1e-3
	}
	return l
}

// EnergyMultiplyAdds counts the multiply-adds of the layer's energy model for one image of channels x height x width
// pixels and window w. A training step takes 3 times as many as the forward computation, for the gradients of the
// parameters and of the input; if Detached, twice as many. Both are 0 if the energy model has no method MultiplyAdds.
func (l Density) EnergyMultiplyAdds(channels int, w conv.Window, height, width int) (forward, training int) {
	counted, ok := l.withDefaults().Energy.(interface {
		MultiplyAdds(channels int, w conv.Window, height, width int) int
	})
	if !ok {
		return 0, 0
	}
	forward = counted.MultiplyAdds(channels, w, height, width)
	if l.Gradients == Detached {
		return forward, 2 * forward
	}
	return forward, 3 * forward
}

// Conv returns the output of a convolutional density uncertainty layer. With h the window of x at one position of one
// example,
//
//	f^j(h) = w^j . h + eps^j sqrt(E(h)) + eta^j
//	eps^j ~ N(0, gamma^j),  eta^j ~ N(0, beta^j)
//	Var[f^j(h)] = gamma^j E(h) + beta^j            (see HalfD, HalfChannels)
//
// x is [channels, batch, height, width], the result [filters, batch, height', width'], with height' and width' by
// conv.Window.Out. E(h) is the energy model's value at the position. With energy.LDL it also depends on pixels
// outside the window, so that the equation holds given the image x. KL, log-likelihood and mean energy of each example
// go to the graph's stochastic.LayerLosses. Conv panics on invalid settings.
//
// The KL counts one eps and one eta for each filter. With SharedNoise this is the exact evidence lower bound for one
// draw of them per filter; drawing anew for each example is its local reparametrisation. The outputs at two positions p
// and q then have covariance gamma sqrt(E_p E_q) + beta. By default Conv draws noise for each of P positions, and the
// KL of that noise would be P times as large. Counting it once, as the released code does, means that the KL is
// tempered by 1/P.
func (l Density) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	l = l.withDefaults()
	batch, height, width := x.Shape().Dim(1), x.Shape().Dim(2), x.Shape().Dim(3)
	high, wide := c.Window.Out(height, width)
	seen := l.generativeInput(x)
	terms := l.Energy.Conv(s.In("energy"), seen, c.Window)
	l.assertShape("energy of each position", terms.Energy, shapes.Make(x.DType(), 1, batch, high, wide))
	if terms.Dimensions < 1 {
		panic(fmt.Errorf("dul.Density: the energy model %T has %d dimensions; it must have at least 1", l.Energy, terms.Dimensions))
	}
	energy := l.noiseEnergy(s, terms.Energy, seen, x, terms.Dimensions)
	l.addTerms(shapes.Make(x.DType(), batch, 1), terms.MeanEnergy, terms.LogLikelihood)

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
		return graph.Add(in[0], graph.Mul(graph.Sqrt(in[1]), in[2]))
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
	// By rounding an energy can be a little below 0, which has no root.
	root := graph.Sqrt(graph.AddScalar(ops.AtLeast(graph.Reshape(energy, 1, batch, positions), 0), minVariance))
	scales := graph.Concatenate([]*graph.Node{root, graph.OnesLike(root)}, 0)
	products := graph.DotGeneral(noise, []int{1}, []int{2}, scales, []int{0}, []int{1}) // [batch, filters, positions]
	return graph.Reshape(graph.Transpose(products, 0, 1), dims...)
}
