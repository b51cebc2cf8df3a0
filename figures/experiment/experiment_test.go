package experiment

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
		"scale":    func(e *Experiment) { e.Scale = "medium" },
	} {
		e := example()
		change(&e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), want+" is") {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestCatalogue(t *testing.T) {
	wantFull := map[string]int{"figure1": 6 * 3, "uci": 5 * (8*20 + 5), "uci-year": 5, "uci-released": 2 * 6 * 20}
	wantQuick := map[string]int{"figure1": 6 * 3, "uci": 5 * 3 * 2, "uci-year": 0, "uci-released": 2 * 3 * 2}
	seen := map[string]bool{}
	for _, s := range Sets() {
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
