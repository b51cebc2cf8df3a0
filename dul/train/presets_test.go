package train_test

import (
	"math"
	"slices"
	"testing"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
)

// groupOf is the first group with a role's parameters whose names are nothing special.
func groupOf(t *testing.T, groups []train.Group, role params.Role) train.Group {
	t.Helper()
	i := slices.IndexFunc(groups, func(g train.Group) bool {
		return slices.Contains(g.Roles, role) && (g.Match == nil || g.Match("/model/log_variance"))
	})
	if i < 0 {
		t.Fatalf("no group has role %s", role)
	}
	return groups[i]
}

// The presets must be the numbers of the paper's text and of the released code.
func TestRecipes(t *testing.T) {
	for _, c := range []struct {
		name             string
		recipe           train.Recipe
		batch            int
		rate             float64
		weights, others  train.Optimizer
		energies         train.Optimizer
		energyRate       float64
		scale            float64
		epochs, pretrain int
	}{
		{"ResNet-14, 10 classes", train.ResNet14(10), 128, 0.1,
			train.SGD{Momentum: 0.9, Decay: 1e-4}, train.SGD{Momentum: 0.9}, train.Adam{Decay: 1e-5}, 1e-2, 1, 200, 1},
		{"ResNet-14, 100 classes", train.ResNet14(100), 128, 0.1,
			train.SGD{Momentum: 0.9, Decay: 2e-4}, train.SGD{Momentum: 0.9}, train.Adam{Decay: 1e-5}, 1e-2, 1, 200, 1},
		{"WRN-28", train.WideResNet28(), 64, 0.05,
			train.SGD{Momentum: 0.9, Decay: 5e-4}, train.SGD{Momentum: 0.9}, train.Adam{Decay: 1e-5}, 1e-2, 1, 200, 1},
		{"WRN-28 as released", train.WideResNet28().Released(), 64, 0.05,
			train.SGD{Momentum: 0.9, Decay: 5e-4}, train.SGD{Momentum: 0.9, Decay: 5e-4}, train.SGD{Momentum: 0.9, Decay: 1e-5}, 0.05, 0.01, 200, 1},
	} {
		run := c.recipe.Trainer()
		if run.Epochs != c.epochs || run.PretrainEpochs != c.pretrain || run.BatchSize != c.batch || run.LogLikelihoodScale != c.scale {
			t.Errorf("%s: %d epochs, %d of pretraining, batches of %d, scale %g", c.name, run.Epochs, run.PretrainEpochs, run.BatchSize, run.LogLikelihoodScale)
		}
		if first, middle := run.Schedule(0, 100), run.Schedule(50, 100); first != c.rate || math.Abs(middle-c.rate/2) > 1e-15 {
			t.Errorf("%s: learning rate %g, in the middle %g, want %g and half of it", c.name, first, middle, c.rate)
		}
		weights, others := groupOf(t, run.Groups, params.Weight), groupOf(t, run.Groups, params.Variational)
		if weights.Optimizer != c.weights || others.Optimizer != c.others || weights.Rate != 0 || others.Rate != 0 {
			t.Errorf("%s: weights by %+v, variational parameters by %+v", c.name, weights, others)
		}
		for _, groups := range [][]train.Group{run.Groups, run.PretrainGroups} {
			energies := groupOf(t, groups, params.Generative)
			rate := c.rate
			if energies.Rate != 0 {
				rate *= energies.Rate
			}
			if energies.Optimizer != c.energies || math.Abs(rate-c.energyRate) > 1e-15 {
				t.Errorf("%s: energy models by %+v at %g", c.name, energies, rate)
			}
		}
		if len(run.PretrainGroups) != 1 {
			t.Errorf("%s: %d groups in pretraining, want the energy models alone", c.name, len(run.PretrainGroups))
		}
	}
	adam := train.ResNet14(10)
	adam.Adam = true
	if got, want := groupOf(t, adam.Trainer().Groups, params.Weight).Optimizer, (train.Adam{Beta1: 0.9, Beta2: 0.99, Decay: 1e-4, Decoupled: true}); got != want {
		t.Errorf("with Adam weights are trained by %+v, want %+v", got, want)
	}
}

// In the released code the energy models' parameters are chosen by name: the noise
// variances are among them, rank-1 factors and mixture logits are not.
func TestEnergiesByName(t *testing.T) {
	const decay, energyDecay = 5e-4, 1e-5
	for _, c := range []struct {
		name, path string
		role       params.Role
		explicit   float64
		byName     float64
		pretrained bool
	}{
		{"density noise, gamma", "/model/network/block/conv/gamma_log_variance", params.Variational, decay, energyDecay, false},
		{"density noise, beta", "/model/network/block/conv/beta_log_variance", params.Variational, decay, energyDecay, false},
		{"MFVI", "/model/network/block/conv/weights_log_variance", params.Variational, decay, decay, false},
		{"Rank-1", "/model/network/block/conv/in_factor_log_variance", params.Variational, decay, decay, false},
		{"energy", "/model/network/block/conv/energy/log_variance", params.Generative, energyDecay, energyDecay, true},
		{"factors", "/model/network/block/conv/energy/factors", params.Generative, energyDecay, decay, false},
		{"logits", "/model/network/block/conv/energy/mixture_logits", params.Generative, energyDecay, decay, false},
		{"weights", "/model/network/block/conv/weights", params.Weight, decay, decay, false},
	} {
		for _, byName := range []bool{false, true} {
			recipe := train.WideResNet28().Released()
			recipe.EnergiesByName = byName
			want := c.explicit
			if byName {
				want = c.byName
			}
			has := func(g train.Group) bool {
				return slices.Contains(g.Roles, c.role) && (g.Match == nil || g.Match(c.path))
			}
			run := recipe.Trainer()
			i := slices.IndexFunc(run.Groups, has)
			if i < 0 || run.Groups[i].Optimizer != (train.SGD{Momentum: 0.9, Decay: want}) {
				t.Errorf("%s, by name %v: group %d of %+v, want a decay of %g", c.name, byName, i, run.Groups, want)
			}
			if got, want := slices.ContainsFunc(run.PretrainGroups, has), c.pretrained || !byName && c.role == params.Generative; got != want {
				t.Errorf("%s, by name %v: pretraining is %v, want %v", c.name, byName, got, want)
			}
		}
	}
	if !train.ResNet14(10).Released().EnergiesByName || train.ResNet14(10).EnergiesByName {
		t.Error("the paper's recipe chooses energy models by role, the released one by name")
	}
}

// SNGP's and DUE's rate falls after 60, 120 and 160 of 200 epochs, here of 10 steps each.
func TestStepsOfTheGaussianProcesses(t *testing.T) {
	for _, c := range []struct {
		name string
		run  train.Trainer
		rate float64
	}{{"SNGP", train.SNGP(), 0.05}, {"DUE", train.DUE(), 0.1}} {
		t.Run(c.name, func(t *testing.T) {
			if c.run.Epochs != 200 || c.run.BatchSize != 128 || c.run.PretrainEpochs != 0 {
				t.Errorf("%d epochs, batches of %d, %d for pretraining", c.run.Epochs, c.run.BatchSize, c.run.PretrainEpochs)
			}
			for _, at := range []struct {
				step   int
				factor float64
			}{{0, 1}, {599, 1}, {600, 0.2}, {1199, 0.2}, {1200, 0.04}, {1600, 0.008}, {1999, 0.008}} {
				if got, want := c.run.Schedule(at.step, 2000), c.rate*at.factor; math.Abs(got-want) > 1e-15 {
					t.Errorf("the rate of step %d is %g, want %g", at.step, got, want)
				}
			}
		})
	}
}
