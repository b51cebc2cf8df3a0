// Package dul implements the density uncertainty layers of Park & Blei,
// "Density Uncertainty Layers for Reliable Uncertainty Estimation"
// (AISTATS 2024), for GoMLX.
//
// A density uncertainty layer is a linear layer with noise whose variance
// follows the energy of its input under a Gaussian fitted to the layer's
// inputs: inputs that are improbable in the training data get more noise.
package dul

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// EnergyModel is what a density uncertainty layer needs of an energy model:
// energy.LDL and energy.Rank1Mixture are two.
type EnergyModel interface {
	Dense(s *model.Scope, h *graph.Node) energy.Terms
	Conv(s *model.Scope, x *graph.Node, w conv.Window) energy.ConvTerms
}

// Density is the family of density uncertainty layers. The zero value is the
// paper's layer with its default settings; each further field is one place
// where paper, released code or taste differ.
type Density struct {
	// Energy is the layer's energy model; nil means energy.LDL{}.
	Energy EnergyModel
	// PriorStd is the prior standard deviation of the noise variables epsilon
	// and eta; 0 means 1 (section 4: searched over {0.1, 1, 10}).
	PriorStd float64
	// InitStd is the posterior standard deviation sqrt(gamma), sqrt(beta) at
	// the start; 0 means 1e-3 (section 4; the appendix has 0.1 for UCI).
	InitStd float64
	// Noise is the distribution of the noise; the zero value is Gaussian.
	// stochastic.Uniform01() is what the released code draws.
	Noise stochastic.Distribution
	// Clip limits the energy of energy.LDL to [0, features], as the released
	// code does. It breaks Var proportional to E for improbable inputs.
	Clip bool
	// Attached lets the gradient of the noise flow through the energy into the
	// energy model and the input, and that of the generative objective into the
	// input, so that the network's weights then also change to make activations
	// probable. By default input and energy are constants for both gradients:
	// the energy model learns from the generative objective alone, and nothing
	// else learns from it.
	Attached bool
	// PlainBias gives the variance the paper's form gamma E + beta. The default
	// is gamma E + beta D/2 (D features): D/2 is the mean energy of a fitted
	// Gaussian, so that gamma and beta mean the same amount of noise for a
	// typical input.
	PlainBias bool
	// ChannelBias makes D in Conv the number of channels for every energy model,
	// as the released code does. The default is the number of dimensions of the
	// energy: the same for energy.LDL, channels size^2 for energy.Rank1Mixture,
	// whose energy spans a whole window.
	ChannelBias bool
	// FixedBetaPrior makes the prior of eta in Conv N(0, e) whatever PriorStd is,
	// as the released code does.
	FixedBetaPrior bool
}

// Dense is the layer of equation "stochastic_linear_layer1" (section 2.4):
//
//	f^j(h) = w^j . h + eps^j sqrt(E(h)) + eta^j
//	eps^j ~ N(0, gamma^j),  eta^j ~ N(0, beta^j)
//	Var[f^j(h)] = gamma^j E(h) + beta^j            (beta^j D/2, see PlainBias)
//
// h is [..., batch, features], the result [..., batch, units]. The layer adds
// KL(q(eps) || p(eps)) + KL(q(eta) || p(eta)) and log p_energy(h) to the
// graph's stochastic.Tally. It panics on negative settings, as GoMLX's
// graph-building functions do.
func (l Density) Dense(s *model.Scope, h *graph.Node, units int) *graph.Node {
	l = l.withDefaults()
	terms := l.Energy.Dense(s.In("energy"), l.generativeInput(h))
	features := h.Shape().Dim(-1)
	energyOfInput := l.energyOfNoise(terms.Energy, features)
	tally := stochastic.TallyOf(h.Graph())
	tally.AddEnergy(terms.Energy)
	tally.AddLogLikelihood(terms.LogLikelihood)

	mean := params.Dense(s, h, units)
	gamma := l.noiseLogVariance(s, h, "gamma_log_variance", 1, units)
	beta := l.noiseLogVariance(s, h, "beta_log_variance", 1, units)
	tally.AddKL(stochastic.GaussianKL(nil, gamma, 0, l.PriorStd))
	tally.AddKL(stochastic.GaussianKL(nil, beta, 0, l.PriorStd))

	variance := ops.Affine(energyOfInput, graph.Exp(gamma), l.constantVariance(beta, features))
	noise := stochastic.Draw(s, h, l.Noise, h.Shape().Dim(-2), units)
	return graph.Add(mean, ops.SqrtScaled(variance, noise))
}

// generativeInput is the input that the energy model sees.
func (l Density) generativeInput(h *graph.Node) *graph.Node {
	if l.Attached {
		return h
	}
	return graph.StopGradient(h)
}

// energyOfNoise is the energy that scales the noise of a layer whose input has
// the given number of features, or channels.
func (l Density) energyOfNoise(e *graph.Node, features int) *graph.Node {
	if l.Clip {
		if _, isLDL := l.Energy.(energy.LDL); isLDL {
			e = graph.ClipScalar(e, 0, float64(features))
		}
	}
	if !l.Attached {
		e = graph.StopGradient(e)
	}
	return e
}

// noiseLogVariance is log gamma or log beta, one entry for each output.
func (l Density) noiseLogVariance(s *model.Scope, like *graph.Node, name string, rows, columns int) *graph.Node {
	return params.New(s, like, name, params.Variational, params.Constant(2*math.Log(l.InitStd)), rows, columns)
}

// constantVariance is the part of the variance that does not depend on the
// energy, beta D/2 or beta (see PlainBias), of an energy of D dimensions. 1e-16
// gives the square root of a variance that underflows a derivative.
func (l Density) constantVariance(logBeta *graph.Node, dimensions int) *graph.Node {
	scale := float64(dimensions) / 2
	if l.PlainBias {
		scale = 1
	}
	return graph.AddScalar(graph.MulScalar(graph.Exp(logBeta), scale), 1e-16)
}

func (l Density) withDefaults() Density {
	if l.PriorStd < 0 || l.InitStd < 0 {
		panic(fmt.Errorf("dul.Density: PriorStd %g and InitStd %g must not be negative", l.PriorStd, l.InitStd))
	}
	if l.Energy == nil {
		l.Energy = energy.LDL{}
	}
	if l.PriorStd == 0 {
		l.PriorStd = 1
	}
	if l.InitStd == 0 {
		l.InitStd = 1e-3
	}
	return l
}
