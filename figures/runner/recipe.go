package runner

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
)

// A Recipe is everything that turns an experiment into a training run, with one
// field for each place where the paper's text and the authors' released code
// differ.
type Recipe struct {
	HiddenLayers int     // 2 in the text, 3 in the code
	Width        int     // 50; the text has 100 for protein and year
	InitStd      float64 // posterior standard deviation at the start
	PriorStd     float64 // of the method's prior; 0 is its own default
	Uniform      bool    // density noise is U[0,1) instead of N(0,1)
	Clip         bool    // the LDL energy is clipped to [0, D]
	Attached     bool    // the noise's gradient flows into the energy
	PlainBias    bool    // variance gamma E + beta instead of gamma E + beta D/2
	ZeroFactors  bool    // rank-1 factors start at zero
	Rank1        float64 // rank-1 components as a fraction of the width

	// Joint trains the energy models with the SGD of the weights and the
	// generative objective times 0.01; otherwise they have an Adam of their
	// own and the objective as it is.
	Joint bool
	// DecayAll applies weight decay to every parameter, also to variational
	// ones and to the observation variance.
	DecayAll bool
	// PretrainEpochs are spent on the energy models alone, before.
	PretrainEpochs int
	// Adam trains weights and variational parameters instead of SGD with momentum.
	Adam bool
}

// A Difference is one named option of an experiment.
type Difference struct {
	Name            string // of the option
	Paper, Released string // its values in the two fidelities
	Doc             string
}

// An option is a difference, and how it changes a recipe of type R.
type option[R any] struct {
	Difference
	set func(recipe *R, value string) error
}

// either is the setter of a field with two values.
func either[R any](field func(*R) *bool, yes, no string) func(*R, string) error {
	return func(r *R, value string) error {
		switch value {
		case yes:
			*field(r) = true
		case no:
			*field(r) = false
		default:
			return fmt.Errorf("is %q, want %s or %s", value, no, yes)
		}
		return nil
	}
}

func count[R any](field func(*R) *int) func(*R, string) error {
	return func(r *R, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return fmt.Errorf("is %q, want a whole number that is not negative", value)
		}
		*field(r) = n
		return nil
	}
}

func atLeastOne[R any](field func(*R) *int) func(*R, string) error {
	set := count(field)
	return func(r *R, value string) error {
		if err := set(r, value); err != nil || *field(r) == 0 {
			return fmt.Errorf("is %q, want a whole number of at least 1", value)
		}
		return nil
	}
}

func positive[R any](field func(*R) *float64) func(*R, string) error {
	return func(r *R, value string) error {
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("is %q, want a positive number", value)
		}
		*field(r) = v
		return nil
	}
}

// rate is the setter of a probability below 1.
func rate[R any](field func(*R) *float64) func(*R, string) error {
	return func(r *R, value string) error {
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= 0 && v < 1) {
			return fmt.Errorf("is %q, want a number from 0 to below 1", value)
		}
		*field(r) = v
		return nil
	}
}

// apply changes a recipe by an experiment's options.
func apply[R any](r *R, known []option[R], e experiment.Experiment) error {
	for _, name := range slices.Sorted(maps.Keys(e.Options)) {
		i := slices.IndexFunc(known, func(o option[R]) bool { return o.Name == name })
		if i < 0 {
			names := make([]string, len(known))
			for k, o := range known {
				names[k] = o.Name
			}
			return fmt.Errorf("experiment %v: there is no option %q; the options are %s", e, name, strings.Join(names, ", "))
		}
		if err := known[i].set(r, e.Options[name]); err != nil {
			return fmt.Errorf("experiment %v: option %q %w", e, name, err)
		}
	}
	return nil
}

func differences[R any](options []option[R]) []Difference {
	list := make([]Difference, len(options))
	for i, o := range options {
		list[i] = o.Difference
	}
	return list
}

// Differences lists every option of the toy and the UCI experiments: the places
// where the paper's text and the released code disagree on the regression half.
// An experiment of either fidelity may set any of them, one at a time or several.
func Differences() []Difference { return differences(regressionOptions()) }

func regressionOptions() []option[Recipe] {
	return []option[Recipe]{
		{Difference{"noise", "gaussian", "uniform01", "distribution of the density layer's noise"}, either(func(r *Recipe) *bool { return &r.Uniform }, "uniform01", "gaussian")},
		{Difference{"init_std", "density 0.03, mfvi 0.01, rank1 0.1", "0.1", "posterior standard deviation at the start; the text states 0.1, which suits U[0,1) noise with its deviation of 0.289 but is too much for N(0,1), and with which MFVI does not fit"}, positive(func(r *Recipe) *float64 { return &r.InitStd })},
		{Difference{"prior_std", "density 1, rank1 and mfvi 0.1; mfvi on the toy 1", "density 1, rank1 and mfvi 0.1", "standard deviation of the method's prior"}, positive(func(r *Recipe) *float64 { return &r.PriorStd })},
		{Difference{"hidden_layers", "2", "3", "hidden layers of the UCI networks"}, count(func(r *Recipe) *int { return &r.HiddenLayers })},
		{Difference{"width", "50, protein and year 100", "50", "units of a hidden layer"}, count(func(r *Recipe) *int { return &r.Width })},
		{Difference{experiment.OptionClip, "false", "true", "energies are clipped to [0, D]"}, either(func(r *Recipe) *bool { return &r.Clip }, "true", "false")},
		{Difference{"detach", "true", "true", "input and energy are constants for the gradients of noise and generative objective; the text does not say"}, either(func(r *Recipe) *bool { return &r.Attached }, "false", "true")},
		{Difference{"variance", "half-d", "half-d", "gamma E + beta D/2 (D inputs), or gamma E + beta as the text has it (plain)"}, either(func(r *Recipe) *bool { return &r.PlainBias }, "plain", "half-d")},
		{Difference{"energy_optimizer", "own", "joint", "the energy models have an Adam of their own with decay 1e-5, or share the weights' SGD with decay 1e-4 and the generative objective times 0.01; the text does not say"}, either(func(r *Recipe) *bool { return &r.Joint }, "joint", "own")},
		{Difference{"decay", "weights", "all", "what the weight decay of 1e-4 applies to"}, either(func(r *Recipe) *bool { return &r.DecayAll }, "all", "weights")},
		{Difference{experiment.OptionOptimizer, "sgd; adam for sngp and due", "sgd; adam for sngp and due", "of weights and variational parameters: SGD with momentum 0.9, or Adam"}, either(func(r *Recipe) *bool { return &r.Adam }, "adam", "sgd")},
		{Difference{"pretrain_epochs", "10", "10", "epochs of generative pretraining; the text has none"}, count(func(r *Recipe) *int { return &r.PretrainEpochs })},
		{Difference{"mixture_factors", "orthogonal", "zeros", "start of the rank-1 factors"}, either(func(r *Recipe) *bool { return &r.ZeroFactors }, "zeros", "orthogonal")},
		{Difference{"mixture_fraction", "0.1", "0.1", "rank-1 components as a fraction of the layer's width"}, positive(func(r *Recipe) *float64 { return &r.Rank1 })},
	}
}

// RecipeOf returns an experiment's recipe: its fidelity's defaults, then its options.
func RecipeOf(e experiment.Experiment) (Recipe, error) {
	r := Recipe{HiddenLayers: 2, Width: 50, InitStd: 0.03, Rank1: 0.1, PretrainEpochs: 10}
	switch {
	case e.Study == experiment.Toy:
		r.HiddenLayers, r.InitStd, r.PretrainEpochs = 1, 0.01, e.Epochs/2
		if e.Dataset == experiment.TwoMoons {
			r.HiddenLayers = 2
		}
		if e.Method == experiment.MFVI {
			// Its default of 0.1 is too tight for 50 units to bend into a
			// cubic: MFVI then misses the data, which is not what Figure 1a shows.
			r.PriorStd = 1
		}
	case e.Fidelity == experiment.Released:
		r = Recipe{HiddenLayers: 3, Width: 50, InitStd: 0.1, Uniform: true, Clip: true, Joint: true,
			DecayAll: true, PretrainEpochs: 10, ZeroFactors: true, Rank1: 0.1}
	case e.Dataset == "protein" || e.Dataset == experiment.Year:
		r.Width = 100
	}
	if e.Study == experiment.UCI {
		switch e.Method {
		case experiment.Rank1:
			r.InitStd = 0.1
		case experiment.MFVI:
			if e.Fidelity == experiment.Paper {
				// With the text's 0.1 MFVI does not learn at all on UCI.
				r.InitStd = 0.01
			}
		case experiment.SNGP, experiment.DUE:
			// As the DUE authors' code trains regression; with momentum they do not fit
			// in as many epochs.
			r.Adam = true
		}
	}
	if err := apply(&r, regressionOptions(), e); err != nil {
		return Recipe{}, err
	}
	return r, nil
}

// layers is the family of layers of a method.
func (r Recipe) layers(method string) (nets.Layers, error) {
	density := dul.Density{InitStd: r.InitStd, PriorStd: r.PriorStd, Clip: r.Clip, Attached: r.Attached, PlainBias: r.PlainBias}
	if r.Uniform {
		density.Noise = stochastic.Uniform01()
	}
	switch method {
	case experiment.Deterministic, experiment.Ensemble:
		return baselines.Deterministic{}, nil
	case experiment.SNGP:
		return baselines.SpectralNormed{Bound: sngpBound}, nil
	case experiment.DUE:
		return baselines.SpectralNormed{Bound: dueBound}, nil
	case experiment.MFVI:
		return baselines.MFVI{InitStd: r.InitStd, PriorStd: r.PriorStd}, nil
	case experiment.MCDropout:
		return baselines.MCDropout{}, nil
	case experiment.VDropout:
		return baselines.VDropout{}, nil
	case experiment.Rank1:
		return baselines.Rank1{InitStd: r.InitStd, PriorStd: r.PriorStd}, nil
	case experiment.Density:
		return density, nil
	case experiment.DensityRank1Mix:
		density.Energy = energy.Rank1Mixture{Fraction: r.Rank1, ZeroFactors: r.ZeroFactors}
		return density, nil
	}
	return nil, fmt.Errorf("there is no method %q", method)
}

// The fixed numbers of the UCI protocol (appendix of the paper).
const (
	batchSize    = 128
	learningRate = 0.01
	momentum     = 0.9
	weightDecay  = 1e-4
	// energyPrior is the decay of the energy models' parameters, an implicit
	// Gaussian prior p(omega), which the paper leaves open.
	energyPrior = 1e-5
	// jointScale multiplies the generative objective in the released code.
	jointScale = 0.01
)

// regression returns the network of an experiment and its training run.
func (r Recipe) regression(e experiment.Experiment) (nets.Network, train.Trainer, error) {
	layers, err := r.layers(e.Method)
	if err != nil {
		return nil, train.Trainer{}, err
	}
	var network nets.Network = nets.MLP{Layers: layers, Widths: slices.Repeat([]int{r.Width}, r.HiddenLayers)}
	t := train.Trainer{
		LogLikelihoodScale: 1,
		Epochs:             e.Epochs,
		BatchSize:          batchSize,
	}
	switch e.Method {
	case experiment.Density, experiment.DensityRank1Mix:
		t.PretrainEpochs = r.PretrainEpochs
	case experiment.SNGP, experiment.DUE: // whose head needs the data, see fitSNGP and fitDUE
		network = nets.ResidualMLP{Layers: layers, Width: r.Width, Depth: r.HiddenLayers}
	}
	if e.Study == experiment.Toy {
		t.Schedule = train.Cosine(toyRate)
		t.Groups = []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}}
		return network, t, nil
	}
	t.Schedule = train.Cosine(learningRate)
	sgd := func(decay float64) train.Optimizer { return train.SGD{Momentum: momentum, Decay: decay} }
	variationalDecay := 0.0
	if r.DecayAll {
		variationalDecay = weightDecay
	}
	generative := train.Group{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{Decay: energyPrior}}
	if r.Joint {
		t.LogLikelihoodScale = jointScale
		generative.Optimizer = sgd(weightDecay)
	}
	t.Groups = []train.Group{
		generative,
		{Roles: []params.Role{params.Weight}, Optimizer: sgd(weightDecay)},
		{Roles: []params.Role{params.Variational, params.Likelihood}, Optimizer: sgd(variationalDecay)},
	}
	if r.Adam {
		t.Groups[1].Optimizer = train.Adam{Decay: weightDecay}
		// The noise variance has to fall further than Adam goes.
		t.Groups[2].Roles = []params.Role{params.Likelihood}
		t.Groups = append(t.Groups, train.Group{Roles: []params.Role{params.Variational}, Optimizer: train.Adam{Decay: variationalDecay}})
	}
	t.PretrainGroups = []train.Group{generative}
	return network, t, nil
}
