package results

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func example() Experiment {
	return Experiment{Study: UCI, Method: Density, Dataset: "boston", Splits: GalSplits, Split: 3, Seed: 3, Epochs: 100,
		Samples: 10, Fidelity: Paper, Scale: Full}
}

// The identity is part of the committed result files, so it must never change by accident.
func TestIDIsPinned(t *testing.T) {
	if got, want := example().ID(), "175b845fe070a067"; got != want {
		t.Errorf("ID = %s, want %s: a change of the identity orphans every committed result", got, want)
	}
}

// image is an experiment of the image study.
func image() Experiment {
	return Experiment{Study: Images, Method: DensityRank1Mix, Dataset: CIFAR10, Seed: 1, Epochs: 5, Samples: 25, Fidelity: Paper, Scale: Small,
		Options: fraction("0.1"), Network: ResNet14, TrainN: 5000, TestN: 1000, HeldOut: 500}
}

func TestImageIDIsPinned(t *testing.T) {
	if got, want := image().ID(), "f7bdeba6b39e148d"; got != want {
		t.Errorf("ID = %s, want %s: a change of the identity orphans every committed result", got, want)
	}
	if got, want := image().String(), "images density-rank1mix mixture_fraction=0.1 on cifar10 with resnet14, 5 epochs of 5000 images, 500 held out, seed 1 (paper, small)"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}

func TestIDDependsOnEveryField(t *testing.T) {
	seen := map[string]string{example().ID(): "unchanged"}
	for name, change := range map[string]func(*Experiment){
		"study":    func(e *Experiment) { e.Study = Toy },
		"method":   func(e *Experiment) { e.Method = Rank1 },
		"dataset":  func(e *Experiment) { e.Dataset = "yacht" },
		"splits":   func(e *Experiment) { e.Splits = RandomSplits },
		"split":    func(e *Experiment) { e.Split++ },
		"seed":     func(e *Experiment) { e.Seed++ },
		"epochs":   func(e *Experiment) { e.Epochs++ },
		"samples":  func(e *Experiment) { e.Samples++ },
		"fidelity": func(e *Experiment) { e.Fidelity = Released },
		"scale":    func(e *Experiment) { e.Scale = Quick },
		"option":   func(e *Experiment) { e.Options = map[string]string{OptionClip: "true"} },
		"option 2": func(e *Experiment) { e.Options = map[string]string{OptionClip: "false"} },
		"network":  func(e *Experiment) { e.Network = ResNet14 },
		"train_n":  func(e *Experiment) { e.TrainN = 1 },
		"test_n":   func(e *Experiment) { e.TestN = 1 },
		"held_out": func(e *Experiment) { e.HeldOut = 1 },
	} {
		e := example()
		change(&e)
		if other, dup := seen[e.ID()]; dup {
			t.Errorf("changing %s gives the identity of %s", name, other)
		}
		seen[e.ID()] = name
	}
	e := example()
	e.Options = map[string]string{}
	if e.ID() != example().ID() {
		t.Error("empty options and no options differ")
	}
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(e.ID()) {
		t.Errorf("ID %q is not 16 hexadecimal digits", e.ID())
	}
}

func TestGroupIgnoresSplitAndSeedOnly(t *testing.T) {
	a, b := example(), example()
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
	if err := example().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Experiment){
		"study":    func(e *Experiment) { e.Study = "cifar" },
		"method":   func(e *Experiment) { e.Method = "denisty" },
		"dataset":  func(e *Experiment) { e.Dataset = "bostn" },
		"splits":   func(e *Experiment) { e.Splits = "" },
		"split":    func(e *Experiment) { e.Split = -1 },
		"epochs":   func(e *Experiment) { e.Epochs = 0 },
		"samples":  func(e *Experiment) { e.Samples = 0 },
		"fidelity": func(e *Experiment) { e.Fidelity = "" },
		"scale":    func(e *Experiment) { e.Scale = Small },
		"network":  func(e *Experiment) { e.Network = ResNet14 },
		"train_n":  func(e *Experiment) { e.TrainN = 10 },
		"test_n":   func(e *Experiment) { e.TestN = 10 },
		"held_out": func(e *Experiment) { e.HeldOut = 10 },
	} {
		e := example()
		change(&e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), want+" is") {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestValidateImages(t *testing.T) {
	if err := image().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		want   string
		change func(*Experiment)
	}{
		"another study's data":       {"dataset is", func(e *Experiment) { e.Dataset = "boston" }},
		"no network":                 {"network is", func(e *Experiment) { e.Network = "" }},
		"a split":                    {"split is", func(e *Experiment) { e.Split = 1 }},
		"splits":                     {"splits is", func(e *Experiment) { e.Splits = GalSplits }},
		"a negative subset":          {"train_n is", func(e *Experiment) { e.TrainN = -1 }},
		"a subset at full scale":     {"train_n is", func(e *Experiment) { e.Scale = Full }},
		"part of the test set":       {"test_n is", func(e *Experiment) { e.Scale, e.TrainN = Full, 0 }},
		"a grid without a held-out":  {"held_out is", func(e *Experiment) { e.Scale, e.HeldOut = Grid, 0 }},
		"a negative number held out": {"held_out is", func(e *Experiment) { e.HeldOut = -1 }},
	} {
		e := image()
		c.change(&e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}

func TestCatalogue(t *testing.T) {
	wantFull := map[string]int{"figure1": 6 * 3, "uci": 5 * (8*20 + 5), "uci-year": 5, "uci-released": 2 * 6 * 20, "uci-gp": 4 * 6 * 20, "uci-adam": 7 * 6 * 20, "distance": 6 * 2 * 3,
		"cifar10-resnet14": 15 + 12, "cifar100-resnet14": 15 + 12, "cifar-gp": 2 * (4 + 1) * 3, "cifar-gp-wrn": 2 * (2 + 1) * 3, "cifar10-wrn": 24, "cifar100-wrn": 24, "rank1-ablation": 18,
		"ood-svhn": 2*15 + 2*3, "cifar-released": 30}
	wantQuick := map[string]int{"figure1": 6 * 3, "uci": 5 * 3 * 2, "uci-year": 0, "uci-released": 2 * 3 * 2, "uci-gp": 4 * 3 * 2, "uci-adam": 7 * 3 * 2, "distance": 6 * 2 * 3,
		"cifar10-resnet14": 5, "cifar100-resnet14": 5, "cifar-gp": 2 * 4, "ood-svhn": 10}
	wantOther := map[string]int{"cifar-small": 2 * 10 * 3, "grid": 12}
	for _, s := range Sets() {
		seen := map[string]bool{}
		if got := len(s.Experiments) - len(s.At(Full)) - len(s.At(Quick)); got != wantOther[s.Name] {
			t.Errorf("%s has %d experiments of other scales, want %d", s.Name, got, wantOther[s.Name])
		}
		if got := len(s.At(Full)); got != wantFull[s.Name] {
			t.Errorf("%s has %d full experiments, want %d", s.Name, got, wantFull[s.Name])
		}
		if got := len(s.At(Quick)); got != wantQuick[s.Name] {
			t.Errorf("%s has %d quick experiments, want %d", s.Name, got, wantQuick[s.Name])
		}
		for _, e := range s.Experiments {
			if err := e.Validate(); err != nil {
				t.Errorf("%s: %v: %v", s.Name, e, err)
			}
			if seen[e.ID()] {
				t.Errorf("%s: %v is listed twice", s.Name, e)
			}
			seen[e.ID()] = true
		}
		if found, ok := SetByName(s.Name); !ok || found.Name != s.Name {
			t.Errorf("SetByName does not find %s", s.Name)
		}
	}
	if _, ok := SetByName("figure2"); ok {
		t.Error("SetByName finds a set that does not exist")
	}
}

func TestFilter(t *testing.T) {
	set, _ := SetByName("uci")
	got := Filter{Methods: []string{Density}, Datasets: []string{"yacht", "wine"}, Splits: []int{0, 4}, Fidelity: Paper, Scale: Full}.Apply(set.Experiments)
	if len(got) != 4 {
		t.Fatalf("got %d experiments, want 4: %v", len(got), got)
	}
	if len(Filter{Fidelity: Released}.Apply(set.Experiments)) != 0 {
		t.Error("the uci set holds released runs")
	}
}

func ExampleExperiment_String() {
	e := Experiment{Study: Toy, Method: Density, Dataset: ToyCubic, Seed: 1, Epochs: 4000, Samples: 1000, Fidelity: Paper,
		Scale: Full, Options: map[string]string{OptionClip: "true"}}
	fmt.Println(e)
	// Output: toy density clip=true on toy-cubic seed 1 (paper, full)
}

// The tables find the runs that they share by their identity.
func TestSetsShareExperiments(t *testing.T) {
	ids := func(name string, f Filter) map[string]bool {
		set, ok := SetByName(name)
		if !ok {
			t.Fatalf("no set %s", name)
		}
		found := map[string]bool{}
		for _, e := range f.Apply(set.Experiments) {
			found[e.ID()] = true
		}
		return found
	}
	full := Filter{Scale: Full}
	for name, c := range map[string]struct {
		part, whole map[string]bool
		common      int
	}{
		"the ablation's 1.25 % and full rank": {ids("rank1-ablation", full), ids("cifar10-wrn", full), 6},
		"distance awareness and Figure 1":     {ids("distance", full), ids("figure1", full), 3},
		"OOD and CIFAR-10":                    {ids("ood-svhn", full), ids("cifar10-resnet14", full), 15},
		"CIFAR-10's single network":           {ids("cifar-gp", full), ids("cifar10-resnet14", full), 3},
		"OOD and CIFAR-100":                   {ids("ood-svhn", full), ids("cifar100-resnet14", full), 15},
	} {
		common := 0
		for id := range c.part {
			if c.whole[id] {
				common++
			}
		}
		if common != c.common {
			t.Errorf("%s have %d experiments in common, want %d", name, common, c.common)
		}
	}
}
