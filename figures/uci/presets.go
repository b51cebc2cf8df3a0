// Package uci has the UCI regressions of the paper's appendix: the data sets with their splits, the presets, and the tables,
// figures and claims about the results.
//
//	list, err := experiment.Cross(uci.Paper, uci.On("yacht", "boston"), methods.Density, methods.Rank1)
package uci

import (
	"fmt"
	"slices"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
)

// Paper trains as the paper's text says: two hidden layers of 50 units, of 100 on Protein and Year, and 100 epochs of
// SGD. Where the text is silent, the choices are this project's: ten epochs of generative pretraining, energy models with
// an Adam of their own, and a weight decay on weights alone. SNGP and DUE are trained by Adam, since with momentum they
// do not fit in as many epochs. The data can also be your own.
func Paper(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	return textSettings("uci.Paper", data).experiment(data, defaults.Fill(m))
}

// textSettings are those of Paper.
func textSettings(preset string, data experiment.Source) settings {
	width := 50
	if d, is := data.(Data); is && (d.Name == "protein" || d.Name == Year) {
		width = 100
	}
	return settings{preset: preset, widths: []int{width, width}, energyScale: 1, energies: train.Adam{Decay: 1e-5}}
}

// Released trains as the authors' code does: three hidden layers of 50 units on random splits, energy models
// that are trained like the weights with a hundredth of their objective, a weight decay on all parameters, and noise
// that is uniform in [0, 1), unless the method has another; see methods.Released. Data with the published splits (Gal) get
// random ones in their place.
func Released(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	if d, is := data.(Data); is && d.Kind == Gal {
		d.Kind = Random
		data = d
	}
	return releasedAsSplit(data, m)
}

// releasedAsSplit is Released on the data's own splits.
func releasedAsSplit(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	m = defaults.Fill(m)
	m.Layers = methods.Released(m.Layers, false)
	return settings{
		preset: "uci.Released", widths: []int{50, 50, 50}, energyScale: 0.01, energies: momentum(weightDecay), otherDecay: weightDecay,
	}.experiment(data, m)
}

// Adam is Paper with Adam for all methods.
func Adam(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	s := textSettings("uci.Adam", data)
	s.optimizer = adam
	return s.experiment(data, defaults.Fill(m))
}

// Long is Paper with 400 epochs, and Longest with 4000.
var Long, Longest = lasting("uci.Long", 400), lasting("uci.Longest", 4000)

func lasting(preset string, epochs int) experiment.Preset {
	return func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		e, err := Paper(data, m)
		e.Preset, e.Recipe.Epochs = preset, epochs
		return e, err
	}
}

// StoppedEarly is Longest with the epoch that is best on the held-out examples. Of Data these are a fifth of the training
// part; other sources need some of their own.
func StoppedEarly(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	if d, is := data.(Data); is {
		d.HeldOut = true
		data = d
	}
	e, err := Longest(data, m)
	e.Preset, e.Recipe.EarlyStopping = "uci.StoppedEarly", true
	return e, err
}

// weightDecay is the decay of the weights.
const weightDecay = 1e-4

// The optimizers to choose from.
const sgd, adam = "sgd", "adam"

// momentum is the optimizer of the paper's appendix.
func momentum(decay float64) train.Optimizer { return train.SGD{Momentum: 0.9, Decay: decay} }

// settings are those in which the text and the authors' code differ, and the optimizer.
type settings struct {
	preset      string
	widths      []int
	optimizer   string          // sgd or adam; "" is Adam for Gaussian processes and SGD for all others
	energyScale float64         // of the objective of energy models
	energies    train.Optimizer // of energy models
	otherDecay  float64         // of variational parameters and the observation variance
}

// experiment is the experiment of a method whose layers are filled in.
func (s settings) experiment(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	l := likelihood.Gaussian{}
	t, err := experiment.MethodTraits(m, l)
	if err != nil {
		return experiment.Experiment{}, fmt.Errorf("%s: %s: %w", s.preset, m.Name, err)
	}
	r := experiment.Recipe{Settings: train.Settings{Epochs: 100, BatchSize: 128, Schedule: train.Cosine{Start: 0.01}}, Samples: 1, SharedNoise: true}
	if t.Noise {
		r.Samples = 10
	}
	r.Groups = s.groups(t, s.optimizer == adam || s.optimizer == "" && m.IsProcess())
	if t.Energies {
		r.PretrainEpochs, r.PretrainGroups, r.LogLikelihoodScale = 10, r.Groups[:1], s.energyScale
	}
	task := experiment.Task{Name: nameOf(data), Data: data, Network: nets.MLP{Widths: s.widths}, Likelihood: l, Metrics: []experiment.Metric{experiment.Regression}}
	return experiment.Experiment{Task: task, Method: m, Recipe: r, Preset: s.preset}, nil
}

// groups are the groups of parameters of networks with these traits. Energy models, if there are some, come first.
func (s settings) groups(t experiment.Traits, withAdam bool) []train.Group {
	var groups []train.Group
	add := func(o train.Optimizer, roles ...params.Role) {
		if slices.ContainsFunc(roles, t.Has) {
			groups = append(groups, train.Group{Roles: roles, Optimizer: o, Rate: 1})
		}
	}
	add(s.energies, params.Generative)
	if !withAdam {
		add(momentum(weightDecay), params.Weight)
		add(momentum(s.otherDecay), params.Variational, params.Likelihood)
		return groups
	}
	add(train.Adam{Decay: weightDecay}, params.Weight)
	add(momentum(s.otherDecay), params.Likelihood) // the noise variance has to fall further than Adam goes
	add(train.Adam{Decay: s.otherDecay}, params.Variational)
	return groups
}

// nameOf is the name of data as a task.
func nameOf(data experiment.Source) string {
	switch d := data.(type) {
	case Data:
		name := d.Name
		if d.Kind != Gal {
			name = fmt.Sprintf("%s, %v splits", name, d.Kind)
		}
		if d.Calibration { // whose results have more numbers
			name += ", calibration"
		}
		return name
	case experiment.Table:
		if d.Set != nil {
			return d.Set.Name
		}
	}
	return fmt.Sprintf("%T", data)
}

// defaults fill in what a method leaves open.
var defaults = methods.Defaults{InitStd: 0.1, MFVIPriorStd: 0.1, VDropoutAlpha: 0.1, Inducing: 50}
