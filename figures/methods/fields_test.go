package methods_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
)

// values are texts that an option can have, and some that it refuses, with the words that say what it wants.
type values struct {
	valid, refused []string
	wants          string
}

var (
	boolean  = values{[]string{"true", "false"}, []string{"", "yes", "1"}, "want true or false"}
	positive = values{[]string{"0.2", "1e-05", "3"}, []string{"", "0", "-1", "NaN", "+Inf", "x"}, "want a positive number"}
	step     = values{[]string{"0.2", "1e-05", "100"}, []string{"", "0", "-1", "NaN", "+Inf", "x", "100.5"}, "want a positive number of at most 100"}
	rate     = values{[]string{"0.5"}, []string{"", "0", "1", "-0.1", "NaN", "x"}, "want a number above 0 and below 1"}
	count    = values{[]string{"1", "64"}, []string{"", "0", "-1", "1.5", "99999999999", "x"}, "want a whole number of at least 1"}
	whole    = values{[]string{"0", "64"}, []string{"", "-1", "1.5", "x"}, "want a whole number of at least 0"}
)

func choice(valid ...string) values {
	return values{valid, []string{"", "none", strings.ToUpper(valid[0])}, "want " + strings.Join(valid, " or ")}
}

type option struct {
	name string
	values
}

// The options of both studies, and those of each.
var (
	common = []option{
		{"noise", choice("gaussian", "uniform01", "student-t5")}, {"init_std", positive}, {"prior_std", positive}, {"clip", boolean}, {"mean_energy", boolean},
		{"gradients", choice("paper", "detached", "attached")}, {"variance", choice("plain", "half-d")}, {"mixture_factors", choice("orthogonal", "zeros")}, {"mixture_fraction", positive},
		{"dropout_rate", rate}, {"alpha", positive}, {"adaptive_alpha", boolean},
	}
	ofUCI = slices.Concat(common, []option{
		{"optimizer", choice("sgd", "adam")}, {"learning_rate", step}, {"batch_size", count}, {"weight_decay", positive},
		{"hidden_layers", whole}, {"width", count}, {"energy_optimizer", choice("own", "joint")}, {"decay", choice("weights", "all")}, {"pretrain_epochs", whole}, {"early_stopping", boolean},
	})
	ofToy = slices.Concat(common[:9], []option{{"generative_weights", boolean}}, common[9:], []option{{"learning_rate", step}, {"hidden_layers", whole}, {"width", count}, {"pretrain_steps", count}})
)

// protocols are those whose options are taken to and from experiments.
var protocols = []struct {
	name, study string
	protocol    any
	options     []option
	unused      string // the one of them that makes no difference
	// departing is the experiment of a protocol with these options, and then its protocol again.
	departing func(t *testing.T, options map[string]string) (results.Experiment, any)
}{
	{"uci paper", results.UCI, uci.Paper(), ofUCI, "", ofUCIProtocol(uci.Paper())},
	{"uci released", results.UCI, uci.Released(), ofUCI, "", ofUCIProtocol(uci.Released())},
	{"toy cubic", results.Toy, toy.Cubic(), ofToy, "generative_weights", ofToyProtocol(toy.Cubic())},
	{"toy moons", results.Toy, toy.Moons(), ofToy, "", ofToyProtocol(toy.Moons())},
}

// using is a method that has a use for the options: with another the experiments do not have them.
func using(options map[string]string) methods.Method {
	for name := range options {
		switch {
		case strings.HasPrefix(name, "mixture"):
			return methods.DensityMixture
		case strings.HasPrefix(name, "dropout"):
			return methods.MCDropout
		case strings.Contains(name, "alpha"):
			return methods.VDropout
		}
	}
	return methods.Density
}

func ofUCIProtocol(p uci.Protocol) func(*testing.T, map[string]string) (results.Experiment, any) {
	return func(t *testing.T, options map[string]string) (results.Experiment, any) {
		p := p.On("yacht")
		if err := methods.SetFor(results.UCI, &p, options); err != nil {
			t.Fatal(err)
		}
		e := p.Experiments(using(options))[7]
		again, _, err := uci.ProtocolOf(e, methods.All())
		if err != nil {
			t.Fatal(err)
		}
		return e, again
	}
}

func ofToyProtocol(p toy.Protocol) func(*testing.T, map[string]string) (results.Experiment, any) {
	return func(t *testing.T, options map[string]string) (results.Experiment, any) {
		p := p
		if err := methods.SetFor(results.Toy, &p, options); err != nil {
			t.Fatal(err)
		}
		e := p.Experiments(using(options))[1]
		again, _, err := toy.ProtocolOf(e, methods.All())
		if err != nil {
			t.Fatal(err)
		}
		return e, again
	}
}

// Every option goes from its text into the protocol, from there into the experiment unless it is the fidelity's or
// makes no difference, and back into the protocol that is carried out.
func TestOptionsThereAndBack(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			var names []string
			for _, f := range methods.Fields(p.protocol, p.study) {
				names = append(names, f.Name)
				if f.Doc == "" {
					t.Errorf("%s has no doc", f.Name)
				}
			}
			var want []string
			for i, o := range p.options {
				want = append(want, o.name)
				if i >= len(names) || names[i] != o.name {
					t.Fatalf("the options are %v, want %v so far", names, want)
				}
				field := methods.Fields(p.protocol, p.study)[i]
				for _, text := range o.valid {
					e, again := p.departing(t, map[string]string{o.name: text})
					usual, want := field.Text(p.protocol), text
					if o.name == p.unused {
						want = usual
					}
					var options map[string]string
					if want != usual {
						options = map[string]string{o.name: want}
					}
					if !maps.Equal(e.Options, options) {
						t.Errorf("%s=%s: the experiment has the options %v, want %v", o.name, text, e.Options, options)
					}
					if got := field.Text(again); got != want {
						t.Errorf("%s=%s: it is carried out with %q", o.name, text, got)
					}
				}
			}
			if len(names) != len(want) {
				t.Errorf("the options are %v, want %v", names, want)
			}
		})
	}
}

func TestOptionsRefused(t *testing.T) {
	for _, o := range ofUCI {
		t.Run(o.name, func(t *testing.T) {
			for _, text := range o.refused {
				p := uci.Paper()
				err := methods.Set(&p, map[string]string{o.name: text})
				if err == nil || !strings.Contains(err.Error(), `option "`+o.name+`"`) || !strings.Contains(err.Error(), `is "`+text+`"`) || !strings.Contains(err.Error(), o.wants) {
					t.Errorf("%q: %v", text, err)
				}
			}
		})
	}
	for _, c := range []struct {
		name, study, option, want string
	}{
		{"unknown", "", "nois", `there is no option "nois"; the options are noise, init_std`},
		{"of images", results.UCI, "padding", `there is no option "padding"`},
		{"of images on the toy", results.Toy, "padding", `there is no option "padding"`},
		{"of UCI on the toy", results.Toy, "optimizer", `there is no option "optimizer"`},
		{"of classifiers on UCI", results.UCI, "generative_weights", `there is no option "generative_weights"`},
		{"of the toy on UCI", results.UCI, "pretrain_steps", `there is no option "pretrain_steps"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, q := uci.Paper(), toy.Cubic()
			to := any(&p)
			if c.study == results.Toy {
				to = &q
			}
			if err := methods.SetFor(c.study, to, map[string]string{c.option: "1"}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// The options that lead from one fidelity to the other are these, and they do lead there.
func TestDeparturesOfReleased(t *testing.T) {
	got := methods.Departures(uci.Released(), uci.Paper())
	want := map[string]string{"noise": "uniform01", "clip": "true", "padding": "replicate", "variance_d": "channels", "beta_prior": "e", "log_det": "negated",
		"conv_alpha": "doubled", "gradients": "detached", "variance": "half-d", "mixture_factors": "zeros", "hidden_layers": "3", "energy_optimizer": "joint", "decay": "all"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	p := uci.Paper()
	if err := methods.Set(&p, got); err != nil {
		t.Fatal(err)
	}
	if left := methods.Departures(p, uci.Released()); left != nil {
		t.Errorf("the options %v lack %v", got, left)
	}
	if same := methods.Departures(uci.Paper(), uci.Paper()); same != nil {
		t.Errorf("a protocol departs from itself by %v", same)
	}
}
