package train_test

import (
	"math"
	"slices"
	"testing"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
)

// groupOf is the first group with a role.
func groupOf(t *testing.T, groups []train.Group, role params.Role) train.Group {
	t.Helper()
	i := slices.IndexFunc(groups, func(g train.Group) bool { return slices.Contains(g.Roles, role) })
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
		run := c.recipe.Classification()
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
	if got, want := groupOf(t, adam.Classification().Groups, params.Weight).Optimizer, (train.Adam{Beta1: 0.9, Beta2: 0.99, Decay: 1e-4, Decoupled: true}); got != want {
		t.Errorf("with Adam weights are trained by %+v, want %+v", got, want)
	}
}
