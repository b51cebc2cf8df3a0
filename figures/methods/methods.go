// Package methods lists the ways to get uncertain predictions that this project compares, as values: the paper's, and
// those that it adds. Numbers that are 0 are filled in by presets, such as uci.Paper.
package methods

import (
	"cmp"
	"math"
	"reflect"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/figures/experiment"
)

// The methods that the paper compares.
var (
	// MFVI is mean-field variational inference (Blundell et al. 2015).
	MFVI = experiment.Method{Key: "mfvi", Name: "MFVI", Layers: baselines.MFVI{}}
	// MCDropout is Monte Carlo dropout (Gal & Ghahramani 2016).
	MCDropout = experiment.Method{Key: "mcdropout", Name: "MC Dropout", Layers: baselines.MCDropout{}}
	// VDropout is variational dropout (Kingma et al. 2015).
	VDropout = experiment.Method{Key: "vdropout", Name: "Variational Dropout", Layers: baselines.VDropout{}}
	// Rank1 is the rank-1 Bayesian neural network (Dusenberry et al. 2020).
	Rank1 = experiment.Method{Key: "rank1", Name: "Rank-1 BNN", Layers: baselines.Rank1{}}
	// Density is the paper's method with its full-rank LDL energy.
	Density = experiment.Method{Key: "density", Name: "Density Uncertainty", Layers: dul.Density{Energy: energy.LDL{}}}
	// DensityMixture is the paper's method with a mixture of rank-1 Gaussians as energy model, a tenth as many as the
	// layer is wide.
	DensityMixture = experiment.Method{Key: "density-rank1mix", Name: "Density, rank-1 mixture", Layers: dul.Density{Energy: energy.Rank1Mixture{Fraction: 0.1}}}
	// SNGP is the spectral-normalised neural Gaussian process (Liu et al. 2020).
	SNGP = experiment.Method{Key: "sngp", Name: "SNGP", Layers: baselines.SNGP{}}
	// DUE is deterministic uncertainty estimation (van Amersfoort et al. 2021).
	DUE = experiment.Method{Key: "due", Name: "DUE", Layers: baselines.DUE{}}
)

// The methods that this project adds.
var (
	// DensityDiagonal is the density layer with a Gaussian of independent inputs as energy model.
	DensityDiagonal = experiment.Method{Key: "density-diagonal", Name: "Density, diagonal", Layers: dul.Density{Energy: energy.Diagonal{}}}
	// DensityConstant is the density layer whose energy is the same for all inputs: its noise follows nothing. It is the
	// control that says whether the energy matters.
	DensityConstant = experiment.Method{Key: "density-constant", Name: "Density, constant", Layers: dul.Density{Energy: energy.Constant{}}}
	// DensityMean is the density layer with the mean of its energies in the place of each: as much noise, the same for
	// all inputs. It is the control that says whether it matters where the noise goes.
	DensityMean = experiment.Method{Key: "density-mean", Name: "Density, mean energy", Layers: dul.Density{Energy: energy.LDL{}, MeanEnergy: true}}
	// Deterministic is a single network without weight noise.
	Deterministic = experiment.Method{Key: "deterministic", Name: "Deterministic", Layers: baselines.Deterministic{}}
	// Ensemble is a deep ensemble of five deterministic networks (Lakshminarayanan et al. 2017).
	Ensemble = experiment.Method{Key: "ensemble", Name: "Deep Ensemble", Layers: baselines.Deterministic{}, Members: 5}
	// Laplace is the deterministic network with a Laplace posterior of its last layer (Daxberger et al. 2021).
	Laplace = experiment.Method{Key: "laplace", Name: "Last-layer Laplace", Layers: baselines.Deterministic{}, Program: LaplaceSampler{}}
	// LaplaceDraws is Laplace with the probabilities of classes by 100 draws of the last layer.
	LaplaceDraws = experiment.Method{Key: "laplace-draws", Name: "Laplace, by draws", Layers: baselines.Deterministic{}, Program: LaplaceSampler{Draws: 100}}
	// SWAG is the deterministic network that is averaged over its training (Maddox et al. 2019). Start was chosen among 0.5, 0.7
	// and 0.8, with the settings of uci.Paper, by held-out training examples of five splits of each small UCI set.
	SWAG = experiment.Method{Key: "swag", Name: "SWAG", Layers: baselines.Deterministic{}, Program: SWAGSampler{Start: 0.5, Rank: 20, Draws: 30}}
)

// All are the methods in the order of the paper's tables, then those with which it compares images only, or not at all.
func All() []experiment.Method {
	return []experiment.Method{
		Deterministic, MFVI, MCDropout, VDropout, Rank1, Density, DensityMixture, Ensemble, SNGP, DUE, DensityDiagonal, DensityConstant, DensityMean, Laplace, SWAG,
	}
}

// AfterTraining are Laplace and SWAG, which act after the training of a plain network. They were added when the others had been
// compared. They predict by so many draws; with 0 they are Laplace and SWAG as they stand.
func AfterTraining(draws int) []experiment.Method {
	laplace, swag, sampler := Laplace, SWAG, SWAG.Program.(SWAGSampler)
	sampler.Draws = cmp.Or(draws, sampler.Draws)
	laplace.Program, swag.Program = LaplaceSampler{Draws: draws}, sampler
	return []experiment.Method{laplace, swag}
}

// WithNoise sets how strong the noise of a family of layers is at the start, above 0: the posterior's standard deviation, or
// the rate or variance of a dropout. is is false for a family without such a setting.
func WithNoise(layers nets.Layers, noise float64) (changed nets.Layers, is bool) {
	for _, family := range []nets.Layers{
		dul.Density{InitStd: noise}, baselines.MFVI{InitStd: noise}, baselines.Rank1{InitStd: noise}, baselines.MCDropout{Rate: noise}, baselines.VDropout{Alpha: noise},
	} {
		if changed, is = over(layers, family); is {
			return changed, true
		}
	}
	return layers, false
}

// Defaults are the numbers that a preset gives to methods of this project which leave them open.
type Defaults struct {
	InitStd       float64 // the posterior's standard deviation at the start, of all methods that have one
	MFVIPriorStd  float64
	VDropoutAlpha float64
	Inducing      int     // of DUE
	LengthScale   float64 // of SNGP
}

// Fill returns a method without open numbers, which are the fields that are zero: with these defaults and, where all presets
// agree, an LDL energy and a prior of standard deviation 1 for density layers, of 0.1 for rank-1 factors, and a dropout rate of 0.1.
// A family of your own stays as it is.
func (d Defaults) Fill(m experiment.Method) experiment.Method {
	m = Values(m)
	for _, family := range []nets.Layers{
		dul.Density{InitStd: d.InitStd, PriorStd: 1, Energy: energy.LDL{}}, baselines.MFVI{InitStd: d.InitStd, PriorStd: d.MFVIPriorStd},
		baselines.Rank1{InitStd: d.InitStd, PriorStd: 0.1}, baselines.MCDropout{Rate: 0.1}, baselines.VDropout{Alpha: d.VDropoutAlpha},
		baselines.DUE{Inducing: d.Inducing}, baselines.SNGP{LengthScale: d.LengthScale},
	} {
		if filled, is := over(family, m.Layers); is {
			m.Layers = filled
		}
	}
	return m
}

// over returns a struct with those fields of another that are not zero in the place of its own, if both are of one type.
func over(below, above nets.Layers) (both nets.Layers, is bool) {
	t, values := reflect.TypeOf(above), reflect.ValueOf(above)
	if t == nil || t != reflect.TypeOf(below) {
		return below, false
	}
	fields := reflect.New(t).Elem()
	fields.Set(reflect.ValueOf(below))
	for i := range fields.NumField() {
		if !values.Field(i).IsZero() {
			fields.Field(i).Set(values.Field(i))
		}
	}
	return fields.Interface().(nets.Layers), true
}

// Values returns the method with a value in the place of a pointer as Layers. Both are the same method.
func Values(m experiment.Method) experiment.Method {
	if p := reflect.ValueOf(m.Layers); p.Kind() == reflect.Pointer && !p.IsNil() {
		if value, is := p.Elem().Interface().(nets.Layers); is {
			m.Layers = value
		}
	}
	return m
}

// Released returns layers with the settings of the authors' code for what a user left open, which are the fields
// that are zero. The settings of density layers and of variational dropout differ from the paper's; all other families stay
// as they are. In networks without convolutions, factors of energy.Rank1Mixture start at 0.
func Released(layers nets.Layers, convolutions bool) nets.Layers {
	switch l := layers.(type) {
	case dul.Density:
		if l.Noise == nil {
			l.Noise = stochastic.Uniform01()
		}
		l.Gradients, l.ConvEtaPriorStd = cmp.Or(l.Gradients, dul.Detached), cmp.Or(l.ConvEtaPriorStd, math.Exp(0.5))
		l.HalfD, l.HalfChannels = true, true
		switch model := l.Energy.(type) {
		case energy.Rank1Mixture: // which the code does not clip
			model.NegatedLogDet, model.ZeroFactors = true, model.ZeroFactors || !convolutions
			l.Energy = model
			return l
		case energy.LDL:
			model.ReplicatePadding = true
			l.Energy = model
		}
		l.Clip = true
		return l
	case baselines.VDropout:
		l.DoubledConvAlpha = true
		return l
	}
	return layers
}
