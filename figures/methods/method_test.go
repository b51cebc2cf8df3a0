package methods_test

import (
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
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
)

// The layers with which each method is trained in each study and fidelity.
func TestLayersOfTheStudies(t *testing.T) {
	deterministic := baselines.Deterministic{}
	dropout := baselines.MCDropout{Rate: 0.1}
	density := func(initStd float64) dul.Density {
		return dul.Density{Energy: energy.LDL{}, InitStd: initStd, PriorStd: 1}
	}
	with := func(d dul.Density, e dul.EnergyModel) dul.Density { d.Energy = e; return d }
	released := density(0.1)
	released.Gradients, released.HalfD = dul.Detached, true
	released.Noise, released.Clip, released.HalfChannels, released.ConvEtaPriorStd = stochastic.Uniform01(), true, true, math.Exp(0.5)
	released.Energy = energy.LDL{ReplicatePadding: true}
	releasedMixture := with(released, energy.Rank1Mixture{Fraction: 0.1, ZeroFactors: true, NegatedLogDet: true})
	releasedMixture.Clip = false

	of := func(method string) methods.Method {
		m, has := methods.All().Named(method)
		if !has {
			t.Fatalf("no method %s", method)
		}
		return m
	}
	study := map[string]func(*testing.T, methods.Method) methods.Options{
		"uci": func(t *testing.T, m methods.Method) methods.Options {
			p, _, err := uci.ProtocolOf(uci.Paper().On("yacht").Experiments(m)[0], methods.All())
			if err != nil {
				t.Fatal(err)
			}
			return p.Options
		},
		"uci released": func(t *testing.T, m methods.Method) methods.Options {
			p, _, err := uci.ProtocolOf(uci.Released().On("yacht").Experiments(m)[0], methods.All())
			if err != nil {
				t.Fatal(err)
			}
			return p.Options
		},
		"toy": func(t *testing.T, m methods.Method) methods.Options {
			p, _, err := toy.ProtocolOf(toy.Cubic().Experiments(m)[0], methods.All())
			if err != nil {
				t.Fatal(err)
			}
			return p.Options
		},
		"moons": func(t *testing.T, m methods.Method) methods.Options {
			p, _, err := toy.ProtocolOf(toy.Moons().Experiments(m)[0], methods.All())
			if err != nil {
				t.Fatal(err)
			}
			return p.Options
		},
	}
	for _, c := range []struct {
		study, method string
		want          nets.Layers
	}{
		{"uci", "deterministic", deterministic},
		{"uci", "mfvi", baselines.MFVI{InitStd: 0.1, PriorStd: 0.1}},
		{"uci", "mcdropout", dropout},
		{"uci", "vdropout", baselines.VDropout{Alpha: 0.1}},
		{"uci", "rank1", baselines.Rank1{InitStd: 0.1, PriorStd: 0.1}},
		{"uci", "density", density(0.1)},
		{"uci", "density-rank1mix", with(density(0.1), energy.Rank1Mixture{Fraction: 0.1})},
		{"uci", "density-diagonal", with(density(0.1), energy.Diagonal{})},
		{"uci", "density-constant", with(density(0.1), energy.Constant{})},
		{"uci", "ensemble", deterministic},
		{"uci released", "mfvi", baselines.MFVI{InitStd: 0.1, PriorStd: 0.1}},
		{"uci released", "vdropout", baselines.VDropout{Alpha: 0.1, DoubledConvAlpha: true}},
		{"uci released", "rank1", baselines.Rank1{InitStd: 0.1, PriorStd: 0.1}},
		{"uci released", "density", released},
		{"uci released", "density-rank1mix", releasedMixture},
		{"uci released", "density-diagonal", with(released, energy.Diagonal{})},
		{"toy", "deterministic", deterministic},
		{"toy", "mfvi", baselines.MFVI{InitStd: 0.01, PriorStd: 1}},
		{"toy", "mcdropout", dropout},
		{"toy", "vdropout", baselines.VDropout{Alpha: 0.1}},
		{"toy", "rank1", baselines.Rank1{InitStd: 0.01, PriorStd: 0.1}},
		{"toy", "density", density(0.01)},
		{"toy", "density-rank1mix", with(density(0.01), energy.Rank1Mixture{Fraction: 0.1})},
		{"moons", "density", density(0.01)},
		{"moons", "ensemble", deterministic},
	} {
		t.Run(c.study+" "+c.method, func(t *testing.T) {
			m := of(c.method)
			if got := m.Layers(study[c.study](t, m)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %#v\nwant %#v", got, c.want)
			}
		})
	}
}

// What a method has of its own goes before the setting's, and what is given before both.
func TestFill(t *testing.T) {
	usual := methods.Options{InitStd: 1e-3, Optimizer: methods.SGD, LearningRate: 0.1, BatchSize: 64, WeightDecay: 1e-4, BlockDropout: 0.2}
	images := methods.Setting{Study: results.Images, Fidelity: results.Paper, Dataset: "cifar10", Network: "resnet14"}
	wide, released, regression := images, images, methods.Setting{Study: results.UCI, Fidelity: results.Paper, Dataset: "yacht"}
	wide.Network, released.Fidelity = methods.WRN28x10, results.Released
	releasedWide := released
	releasedWide.Network = methods.WRN28x10
	for _, c := range []struct {
		name    string
		method  methods.Method
		setting methods.Setting
		given   methods.Options
		want    func(o *methods.Options) // changes of usual
	}{
		{"nothing of its own", methods.Deterministic, images, methods.Options{}, func(*methods.Options) {}},
		{"given values stay", methods.SNGP, images, methods.Options{InitStd: 5, Optimizer: methods.Adam, LearningRate: 5, BatchSize: 5, WeightDecay: 5, BlockDropout: 0.5},
			func(o *methods.Options) {
				o.InitStd, o.Optimizer, o.LearningRate, o.BatchSize, o.WeightDecay, o.BlockDropout = 5, methods.Adam, 5, 5, 5, 0.5
			}},
		{"switches stay as they are", methods.Deterministic, images, methods.Options{Clip: true}, func(o *methods.Options) { o.Clip = true }},
		{"MFVI's rate on images", methods.MFVI, images, methods.Options{}, func(o *methods.Options) { o.PriorStd, o.LearningRate = 0.1, 0.01 }},
		{"MFVI on UCI", methods.MFVI, regression, methods.Options{}, func(o *methods.Options) { o.PriorStd = 0.1 }},
		{"MC dropout", methods.MCDropout, images, methods.Options{}, func(o *methods.Options) { o.DropoutRate = 0.1 }},
		{"variational dropout", methods.VDropout, images, methods.Options{}, func(o *methods.Options) { o.Alpha = 0.1 }},
		{"variational dropout, released", methods.VDropout, released, methods.Options{}, func(o *methods.Options) { o.Alpha = 1e-3 }},
		{"variational dropout, released, wide", methods.VDropout, releasedWide, methods.Options{}, func(o *methods.Options) { o.Alpha = 0.1 }},
		{"Rank-1 on images", methods.Rank1, images, methods.Options{}, func(o *methods.Options) { o.PriorStd = 0.1 }},
		{"Rank-1 on UCI", methods.Rank1, regression, methods.Options{}, func(o *methods.Options) { o.PriorStd = 0.1 }},
		{"density", methods.Density, images, methods.Options{}, func(o *methods.Options) { o.PriorStd = 1 }},
		{"density, diagonal", methods.DensityDiagonal, images, methods.Options{}, func(o *methods.Options) { o.PriorStd = 1 }},
		{"density, constant", methods.DensityConstant, regression, methods.Options{}, func(o *methods.Options) { o.PriorStd = 1 }},
		{"density mixture", methods.DensityMixture, images, methods.Options{}, func(o *methods.Options) { o.PriorStd, o.MixtureFraction = 1, 0.1 }},
		{"SNGP on UCI", methods.SNGP, regression, methods.Options{}, func(o *methods.Options) { o.Optimizer = methods.Adam }},
		{"SNGP on UCI with SGD", methods.SNGP, regression, methods.Options{Optimizer: methods.SGD}, func(*methods.Options) {}},
		{"SNGP on images", methods.SNGP, images, methods.Options{}, func(o *methods.Options) { o.LearningRate, o.WeightDecay, o.BatchSize = 0.05, 5e-4, 128 }},
		{"DUE on images", methods.DUE, images, methods.Options{}, func(o *methods.Options) { o.LearningRate, o.WeightDecay, o.BatchSize = 0.1, 5e-4, 128 }},
		{"DUE, wide", methods.DUE, wide, methods.Options{}, func(o *methods.Options) {
			o.LearningRate, o.WeightDecay, o.BatchSize, o.BlockDropout = 0.1, 5e-4, 128, 0.3
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := usual
			c.want(&want)
			if got := c.method.Fill(c.setting, c.given, usual); got != want {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
}

// constantNoise is a family of one's own: y = x W + b + sd eps.
type constantNoise struct{ sd float64 }

func (l constantNoise) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	y := params.Dense(s, x, units)
	return graph.Add(y, graph.MulScalar(stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(-2), units), l.sd))
}

// broken cannot be built.
type broken struct{}

func (broken) Dense(*model.Scope, *graph.Node, int) *graph.Node { panic("no layer") }

// A mistake in a family of one's own is an error of the run, which says what it is.
func TestBrokenFamily(t *testing.T) {
	_, err := uci.Run(t.Context(), uci.Paper().On("yacht").Quick(), methods.New("broken", broken{}))
	if err == nil || !strings.Contains(err.Error(), "broken on yacht") || !strings.Contains(err.Error(), "no layer") {
		t.Errorf("UCI: %v", err)
	}
	for _, p := range []toy.Protocol{toy.Cubic(), toy.Moons()} {
		if _, err := toy.Run(t.Context(), p.Quick(), methods.New("broken", broken{})); err == nil || !strings.Contains(err.Error(), "no layer") {
			t.Errorf("%s: %v", p.Problem, err)
		}
	}
}

// A method of one's own has the name as its title, the family whatever the options, and is known to have energies
// where its layers have.
func TestNew(t *testing.T) {
	for _, c := range []struct {
		name     string
		family   nets.Layers
		energies bool
	}{
		{"plain", baselines.Deterministic{}, false},
		{"own", constantNoise{0.1}, false},
		{"with-kl", baselines.MFVI{}, false},
		{"ldl", dul.Density{}, true},
		{"mixture", dul.Density{Energy: energy.Rank1Mixture{}}, true},
		{"broken", broken{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := methods.New(c.name, c.family)
			if m.Name != c.name || m.Title != c.name || m.HasEnergies != c.energies || slices.Contains(m.Detects, methods.ByEnergy) != c.energies || m.Networks() != 1 || m.SamplesOf(7) != 7 {
				t.Errorf("got %+v with %d networks and %d of 7 samples, want energies %t", m, m.Networks(), m.SamplesOf(7), c.energies)
			}
			if got := m.Layers(methods.ReleasedOptions()); got != c.family {
				t.Errorf("its layers are %#v, want %#v", got, c.family)
			}
			if err := m.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
	// What is known of the methods here must be what their layers show.
	for _, m := range methods.All() {
		if got := methods.New(m.Name, m.Layers(m.Fill(methods.Setting{Study: results.UCI}, methods.PaperOptions(), methods.Options{InitStd: 0.1}))).HasEnergies; m.Process == nil && got != m.HasEnergies {
			t.Errorf("%s: energies %t, its layers say %t", m.Name, m.HasEnergies, got)
		}
	}
}

func TestListValidate(t *testing.T) {
	own := methods.New("own", baselines.Deterministic{})
	nameless, layerless, negative := own, own, own
	nameless.Name, layerless.Layers, negative.Members = "Own method", nil, -1
	for _, c := range []struct {
		name string
		list methods.List
		want string
	}{
		{"all", append(methods.All(), own), ""},
		{"none", nil, ""},
		{"a bad name", methods.List{own, nameless}, `the name of the method is "Own method"`},
		{"no layers", methods.List{layerless}, "own has no layers"},
		{"negative members", methods.List{negative}, "own has -1 members"},
		{"the zero value", methods.List{{}}, "the name of the method"},
		{"two of a name", methods.List{own, methods.Density, own}, `two methods are named "own"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.list.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestList(t *testing.T) {
	all := methods.All()
	want := []string{"deterministic", "mfvi", "mcdropout", "vdropout", "rank1", "density", "density-rank1mix", "ensemble", "sngp", "due",
		"density-diagonal", "density-constant"}
	if got := all.Names(); !slices.Equal(got, want) {
		t.Errorf("the methods are %v, want %v", got, want)
	}
	if m, has := all.Named("rank1"); !has || m.Title != "Rank-1 BNN" || all.Title("rank1") != m.Title {
		t.Errorf("rank1 is %q, %t", m.Title, has)
	}
	if _, has := all.Named("none"); has || all.Title("none") != "none" {
		t.Errorf("a method that there is not has the title %q", all.Title("none"))
	}
}

// What the experiments ask of the methods, in one picture: networks, samples of ten, and what they are special in.
func TestWhatMethodsAre(t *testing.T) {
	var lines []string
	for _, m := range methods.All() {
		lines = append(lines, fmt.Sprintf("%s: %d networks, %d samples, energies %t, process %t, temperature %t, detects %v, images %d samples, schedule %t",
			m.Name, m.Networks(), m.SamplesOf(10), m.HasEnergies, m.Process != nil, m.FitsTemperature, m.Detects, m.ImageSamples, m.ImageSchedule != nil))
	}
	want := []string{
		"deterministic: 1 networks, 1 samples, energies false, process false, temperature true, detects [], images 0 samples, schedule false",
		"mfvi: 1 networks, 10 samples, energies false, process false, temperature false, detects [], images 0 samples, schedule false",
		"mcdropout: 1 networks, 10 samples, energies false, process false, temperature false, detects [], images 0 samples, schedule false",
		"vdropout: 1 networks, 10 samples, energies false, process false, temperature false, detects [], images 0 samples, schedule false",
		"rank1: 1 networks, 10 samples, energies false, process false, temperature false, detects [], images 0 samples, schedule false",
		"density: 1 networks, 10 samples, energies true, process false, temperature false, detects [_energy], images 0 samples, schedule false",
		"density-rank1mix: 1 networks, 10 samples, energies true, process false, temperature false, detects [_energy], images 0 samples, schedule false",
		"ensemble: 5 networks, 1 samples, energies false, process false, temperature false, detects [_mutualinformation], images 1 samples, schedule false",
		"sngp: 1 networks, 1 samples, energies false, process true, temperature false, detects [_dempstershafer], images 1 samples, schedule true",
		"due: 1 networks, 10 samples, energies false, process true, temperature false, detects [_entropy], images 1 samples, schedule true",
		"density-diagonal: 1 networks, 10 samples, energies true, process false, temperature false, detects [_energy], images 0 samples, schedule false",
		"density-constant: 1 networks, 10 samples, energies false, process false, temperature false, detects [], images 0 samples, schedule false",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the methods are\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// A variant has its options after those of what it is a variant of, and is nothing that the paper has.
func TestVariant(t *testing.T) {
	once := methods.Density.Variant("once", func(o *methods.Options) { o.InitStd, o.Clip = 0.2, true })
	twice := once.Variant("twice", func(o *methods.Options) { o.InitStd *= 2 })
	given := methods.PaperOptions()
	if o := twice.Changed(given); o.InitStd != 0.4 || !o.Clip || twice.Title != "twice" || twice.Name != "density" || twice.Paper != (methods.PaperNames{}) {
		t.Errorf("%s has the options %+v and is the paper's %+v", twice.Title, o, twice.Paper)
	}
	if given.InitStd != methods.PaperOptions().InitStd {
		t.Error("the options that were given are changed")
	}
	if titled := methods.Density.Variant("LDL", nil); titled.Paper != methods.Density.Paper || titled.Changed(given) != given {
		t.Errorf("another title alone makes it another method: %+v", titled)
	}
}
