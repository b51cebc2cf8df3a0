package runner

import (
	"math"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
)

func imageExperiment(method, fidelity string) experiment.Experiment {
	return experiment.Experiment{Study: experiment.Images, Method: method, Dataset: experiment.CIFAR10, Network: experiment.ResNet14,
		Epochs: 200, Samples: 25, Fidelity: fidelity, Scale: experiment.Full}
}

func imageRecipe(t *testing.T, e experiment.Experiment) ImageRecipe {
	t.Helper()
	r, err := ImageRecipeOf(e)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The recipes are the two columns of the table of differences.
func TestImageRecipesOfTheFidelities(t *testing.T) {
	text := imageRecipe(t, imageExperiment(experiment.Density, experiment.Paper))
	want := ImageRecipe{Recipe: train.ResNet14(10), InitStd: 1e-3, Rank1: 0.1, DropoutRate: 0.1, Alpha: 0.1}
	if text != want {
		t.Errorf("paper: %+v, want %+v", text, want)
	}
	code := imageRecipe(t, imageExperiment(experiment.Density, experiment.Released))
	want = ImageRecipe{Recipe: train.ResNet14(10).Released(), InitStd: 1e-4, Rank1: 0.1, DropoutRate: 0.1, Alpha: 1e-3,
		Uniform: true, Clip: true, ReplicatePadding: true, ChannelBias: true, FixedBetaPrior: true, NegatedLogDet: true,
		ReleasedStats: true, DoubledConvAlpha: true}
	if code != want {
		t.Errorf("released: %+v, want %+v", code, want)
	}
	// Setting every option to the other fidelity's value must give its recipe.
	e := imageExperiment(experiment.Density, experiment.Paper)
	e.Options = map[string]string{"alpha": "0.001"}
	for _, d := range ImageDifferences() {
		if d.Paper != d.Released && !strings.Contains(d.Released, " ") && d.Name != "likelihood_scale" {
			e.Options[d.Name] = d.Released
		}
	}
	if got := imageRecipe(t, e); got != want {
		t.Errorf("paper with the options %v: %+v, want the released recipe %+v", e.Options, got, want)
	}
	for name, c := range map[string]struct {
		change func(*experiment.Experiment)
		check  func(ImageRecipe) bool
	}{
		"MFVI":      {func(e *experiment.Experiment) { e.Method = experiment.MFVI }, func(r ImageRecipe) bool { return r.LearningRate == 0.01 && r.PretrainEpochs == 0 }},
		"CIFAR-100": {func(e *experiment.Experiment) { e.Dataset = experiment.CIFAR100 }, func(r ImageRecipe) bool { return r.WeightDecay == 2e-4 }},
		"WRN":       {func(e *experiment.Experiment) { e.Network = experiment.WRN28x10 }, func(r ImageRecipe) bool { return r.BatchSize == 64 && r.WeightDecay == 5e-4 }},
		"epochs":    {func(e *experiment.Experiment) { e.Epochs = 3 }, func(r ImageRecipe) bool { return r.Epochs == 3 && r.PretrainEpochs == 1 }},
		"MFVI with a rate": {func(e *experiment.Experiment) {
			e.Method, e.Options = experiment.MFVI, map[string]string{"learning_rate": "0.3"}
		}, func(r ImageRecipe) bool { return r.LearningRate == 0.3 }},
	} {
		e := imageExperiment(experiment.Density, experiment.Paper)
		c.change(&e)
		if got := imageRecipe(t, e); !c.check(got) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestImageOptions(t *testing.T) {
	valid := map[string]string{"noise": "uniform01", "init_std": "0.2", "prior_std": "2", "clip": "true", "detach": "false", "variance": "plain",
		"variance_d": "channels", "beta_prior": "e", "padding": "replicate", "mixture_factors": "zeros", "mixture_fraction": "0.2", "log_det": "negated",
		"dropout_rate": "0.3", "alpha": "0.5", "conv_alpha": "doubled", "adaptive_alpha": "true", "inducing_points": "7", "block_dropout": "0.2", "rank1_noise": "channel", "optimizer": "adam",
		"learning_rate": "0.2", "batch_size": "32", "weight_decay": "0.01", "decay": "all", "energy_optimizer": "joint", "energy_groups": "by-name", "energy_rate": "0.1",
		"energy_decay": "0.1", "likelihood_scale": "0.5", "pretrain_epochs": "0", "channel_stats": "released", "augmentation": "false", "precision": "bfloat16"}
	plain := imageRecipe(t, imageExperiment(experiment.Density, experiment.Paper))
	if len(ImageDifferences()) != len(valid) {
		t.Errorf("there are %d options, this test knows %d", len(ImageDifferences()), len(valid))
	}
	for _, d := range ImageDifferences() {
		e := imageExperiment(experiment.Density, experiment.Paper)
		e.Options = map[string]string{d.Name: valid[d.Name]}
		if got, err := ImageRecipeOf(e); err != nil || got == plain {
			t.Errorf("option %s=%s changes nothing (error %v)", d.Name, valid[d.Name], err)
		}
		for _, wrong := range []string{"nonsense", "-1"} {
			e.Options[d.Name] = wrong
			if _, err := ImageRecipeOf(e); err == nil || !strings.Contains(err.Error(), d.Name) || !strings.Contains(err.Error(), wrong) {
				t.Errorf("option %s=%s: error %v", d.Name, wrong, err)
			}
		}
	}
	e := imageExperiment(experiment.Density, experiment.Paper)
	e.Options = map[string]string{"hidden_layers": "3"}
	if _, err := ImageRecipeOf(e); err == nil || !strings.Contains(err.Error(), "noise") {
		t.Errorf("an option of another study: error %v, want one that lists the options", err)
	}
}

// The options of a recipe must reach the layers and the training.
func TestImageRecipeReachesLayersAndTraining(t *testing.T) {
	layers := func(method string, options map[string]string) any {
		e := imageExperiment(method, experiment.Paper)
		e.Options = options
		network, err := imageRecipe(t, e).network(e)
		if err != nil {
			t.Fatal(err)
		}
		return network.Layers
	}
	for name, c := range map[string]struct{ got, want any }{
		"density": {layers(experiment.Density, nil), dul.Density{Energy: energy.LDL{}, InitStd: 1e-3, Gradients: dul.Detached, HalfD: true}},
		"density, every option": {layers(experiment.Density, map[string]string{"noise": "uniform01", "init_std": "0.2", "prior_std": "2", "clip": "true", "detach": "false", "variance": "plain",
			"variance_d": "channels", "beta_prior": "e", "padding": "replicate"}),
			dul.Density{Energy: energy.LDL{ReplicatePadding: true}, InitStd: 0.2, PriorStd: 2, Noise: stochastic.Uniform01(), Clip: true, Gradients: dul.Attached, ConvEtaPriorStd: math.Exp(0.5)}},
		"density, variance_d": {layers(experiment.Density, map[string]string{"variance_d": "channels"}),
			dul.Density{Energy: energy.LDL{}, InitStd: 1e-3, Gradients: dul.Detached, HalfD: true, HalfChannels: true}},
		"mixture": {layers(experiment.DensityRank1Mix, map[string]string{"mixture_fraction": "0.0125", "log_det": "negated", "mixture_factors": "zeros", "clip": "true"}),
			dul.Density{Energy: energy.Rank1Mixture{Fraction: 0.0125, NegatedLogDet: true, ZeroFactors: true}, InitStd: 1e-3, Gradients: dul.Detached, HalfD: true}},
		"mfvi":          {layers(experiment.MFVI, map[string]string{"prior_std": "0.5"}), baselines.MFVI{InitStd: 1e-3, PriorStd: 0.5}},
		"mcdropout":     {layers(experiment.MCDropout, map[string]string{"dropout_rate": "0.3"}), baselines.MCDropout{Rate: 0.3}},
		"vdropout":      {layers(experiment.VDropout, map[string]string{"alpha": "0.5", "conv_alpha": "doubled", "adaptive_alpha": "true"}), baselines.VDropout{Alpha: 0.5, DoubledConvAlpha: true, Adaptive: true}},
		"rank1":         {layers(experiment.Rank1, map[string]string{"rank1_noise": "channel"}), baselines.Rank1{InitStd: 1e-3, Tied: true}},
		"deterministic": {layers(experiment.Deterministic, nil), baselines.Deterministic{}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
	e := imageExperiment(experiment.Density, experiment.Paper)
	e.Options = map[string]string{"likelihood_scale": "0.5", "batch_size": "7", "augmentation": "false", "decay": "all"}
	fit := imageRecipe(t, e).classification(e)
	variational := fit.Groups[slices.IndexFunc(fit.Groups, func(g train.Group) bool { return slices.Contains(g.Roles, params.Variational) })]
	if fit.LogLikelihoodScale != 0.5 || fit.BatchSize != 7 || fit.Augmentation != nil || fit.Padding != 0 || variational.Optimizer.(train.SGD).Decay != 1e-4 {
		t.Errorf("training: %+v", fit)
	}
	e.Options = nil
	if fit := imageRecipe(t, e).classification(e); fit.LogLikelihoodScale != 1 || fit.Padding != 4 || fit.Epochs != 200 || fit.PretrainEpochs != 1 {
		t.Errorf("training: %+v", fit)
	}
	for network, blocks := range map[string][]int{experiment.ResNet14: {2, 2, 2}, experiment.ResNet20: {3, 3, 3}, experiment.WRN28x10: {4, 4, 4}} {
		e.Network = network
		if got, err := imageRecipe(t, e).network(e); err != nil || !slices.Equal(got.Blocks, blocks) {
			t.Errorf("%s: blocks %v (error %v), want %v", network, got.Blocks, err, blocks)
		}
	}
	e.Network = "resnet15"
	if _, err := imageRecipe(t, e).network(e); err == nil || !strings.Contains(err.Error(), "resnet15") {
		t.Errorf("an unknown network: %v", err)
	}
}
