package experiment_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
)

var update = flag.Bool("update", false, "write the specs of all presets anew; stored results are then no longer found")

// The names of types and fields are the identity of stored results: a preset whose specs change has lost its results.
// A field that is renamed keeps its name by a tag, and a type by a method Identity.
func TestSpecsOfPresets(t *testing.T) {
	cifar10 := cifar.Images{Name: cifar.CIFAR10}
	var text strings.Builder
	for _, p := range []struct {
		name   string
		preset experiment.Preset
		data   experiment.Source
	}{
		{"uci.Paper", uci.Paper, uci.Data{Name: "yacht"}},
		{"uci.Paper on gap splits of a large set", uci.Paper, uci.Data{Name: "protein", Kind: uci.Gap}},
		{"uci.Released", uci.Released, uci.Data{Name: "yacht"}},
		{"uci.Adam for choosing", uci.Adam, uci.Data{Name: "yacht", Validation: true}},
		{"uci.Long", uci.Long, uci.Data{Name: "yacht"}},
		{"uci.Longest", uci.Longest, uci.Data{Name: "yacht"}},
		{"uci.StoppedEarly", uci.StoppedEarly, uci.Data{Name: "yacht"}},
		{"toy.Paper on the cubic", toy.Paper, toy.Cubic{Seeds: 20}},
		{"toy.Paper on two moons", toy.Paper, toy.Moons{Seeds: 3}},
		{"cifar.Paper", cifar.Paper, cifar10},
		{"cifar.Wide", cifar.Wide, cifar.Images{Name: cifar.CIFAR100}},
		{"cifar.Released", cifar.Released, cifar10},
		{"cifar.Small", cifar.Small, cifar10},
		{"cifar.Processor, chosen", cifar.Chosen(cifar.Processor), cifar10},
		{"cifar.ProcessorGrid", cifar.ProcessorGrid, cifar10},
	} {
		for _, m := range methods.All() {
			if p.name == "uci.StoppedEarly" && (m.IsProcess() || m.Equal(methods.SWAG)) {
				continue // they cannot be stopped early
			}
			e := must.Get(p.preset(p.data, m))(t)
			if err := e.Check(); err != nil {
				t.Errorf("%s of %s: %v", m.Name, p.name, err)
				continue
			}
			fmt.Fprintf(&text, "%s of %s: %s", m.Key, p.name, e.Group())
			if strings.Contains(p.name, ".Paper") || m.Key == "density" {
				fmt.Fprintf(&text, " %s", must.Get(e.Spec())(t))
			}
			text.WriteString("\n")
		}
	}
	file := filepath.Join("testdata", "specs.txt")
	if *update {
		must.Do(t, os.MkdirAll("testdata", 0o755))
		must.Do(t, os.WriteFile(file, []byte(text.String()), 0o644))
	}
	want := strings.Split(string(must.Get(os.ReadFile(file))(t)), "\n")
	got := strings.Split(text.String(), "\n")
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got) || i >= len(want):
			t.Fatalf("%d specs, want %d", len(got)-1, len(want)-1)
		case got[i] != want[i]:
			t.Errorf("the spec has changed:\n%s\nwas\n%s", got[i], want[i])
		}
	}
}

// A preset refuses data that it is not for, and methods that have no layers.
func TestPresetsRefuse(t *testing.T) {
	yacht, mine := uci.Data{Name: "yacht"}, experiment.Method{Name: "mine", Layers: scaled{Scale: 1}}
	must.GetErr(toy.Paper(yacht, methods.Density))(t, "toy.Paper is for toy.Cubic and toy.Moons")
	must.GetErr(cifar.Paper(yacht, methods.Density))(t, "cifar.Images, not for uci.Data")
	must.GetErr(cifar.Paper(cifar.Images{Name: "mnist"}, methods.Density))(t, "there are no images \"mnist\"")
	must.GetErr(uci.Paper(yacht, experiment.Method{}))(t, "there are no layers")
	must.GetErr(uci.Tuned().Experiments(yacht, mine))(t, "no choice was made for")
	e, err := uci.Paper(uci.Data{Name: "yatch"}, methods.Density)
	must.Err(t, cmp.Or(err, e.Check()), "there is no UCI data set")
}

// A preset keeps what its user set.
func TestPresetsKeepSettings(t *testing.T) {
	doubled := experiment.Method{Name: "doubled", Layers: baselines.VDropout{DoubledConvAlpha: true}}
	images := must.Get(cifar.Paper(cifar.Images{Name: cifar.CIFAR10, ReleasedStats: true}, doubled))(t)
	if !images.Task.Data.(cifar.Images).ReleasedStats || !images.Method.Layers.(baselines.VDropout).DoubledConvAlpha {
		t.Errorf("the experiment has %+v and %+v", images.Task.Data, images.Method.Layers)
	}

	mine := dul.Density{Noise: stochastic.Gaussian(), Gradients: dul.Attached, ConvEtaPriorStd: 2, Energy: energy.Rank1Mixture{}, Clip: true}
	for name, preset := range map[string]func(layers nets.Layers) (experiment.Experiment, error){
		"uci": func(l nets.Layers) (experiment.Experiment, error) {
			return uci.Released(uci.Data{Name: "yacht"}, experiment.Method{Layers: l})
		},
		"cifar": func(l nets.Layers) (experiment.Experiment, error) {
			return cifar.Released(cifar.Images{Name: cifar.CIFAR10}, experiment.Method{Layers: l})
		},
	} {
		l := must.Get(preset(mine))(t).Method.Layers.(dul.Density)
		if l.Noise != mine.Noise || l.Gradients != mine.Gradients || l.ConvEtaPriorStd != 2 || !l.Clip || !l.HalfD {
			t.Errorf("%s: the layers are %+v", name, l)
		}
		value, pointer := must.Get(preset(dul.Density{}))(t), must.Get(preset(&dul.Density{}))(t)
		if value.Group() != pointer.Group() || value.Method.Layers.(dul.Density).InitStd == 0 {
			t.Errorf("%s: a pointer to layers makes %+v", name, pointer.Method.Layers)
		}
	}
	for name, group := range map[string]func(l nets.Layers) string{
		"uci.Tuned": func(l nets.Layers) string {
			return must.Get(uci.Tuned().Experiments(uci.Data{Name: "yacht"}, experiment.Method{Key: "mfvi", Layers: l}))(t)[0].Group()
		},
		"cifar.Chosen": func(l nets.Layers) string {
			return must.Get(cifar.Chosen(cifar.Processor)(cifar.Images{Name: cifar.CIFAR10}, experiment.Method{Key: "mfvi", Layers: l}))(t).Group()
		},
	} {
		if value, pointer := group(baselines.MFVI{}), group(&baselines.MFVI{}); value != pointer {
			t.Errorf("%s of a pointer to layers is %s, of the layers %s", name, pointer, value)
		}
	}
}

// A grid has all of its methods on all splits, or the first ones, with the split's number as the seed, or with several seeds.
func TestGrid(t *testing.T) {
	of := func(g experiment.Grid) string {
		var all []string
		g.Preset = toy.Paper
		for _, e := range g.Of(toy.Cubic{Seeds: 2}, methods.Density, methods.MFVI) {
			all = append(all, fmt.Sprint(e.Method.Key, e.Split, e.Seed, e.Recipe.Epochs))
		}
		return strings.Join(all, ", ")
	}
	for _, c := range []struct {
		experiment.Grid
		want string
	}{
		{experiment.Grid{}, "density0 0 4000, density1 1 4000, mfvi0 0 4000, mfvi1 1 4000"},
		{experiment.Grid{Methods: []experiment.Method{methods.MFVI}, Splits: 1, Seeds: 2}, "mfvi0 0 4000, mfvi0 1 4000"},
		{experiment.Grid{Methods: []experiment.Method{methods.DUE}}, ""},
		{experiment.Grid{Change: toy.Steps(7), Splits: 1}, "density0 0 7, mfvi0 0 7"},
		{experiment.Grid{List: func(experiment.Source, experiment.Method) (experiment.Experiments, error) {
			return experiment.Experiments{{Split: 3}}, nil
		}}, "3 0 0, 3 0 0"},
	} {
		if got := of(c.Grid); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
