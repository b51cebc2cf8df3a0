package results

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// regression and image are an experiment of the UCI study and one of the image study.
func regression() Experiment {
	return Experiment{Study: UCI, Method: "density", Dataset: "boston", Splits: "gal", Split: 3, Seed: 3, Epochs: 100,
		Samples: 10, Fidelity: Paper, Scale: Full}
}

func image() Experiment {
	return Experiment{Study: Images, Method: "density-rank1mix", Dataset: "cifar10", Seed: 1, Epochs: 5, Samples: 25, Fidelity: Paper, Scale: Small,
		Options: map[string]string{"mixture_fraction": "0.1"}, Network: "resnet14", TrainN: 5000, TestN: 1000, HeldOut: 500}
}

// The identity is part of the committed result files, so it must never change by accident.
func TestIdentityIsPinned(t *testing.T) {
	for _, c := range []struct {
		name, id, text string
		e              Experiment
	}{
		{"uci", "175b845fe070a067", "uci density on boston gal split 3, 100 epochs, 10 samples, seed 3 (paper, full)", regression()},
		{"images", "f7bdeba6b39e148d", "images density-rank1mix mixture_fraction=0.1 on cifar10 with resnet14, 5 epochs of 5000 images, 500 held out, 1000 to test on, 25 samples, seed 1 (paper, small)", image()},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.e.ID(); got != c.id {
				t.Errorf("ID = %s, want %s: a change of the identity orphans every committed result", got, c.id)
			}
			if got := c.e.String(); got != c.text {
				t.Errorf("String = %q, want %q", got, c.text)
			}
		})
	}
}

// Two experiments that differ in a field have different identities and descriptions.
func TestIdentityDependsOnEveryField(t *testing.T) {
	seen := map[string]string{regression().ID(): "unchanged", regression().String(): "unchanged"}
	for _, c := range []struct {
		name   string
		change func(*Experiment)
	}{
		{"study", func(e *Experiment) { e.Study = Toy }},
		{"method", func(e *Experiment) { e.Method = "rank1" }},
		{"dataset", func(e *Experiment) { e.Dataset = "yacht" }},
		{"splits", func(e *Experiment) { e.Splits = "random" }},
		{"split", func(e *Experiment) { e.Split++ }},
		{"seed", func(e *Experiment) { e.Seed++ }},
		{"epochs", func(e *Experiment) { e.Epochs++ }},
		{"samples", func(e *Experiment) { e.Samples++ }},
		{"fidelity", func(e *Experiment) { e.Fidelity = Released }},
		{"scale", func(e *Experiment) { e.Scale = Quick }},
		{"an option", func(e *Experiment) { e.Options = map[string]string{"clip": "true"} }},
		{"an option's value", func(e *Experiment) { e.Options = map[string]string{"clip": "false"} }},
		{"network", func(e *Experiment) { e.Network = "resnet14" }},
		{"train_n", func(e *Experiment) { e.TrainN = 1 }},
		{"test_n", func(e *Experiment) { e.TestN = 1 }},
		{"held_out", func(e *Experiment) { e.HeldOut = 1 }},
	} {
		e := regression()
		c.change(&e)
		if other, dup := seen[e.ID()]; dup {
			t.Errorf("changing %s gives the identity of %s", c.name, other)
		}
		if other, dup := seen[e.String()]; dup {
			t.Errorf("changing %s gives the description of %s, %v", c.name, other, e)
		}
		seen[e.String()] = c.name
		if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(e.ID()) {
			t.Errorf("%s: ID %q is not 16 hexadecimal digits", c.name, e.ID())
		}
		seen[e.ID()] = c.name
	}
	e := regression()
	e.Options = map[string]string{}
	if e.ID() != regression().ID() {
		t.Error("empty options and no options differ")
	}
}

func TestGroupIgnoresSplitAndSeedOnly(t *testing.T) {
	a, b := regression(), regression()
	b.Split, b.Seed = 7, 9
	if a.Group() != b.Group() {
		t.Error("split and seed change the group")
	}
	b.Epochs++
	if a.Group() == b.Group() {
		t.Error("epochs do not change the group")
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		of     func() Experiment
		change func(*Experiment)
		want   string // "" for an experiment that can be
	}{
		{"regression", regression, func(*Experiment) {}, ""},
		{"study", regression, func(e *Experiment) { e.Study = "cifar" }, "study is"},
		{"method", regression, func(e *Experiment) { e.Method = "Density!" }, "method is"},
		{"method too long", regression, func(e *Experiment) { e.Method = strings.Repeat("a", 61) }, "method is"},
		{"dataset", regression, func(e *Experiment) { e.Dataset = "" }, "dataset is"},
		{"dataset with a path", regression, func(e *Experiment) { e.Dataset = "../boston" }, "dataset is"},
		{"splits", regression, func(e *Experiment) { e.Splits = "" }, "splits is"},
		{"split", regression, func(e *Experiment) { e.Split = -1 }, "split is"},
		{"epochs", regression, func(e *Experiment) { e.Epochs = 0 }, "epochs is"},
		{"samples", regression, func(e *Experiment) { e.Samples = 0 }, "samples is"},
		{"fidelity", regression, func(e *Experiment) { e.Fidelity = "" }, "fidelity is"},
		{"scale", regression, func(e *Experiment) { e.Scale = Small }, "scale is"},
		{"option", regression, func(e *Experiment) { e.Options = map[string]string{"a b": "1"} }, "the name of an option is"},
		{"network", regression, func(e *Experiment) { e.Network = "resnet14" }, "network is"},
		{"train_n", regression, func(e *Experiment) { e.TrainN = 10 }, "train_n is"},
		{"test_n", regression, func(e *Experiment) { e.TestN = 10 }, "test_n is"},
		{"held_out", regression, func(e *Experiment) { e.HeldOut = 10 }, "held_out is"},

		{"image", image, func(*Experiment) {}, ""},
		{"image without a network", image, func(e *Experiment) { e.Network = "" }, "network is"},
		{"image with a split", image, func(e *Experiment) { e.Split = 1 }, "split is"},
		{"image with splits", image, func(e *Experiment) { e.Splits = "gal" }, "splits is"},
		{"image with a negative subset", image, func(e *Experiment) { e.TrainN = -1 }, "train_n is"},
		{"image with a subset at full scale", image, func(e *Experiment) { e.Scale = Full }, "train_n is"},
		{"image with part of the test set at full scale", image, func(e *Experiment) { e.Scale, e.TrainN = Full, 0 }, "test_n is"},
		{"image grid without held-out images", image, func(e *Experiment) { e.Scale, e.HeldOut = Grid, 0 }, "held_out is"},
		{"image with a negative number held out", image, func(e *Experiment) { e.HeldOut = -1 }, "held_out is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := c.of()
			c.change(&e)
			switch err := e.Validate(); {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// some are two methods on two data sets, three splits each, at full scale, and the first split of each quick.
func some() Set {
	s := Set{Name: "some"}
	for _, method := range []string{"density", "rank1"} {
		for _, dataset := range []string{"boston", "yacht"} {
			for split := range 4 {
				e := regression()
				e.Method, e.Dataset, e.Split, e.Seed = method, dataset, split%3, uint64(split%3)
				if split == 3 {
					e.Scale = Quick
				}
				s.Experiments = append(s.Experiments, e)
			}
		}
	}
	return s
}

func TestFilter(t *testing.T) {
	for _, c := range []struct {
		name   string
		filter Filter
		want   []int // places in some
	}{
		{"nothing", Filter{}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		{"method", Filter{Methods: []string{"rank1"}}, []int{8, 9, 10, 11, 12, 13, 14, 15}},
		{"dataset", Filter{Datasets: []string{"yacht", "wine"}}, []int{4, 5, 6, 7, 12, 13, 14, 15}},
		{"splits", Filter{Splits: []int{0, 2}}, []int{0, 2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15}},
		{"seeds", Filter{Seeds: []uint64{1}}, []int{1, 5, 9, 13}},
		{"fidelity", Filter{Fidelity: Released}, nil},
		{"scale", Filter{Scale: Quick}, []int{3, 7, 11, 15}},
		{"all at once", Filter{Methods: []string{"density"}, Datasets: []string{"yacht"}, Splits: []int{0, 1}, Seeds: []uint64{0}, Fidelity: Paper, Scale: Full}, []int{4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want, got []string
			for _, i := range c.want {
				want = append(want, some().Experiments[i].ID())
			}
			for _, e := range c.filter.Apply(some().Experiments) {
				got = append(got, e.ID())
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestSets(t *testing.T) {
	s := some()
	if got := s.At(Quick); len(got) != 4 || got[1].Dataset != "yacht" {
		t.Errorf("the quick runs are %v", got)
	}
	other := Set{Experiments: append(s.At(Quick), image())}
	union := Union(s, other, s)
	if len(union) != 17 || union[0].ID() != s.Experiments[0].ID() || union[16].ID() != image().ID() {
		t.Errorf("the union is %v", union)
	}
	missing := ByID([]Result{{ID: s.Experiments[1].ID()}}).Missing(s.Experiments[:3])
	if len(missing) != 2 || missing[0].ID() != s.Experiments[0].ID() || missing[1].ID() != s.Experiments[2].ID() {
		t.Errorf("missing are %v, want the first and the third", missing)
	}
}

func ExampleExperiment_String() {
	e := Experiment{Study: Toy, Method: "density", Dataset: "toy-cubic", Seed: 1, Epochs: 4000, Samples: 1000, Fidelity: Paper,
		Scale: Full, Options: map[string]string{"clip": "true"}}
	fmt.Println(e)
	// Output: toy density clip=true on toy-cubic, 4000 steps, 1000 samples, seed 1 (paper, full)
}
