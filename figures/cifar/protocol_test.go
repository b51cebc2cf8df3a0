package cifar

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// The names of two options that many tests change.
const (
	optionBatch    = "batch_size"
	optionInducing = "inducing_points"
)

// with is the protocol with options.
func with(t *testing.T, p Protocol, options map[string]string) Protocol {
	t.Helper()
	must.Do(t, methods.Set(&p, options))
	return p
}

// The numbers of the paper's text and of the released code, by method, data set and network.
func TestRecipes(t *testing.T) {
	noEnergies := energyRecipe{}
	ofPaper := energyRecipe{Rate: 1e-2, Decay: 1e-5, LikelihoodScale: 1, PretrainEpochs: 1}
	ofReleased := energyRecipe{Joint: true, ByName: true, Decay: 1e-5, LikelihoodScale: 0.01, PretrainEpochs: 1}
	ldl := dul.Density{Energy: energy.LDL{}, InitStd: 1e-3, PriorStd: 1}
	paper := func(batch int, rate, decay float64, e energyRecipe) recipe {
		return recipe{Optimizer: methods.SGD, BatchSize: batch, LearningRate: rate, WeightDecay: decay, Decay: methods.DecayWeights, Energies: e,
			ChannelStats: ComputedStats, Augmentation: true, Precision: Float32}
	}
	released := func(e energyRecipe, decay float64) recipe {
		r := paper(128, 0.1, decay, e)
		r.Decay, r.ChannelStats = methods.DecayAll, ReleasedStats
		return r
	}
	process := func(r recipe, inducing int, dropout float64) recipe {
		r.Inducing, r.BlockDropout, r.ProcessRate = inducing, dropout, float64(min(inducing, 1))
		r.LengthScale = 1 - r.ProcessRate
		return r
	}
	for _, c := range []struct {
		name     string
		protocol Protocol
		method   methods.Method
		layers   nets.Layers
		want     recipe
	}{
		{"density", Paper(CIFAR10, ResNet14), methods.Density, ldl, paper(128, 0.1, 1e-4, ofPaper)},
		{"density, CIFAR-100", Paper(CIFAR100, ResNet14), methods.Density, ldl, paper(128, 0.1, 2e-4, ofPaper)},
		{"density, WRN", Paper(CIFAR100, WRN28x10), methods.Density, ldl, paper(64, 0.05, 5e-4, ofPaper)},
		{
			"density, released", Released(CIFAR10, ResNet20), methods.Density, dul.Density{
				Energy: energy.LDL{ReplicatePadding: true}, InitStd: 1e-4, PriorStd: 1, Noise: stochastic.Uniform01(), Clip: true,
				Gradients: dul.Detached, HalfD: true, HalfChannels: true, ConvEtaPriorStd: math.Exp(0.5),
			},
			released(ofReleased, 1e-4),
		},
		{
			"mixture", Paper(CIFAR10, ResNet14), methods.DensityMixture,
			dul.Density{Energy: energy.Rank1Mixture{Fraction: 0.1}, InitStd: 1e-3, PriorStd: 1}, paper(128, 0.1, 1e-4, ofPaper),
		},
		{
			"mixture, released", Released(CIFAR100, ResNet20), methods.DensityMixture, dul.Density{
				Energy: energy.Rank1Mixture{Fraction: 0.1, NegatedLogDet: true}, InitStd: 1e-4, PriorStd: 1, Noise: stochastic.Uniform01(), Gradients: dul.Detached,
				HalfD: true, HalfChannels: true, ConvEtaPriorStd: math.Exp(0.5),
			},
			released(ofReleased, 2e-4),
		},
		{"MFVI", Paper(CIFAR10, ResNet14), methods.MFVI, baselines.MFVI{InitStd: 1e-3, PriorStd: 0.1}, paper(128, 0.01, 1e-4, noEnergies)},
		{"MFVI, WRN", Paper(CIFAR10, WRN28x10), methods.MFVI, baselines.MFVI{InitStd: 1e-3, PriorStd: 0.1}, paper(64, 0.01, 5e-4, noEnergies)},
		{"MC dropout", Paper(CIFAR10, ResNet14), methods.MCDropout, baselines.MCDropout{Rate: 0.1}, paper(128, 0.1, 1e-4, noEnergies)},
		{"variational dropout", Paper(CIFAR10, ResNet14), methods.VDropout, baselines.VDropout{Alpha: 0.1}, paper(128, 0.1, 1e-4, noEnergies)},
		{
			"variational dropout, released", Released(CIFAR10, ResNet20), methods.VDropout,
			baselines.VDropout{Alpha: 1e-3, DoubledConvAlpha: true}, released(noEnergies, 1e-4),
		},
		{"rank-1", Paper(CIFAR10, ResNet14), methods.Rank1, baselines.Rank1{InitStd: 1e-3, PriorStd: 0.1}, paper(128, 0.1, 1e-4, noEnergies)},
		{"deterministic", Paper(CIFAR10, ResNet14), methods.Deterministic, baselines.Deterministic{}, paper(128, 0.1, 1e-4, noEnergies)},
		{"ensemble", Paper(CIFAR10, ResNet14), methods.Ensemble, baselines.Deterministic{}, paper(128, 0.1, 1e-4, noEnergies)},
		{"SNGP", Paper(CIFAR10, ResNet14), methods.SNGP, baselines.Headless{}, process(paper(128, 0.05, 5e-4, noEnergies), 0, 0)},
		{"DUE", Paper(CIFAR100, ResNet14), methods.DUE, baselines.Headless{}, process(paper(128, 0.1, 5e-4, noEnergies), 100, 0)},
		{"SNGP, WRN", Paper(CIFAR10, WRN28x10), methods.SNGP, baselines.Headless{}, process(paper(128, 0.05, 5e-4, noEnergies), 0, 0.3)},
		{"DUE, WRN", Paper(CIFAR10, WRN28x10), methods.DUE, baselines.Headless{}, process(paper(128, 0.1, 5e-4, noEnergies), 10, 0.3)},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Layers = c.layers
			if got, _, err := c.protocol.recipe(c.method); err != nil || got != c.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

// Every option can be set by name, reaches the recipe of a method that it is for, and is refused for one that it is
// not for. The numbers of a method can be changed too.
func TestOptions(t *testing.T) {
	var everyone methods.List // has a use for it
	none := methods.List{methods.Deterministic, methods.SNGP}
	onlyLDL, onlyMixture := methods.List{methods.DensityMixture}, methods.List{methods.Density}
	density := func(r recipe) dul.Density { return r.Layers.(dul.Density) }
	mixture := func(r recipe) energy.Rank1Mixture { return density(r).Energy.(energy.Rank1Mixture) }
	cases := []struct {
		name, value string
		method      methods.Method
		not         methods.List
		check       func(r recipe) bool
	}{
		{"noise", "uniform01", methods.Density, methods.List{methods.MFVI}, func(r recipe) bool { return density(r).Noise == stochastic.Uniform01() }},
		{"init_std", "0.2", methods.MFVI, none, func(r recipe) bool { return r.Layers.(baselines.MFVI).InitStd == 0.2 }},
		{"prior_std", "2", methods.Density, none, func(r recipe) bool { return density(r).PriorStd == 2 }},
		{"clip", "true", methods.Density, none, func(r recipe) bool { return density(r).Clip }},
		{"mean_energy", "true", methods.Density, none, func(r recipe) bool { return density(r).MeanEnergy }},
		{"gradients", "detached", methods.Density, none, func(r recipe) bool { return density(r).Gradients == dul.Detached }},
		{"variance", "half-d", methods.Density, none, func(r recipe) bool { return density(r).HalfD }},
		{"variance_d", "channels", methods.Density, none, func(r recipe) bool { return density(r).HalfChannels }},
		{"beta_prior", "e", methods.Density, none, func(r recipe) bool { return density(r).ConvEtaPriorStd == math.Exp(0.5) }},
		{"padding", "replicate", methods.Density, onlyLDL, func(r recipe) bool { return density(r).Energy.(energy.LDL).ReplicatePadding }},
		{"mixture_factors", "zeros", methods.DensityMixture, onlyMixture, func(r recipe) bool { return mixture(r).ZeroFactors }},
		{"mixture_fraction", "0.0125", methods.DensityMixture, onlyMixture, func(r recipe) bool { return mixture(r).Fraction == 0.0125 }},
		{"log_det", "negated", methods.DensityMixture, onlyMixture, func(r recipe) bool { return mixture(r).NegatedLogDet }},
		{"generative_weights", "true", methods.Density, none, func(r recipe) bool { return r.training(1, nil).WeightEnergies }},
		{"dropout_rate", "0.3", methods.MCDropout, methods.List{methods.VDropout}, func(r recipe) bool { return r.Layers.(baselines.MCDropout).Rate == 0.3 }},
		{"alpha", "0.5", methods.VDropout, methods.List{methods.MCDropout}, func(r recipe) bool { return r.Layers.(baselines.VDropout).Alpha == 0.5 }},
		{"conv_alpha", "doubled", methods.VDropout, none, func(r recipe) bool { return r.Layers.(baselines.VDropout).DoubledConvAlpha }},
		{"adaptive_alpha", "true", methods.VDropout, none, func(r recipe) bool { return r.Layers.(baselines.VDropout).Adaptive }},
		{"rank1_noise", "channel", methods.Rank1, methods.List{methods.MFVI}, func(r recipe) bool { return r.Layers.(baselines.Rank1).Tied }},
		{"process_rate", "10", methods.DUE, methods.List{methods.Density}, func(r recipe) bool { return r.weightGroups()[1].Rate == 10 }},
		{optionInducing, "7", methods.DUE, methods.List{methods.SNGP, methods.Density}, func(r recipe) bool { return r.Inducing == 7 }},
		{"length_scale", "20", methods.SNGP, methods.List{methods.DUE, methods.Density}, func(r recipe) bool { return r.LengthScale == 20 }},
		{"block_dropout", "0.2", methods.SNGP, everyone, func(r recipe) bool { return r.BlockDropout == 0.2 }},
		{"optimizer", "adam", methods.Density, everyone, func(r recipe) bool {
			return r.weightGroups()[0].Optimizer == train.Adam{Beta1: 0.9, Beta2: 0.99, Decay: 1e-4, Decoupled: true}
		}},
		{"learning_rate", "0.3", methods.MFVI, everyone, func(r recipe) bool { return r.training(1, nil).Schedule(0, 9) == 0.3 }},
		{optionBatch, "32", methods.DUE, everyone, func(r recipe) bool { return r.training(1, nil).BatchSize == 32 }},
		{"weight_decay", "0.01", methods.DUE, everyone, func(r recipe) bool { return r.weightGroups()[0].Optimizer == train.SGD{Momentum: 0.9, Decay: 0.01} }},
		{"decay", "all", methods.Density, everyone, func(r recipe) bool { return r.weightGroups()[1].Optimizer == train.SGD{Momentum: 0.9, Decay: 1e-4} }},
		{"energy_optimizer", "joint", methods.Density, none, func(r recipe) bool {
			return r.energyGroups()[0].Optimizer == train.SGD{Momentum: 0.9, Decay: 1e-5} && r.training(1, nil).LogLikelihoodScale == 0.01
		}},
		{"energy_groups", "by-name", methods.Density, none, func(r recipe) bool { return len(r.energyGroups()) == 2 }},
		{"energy_rate", "0.2", methods.Density, none, func(r recipe) bool { return r.energyGroups()[0].Rate == 0.2/0.1 }},
		{"energy_decay", "0.1", methods.Density, none, func(r recipe) bool { return r.energyGroups()[0].Optimizer == train.Adam{Decay: 0.1} }},
		{"likelihood_scale", "0.5", methods.Density, none, func(r recipe) bool { return r.training(1, nil).LogLikelihoodScale == 0.5 }},
		{"pretrain_epochs", "0", methods.Density, none, func(r recipe) bool { return r.training(1, nil).PretrainEpochs == 0 }},
		{"channel_stats", "released", methods.Density, everyone, func(r recipe) bool { return r.ChannelStats == ReleasedStats }},
		{"augmentation", "false", methods.Density, everyone, func(r recipe) bool { run := r.training(1, nil); return run.Augmentation == nil && run.Padding == 0 }},
		{"precision", "bfloat16", methods.Density, everyone, func(r recipe) bool { return r.training(1, nil).BFloat16 }},
		{"sample", "true", methods.Density, everyone, func(r recipe) bool { return r.Sample }},
	}
	if fields := methods.Fields(Protocol{}, results.Images); len(fields) != len(cases) {
		t.Errorf("there are %d options, this test knows %d", len(fields), len(cases))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			option := map[string]string{c.name: c.value}
			if c.name == "variance_d" { // the D of a variance that has one
				option["variance"] = "half-d"
			}
			p := with(t, Paper(CIFAR10, ResNet14), option)
			if got := p.Experiments(c.method)[0].Options; !reflect.DeepEqual(got, option) {
				t.Errorf("its experiments have the options %v", got)
			}
			r, _, err := p.recipe(c.method)
			if err != nil || !c.check(r) {
				t.Errorf("recipe %+v, error %v", r, err)
			}
			for _, m := range c.not {
				if err := p.Check(m); err == nil || !strings.Contains(err.Error(), m.Name+" has no use for the option ") || !strings.Contains(err.Error(), c.name+":") {
					t.Errorf("for %s: error %v", m.Name, err)
				}
				if options := p.Experiments(m)[0].Options; options[c.name] != "" {
					t.Errorf("experiments with %s have the options %v", m.Name, options)
				}
			}
			for _, wrong := range []string{"nonsense", "-1"} {
				e := p.Experiments(c.method)[0]
				e.Options = map[string]string{c.name: wrong}
				if _, err := ProtocolOf(e); err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), wrong) {
					t.Errorf("with the value %s: error %v", wrong, err)
				}
			}
		})
	}
	t.Run("of the energies of a joint optimizer", func(t *testing.T) {
		p := with(t, Paper(CIFAR10, ResNet14), map[string]string{"energy_optimizer": "joint", "energy_rate": "0.2"})
		fails(t, "a rate that nothing has", p.Check(methods.Density), "option energy_rate")
	})
	t.Run("that departs from the released code", func(t *testing.T) {
		p := Released(CIFAR10, ResNet20)
		p.Clip, p.Precision = false, BFloat16
		want := map[string]string{"clip": "false", "precision": "bfloat16"}
		if got := p.Experiments(methods.Density)[0].Options; !reflect.DeepEqual(got, want) {
			t.Errorf("options %v, want %v", got, want)
		}
	})
}

// denseOnly is a family that no image network can be made of.
type denseOnly struct{}

func (denseOnly) Dense(_ *model.Scope, x *graph.Node, _ int) *graph.Node { return x }

func TestProtocolsThatCannotBe(t *testing.T) {
	e := Paper(CIFAR10, ResNet14).Experiments(methods.MFVI)[0]
	for _, c := range []struct {
		want   string
		change func(e *results.Experiment)
	}{
		{`no image data set "mnist"; there are cifar10 and cifar100`, func(e *results.Experiment) { e.Dataset = "mnist" }},
		{`no network "resnet15"`, func(e *results.Experiment) { e.Network = "resnet15" }},
		{`no option "hidden_layers"; the options are noise, `, func(e *results.Experiment) { e.Options = map[string]string{"hidden_layers": "3"} }},
		{`the study "toy"`, func(e *results.Experiment) { e.Study = results.Toy }},
	} {
		t.Run(c.want, func(t *testing.T) {
			e := e
			c.change(&e)
			if _, err := ProtocolOf(e); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
	for _, c := range []struct {
		want   string
		change func(p *Protocol, m *methods.Method)
	}{
		{"denseOnly, have no convolution", func(_ *Protocol, m *methods.Method) {
			m.Layers = func(methods.Options) nets.Layers { return denseOnly{} }
		}},
		{`no image data set "mnist"`, func(p *Protocol, _ *methods.Method) { p.Dataset = "mnist" }},
		{`no network ""`, func(p *Protocol, _ *methods.Method) { p.Network = "" }},
		{"0 images to train on, 50000 held out and 0 to test on were asked for, of 50000 and 10000", func(p *Protocol, _ *methods.Method) { p.HeldOut = 50000 }},
		{"49000 images to train on, 1001 held out", func(p *Protocol, _ *methods.Method) { p.TrainN, p.HeldOut = 49000, 1001 }},
		{"10001 to test on", func(p *Protocol, _ *methods.Method) { p.TestN = 10001 }},
		{"the name of the method", func(_ *Protocol, m *methods.Method) { m.Name = "Mine" }},
	} {
		t.Run(c.want, func(t *testing.T) {
			p, m := Paper(CIFAR10, ResNet14), methods.MFVI
			c.change(&p, &m)
			if err := p.Check(m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Run refuses a protocol of a run that cannot be before it reads images.
func TestRunsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(p *Protocol)
	}{
		{"train_n is -1, want at least 0", func(p *Protocol) { p.TrainN = -1 }},
		{"samples is 0, want at least 1", func(p *Protocol) { p.Samples = 0 }},
		{"there are no experiments", func(p *Protocol) { p.Seeds = nil }},
		{"the seed 4 is there twice", func(p *Protocol) { p.Seeds = []uint64{4, 4} }},
	} {
		t.Run(c.want, func(t *testing.T) {
			p := Paper(CIFAR10, ResNet14).Quick()
			p.Sample = true
			p.Progress = func(_ float64, note string) { t.Errorf("it runs: %s", note) }
			c.change(&p)
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // what is not refused must not train for long
			if _, err := run(ctx, &Runner{}, p, methods.List{methods.Density}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What is trained how: the roles of the groups, and the parameters that the released code tells by their names.
func TestTraining(t *testing.T) {
	ofRole := func(r recipe, role params.Role, path string) int {
		return slices.IndexFunc(r.training(1, nil).Groups, func(g train.Group) bool {
			return slices.Contains(g.Roles, role) && (g.Match == nil || g.Match(path))
		})
	}
	own := Paper(CIFAR10, ResNet14).resolve(methods.Density)
	joint := Released(CIFAR10, ResNet20).resolve(methods.DensityMixture)
	for _, c := range []struct {
		name      string
		recipe    recipe
		role      params.Role
		path      string
		optimizer train.Optimizer
		rate      float64
	}{
		{"weights", own, params.Weight, "/model/w", train.SGD{Momentum: 0.9, Decay: 1e-4}, 0},
		{"variational", own, params.Variational, "/model/gamma_log_variance", train.SGD{Momentum: 0.9}, 0},
		{"energies", own, params.Generative, "/model/factors", train.Adam{Decay: 1e-5}, 1e-2 / 0.1},
		{"released, weights", joint, params.Weight, "/model/w", train.SGD{Momentum: 0.9, Decay: 1e-4}, 0},
		{"released, posterior", joint, params.Variational, "/model/mean", train.SGD{Momentum: 0.9, Decay: 1e-4}, 0},
		{"released, noise", joint, params.Variational, "/model/beta_log_variance", train.SGD{Momentum: 0.9, Decay: 1e-5}, 0},
		{"released, factors", joint, params.Generative, "/model/factors", train.SGD{Momentum: 0.9, Decay: 1e-4}, 0},
		{"released, diagonal", joint, params.Generative, "/model/log_diagonal", train.SGD{Momentum: 0.9, Decay: 1e-5}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := ofRole(c.recipe, c.role, c.path)
			if at < 0 {
				t.Fatal("in no group")
			}
			if g := c.recipe.training(1, nil).Groups[at]; g.Optimizer != c.optimizer || math.Abs(g.Rate-c.rate) > 1e-15 {
				t.Errorf("%+v at the rate %v", g.Optimizer, g.Rate)
			}
		})
	}
	run := own.training(200, nil)
	if run.Epochs != 200 || run.PretrainEpochs != 1 || run.Padding != 4 || len(run.PretrainGroups) != 1 || run.PretrainGroups[0].Roles[0] != params.Generative {
		t.Errorf("training: %+v", run)
	}
	if half := run.Schedule(100, 200); math.Abs(half-0.05) > 1e-15 {
		t.Errorf("half way the learning rate is %v, want half of 0.1", half)
	}
	for _, m := range processes { // falls in steps
		r := Paper(CIFAR10, WRN28x10).resolve(m)
		schedule := r.training(200, m.ImageSchedule).Schedule
		if schedule(0, 200) != r.LearningRate || math.Abs(schedule(60, 200)-r.LearningRate/5) > 1e-15 {
			t.Errorf("%s: rate %v, then %v", m.Name, schedule(0, 200), schedule(60, 200))
		}
	}
	for _, c := range []struct {
		name   string
		blocks []int
	}{{ResNet14, []int{2, 2, 2}}, {ResNet20, []int{3, 3, 3}}, {WRN28x10, []int{4, 4, 4}}} {
		if _, n, err := Paper(CIFAR10, c.name).recipe(methods.SNGP); err != nil || !slices.Equal(n.Blocks, c.blocks) || (n.Dropout == 0.3) != (c.name == WRN28x10) {
			t.Errorf("%s: blocks %v with dropout %v (error %v), want %v", c.name, n.Blocks, n.Dropout, err, c.blocks)
		}
	}
}

// The identities of all experiments, in their order, are part of the committed result files. Each experiment can be
// run, and is that of its protocol.
func TestSets(t *testing.T) {
	sum, count := sha256.New(), 0
	for _, set := range Sets() {
		for _, e := range set.Experiments {
			if set.Name != "processor" && set.Name != "processor-cifar100" { // which change with the options that are chosen
				count++
				fmt.Fprintln(sum, set.Name, e.ID())
			}
			p := must.Get(ProtocolOf(e))(t)
			m, _ := methods.All().Named(e.Method)
			if again := p.Experiments(m)[0]; again.ID() != e.ID() {
				t.Errorf("%s: %v comes back as %v", set.Name, e, again)
			}
			if err := errors.Join(e.Validate(), p.Check(m)); err != nil {
				t.Errorf("%s: %v: %v", set.Name, e, err)
			}
		}
	}
	const want = "aee04a34c05210fe3b225ad88a2ecb8f66d8ecf83be4bb4efe7ce272833d2150"
	if got := hex.EncodeToString(sum.Sum(nil)); count != 390 || got != want {
		t.Errorf("%d experiments with the sum %s, want 390 with %s: a change of an identity orphans committed results", count, got, want)
	}
}
