package results

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The studies, each with a package of its own in the folder above.
const (
	Toy    = "toy"    // problems that can be drawn: one-dimensional regression, paper Figure 1, and two moons
	UCI    = "uci"    // UCI regression benchmarks, the paper's appendix
	Images = "images" // classification of CIFAR and out-of-distribution detection, the paper's section 4
)

// The fidelities: which side is taken where the paper's text and the authors' code differ.
const (
	Paper    = "paper"    // the text
	Released = "released" // the authors' code
)

// The scales: how much of a protocol was carried out, and so what a number may be compared with.
const (
	Full  = "full"  // the whole protocol: compared with the paper
	Quick = "quick" // a small run that shows the pipeline at work, never compared with the paper
	Small = "small" // images only: a real run on part of the data, for fewer epochs or with other options, shown with these, never compared with the paper
	Grid  = "grid"  // not the toy: a choice of hyperparameters, measured on held-out training examples

	// Images only: all of the data in as many epochs as a processor manages. Methods are compared with each other, never
	// with the paper; their noise is chosen by the runs of the second scale, measured on held-out training images.
	Processor     = "processor"
	ProcessorGrid = "processor-grid"
	// The same on a GPU in half an hour.
	GPU = "gpu"
)

// Experiment says what a run is, as data: one model trained once on one split with one seed. Two equal values
// are the same experiment, and its content hash, ID, is its identity in the store.
type Experiment struct {
	Study    string            `json:"study"`             // Toy, UCI or Images
	Method   string            `json:"method"`            // the name of a method; package methods has those of the paper
	Dataset  string            `json:"dataset"`           // the name of a data set of the study
	Splits   string            `json:"splits"`            // the kind of splits into training and test part; "" where there is only one
	Split    int               `json:"split"`             // 0-based; 0 for the toy and images
	Seed     uint64            `json:"seed"`              // every random choice comes from it; off the pure Go backend an image run's noise also depends on the backend
	Epochs   int               `json:"epochs"`            // passes over the training part; gradient steps for the toy
	Samples  int               `json:"samples"`           // Monte Carlo samples at prediction, of each network; a single one is drawn where all would be equal
	Fidelity string            `json:"fidelity"`          // Paper or Released
	Scale    string            `json:"scale"`             // Full or Quick; for UCI also Grid, for images any
	Options  map[string]string `json:"options,omitempty"` // departures from the fidelity's defaults, by the names of the protocol's fields; nil and empty are the same

	// The rest is for images. A field that is empty is not part of the identity.
	Network string `json:"network,omitempty"`  // the name of a network of the study
	TrainN  int    `json:"train_n,omitempty"`  // images to train on; 0 means all that are not held out
	TestN   int    `json:"test_n,omitempty"`   // images of the test set, and of each set out of distribution; 0 means all
	HeldOut int    `json:"held_out,omitempty"` // training images kept out of training: the reference of the energy statistic, or what a run to choose hyperparameters is measured on
}

// Scales lists the scales.
func Scales() []string { return []string{Full, Quick, Small, Grid, Processor, ProcessorGrid, GPU} }

// OnHeldOut reports whether the experiment is measured on held-out training examples, so that hyperparameters are chosen
// without a look at the test examples.
func (e Experiment) OnHeldOut() bool { return e.Scale == Grid || e.Scale == ProcessorGrid }

// ID is the experiment's identity: the first 16 hexadecimal digits of the SHA-256 of its canonical
// JSON (fields in the order of the struct, option names sorted). Any change of any field changes it.
func (e Experiment) ID() string {
	canonical, err := json.Marshal(e)
	if err != nil {
		// Strings, integers and a map of strings always have a JSON form.
		panic(fmt.Sprintf("results: encoding %+v: %v", e, err))
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:8])
}

// Variant is the method with its options, as one word: "density", "density clip=true".
func (e Experiment) Variant() string {
	parts := []string{e.Method}
	for _, name := range slices.Sorted(maps.Keys(e.Options)) {
		parts = append(parts, name+"="+e.Options[name])
	}
	return strings.Join(parts, " ")
}

// String describes the experiment on one line for progress and error messages; different experiments have different
// descriptions.
func (e Experiment) String() string {
	s := fmt.Sprintf("%s %s on %s", e.Study, e.Variant(), e.Dataset)
	if e.Splits != "" {
		s += fmt.Sprintf(" %s split %d", e.Splits, e.Split)
	}
	if e.Network != "" {
		s += " with " + e.Network
	}
	if e.Study == Toy {
		s += ", " + Counted(e.Epochs, "step", "steps")
	} else {
		s += ", " + Counted(e.Epochs, "epoch", "epochs")
	}
	if e.TrainN > 0 {
		s += " of " + Counted(e.TrainN, "image", "images")
	}
	if e.HeldOut > 0 {
		s += fmt.Sprintf(", %d held out", e.HeldOut)
	}
	if e.TestN > 0 {
		s += fmt.Sprintf(", %d to test on", e.TestN)
	}
	return s + fmt.Sprintf(", %s, seed %d (%s, %s)", Counted(e.Samples, "sample", "samples"), e.Seed, e.Fidelity, e.Scale)
}

// Counted is a number with the word for one, or for many.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Group is the experiment without its split and seed: experiments of equal groups differ in nothing
// else, so that they can be trained together and averaged in one table cell.
func (e Experiment) Group() string {
	e.Split, e.Seed = 0, 0
	return e.ID()
}

// nameLetters are what the names of methods, data sets, splits and networks are made of, since they become
// parts of file names and of command lines.
const nameLetters = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// CheckName returns an error unless name is 1 to 60 lower-case letters, digits, hyphens and underscores;
// what says what it names.
func CheckName(what, name string) error {
	if name == "" || len(name) > 60 || strings.Trim(name, nameLetters) != "" {
		return fmt.Errorf("%s is %q, want 1 to 60 lower-case letters, digits, hyphens and underscores", what, name)
	}
	return nil
}

// Validate reports the first field that cannot be part of a run. Whether there is such a method, data set or
// network is for the package of the study to say.
func (e Experiment) Validate() error {
	if err := e.validate(); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

func (e Experiment) validate() error {
	oneOf := func(field, value string, allowed ...string) error {
		if slices.Contains(allowed, value) {
			return nil
		}
		return fmt.Errorf("%s is %q, want one of %s", field, value, strings.Join(allowed, ", "))
	}
	atLeast := func(field string, value, least int) error {
		if value >= least {
			return nil
		}
		return fmt.Errorf("%s is %d, want at least %d", field, value, least)
	}
	empty := func(field string, value any) error {
		if value == 0 || value == "" {
			return nil
		}
		return fmt.Errorf("%s is %v, want none for study %s and scale %s", field, value, e.Study, e.Scale)
	}
	checks := []error{
		oneOf("study", e.Study, Toy, UCI, Images),
		CheckName("method", e.Method),
		CheckName("dataset", e.Dataset),
		atLeast("split", e.Split, 0),
		atLeast("epochs", e.Epochs, 1),
		atLeast("samples", e.Samples, 1),
		oneOf("fidelity", e.Fidelity, Paper, Released),
		oneOf("scale", e.Scale, Scales()...),
	}
	switch e.Study {
	case Toy, UCI:
		scales := []string{Full, Quick}
		if e.Study == UCI {
			scales = append(scales, Grid)
		}
		checks = append(checks, oneOf("scale", e.Scale, scales...), empty("network", e.Network),
			empty("train_n", e.TrainN), empty("test_n", e.TestN), empty("held_out", e.HeldOut))
	case Images:
		checks = append(checks, CheckName("network", e.Network), empty("split", e.Split),
			atLeast("train_n", e.TrainN, 0), atLeast("test_n", e.TestN, 0), atLeast("held_out", e.HeldOut, 0))
		switch e.Scale {
		case Full: // a part of the data would be compared with the paper
			checks = append(checks, empty("train_n", e.TrainN), empty("test_n", e.TestN))
		case Grid, ProcessorGrid:
			checks = append(checks, atLeast("held_out", e.HeldOut, 1))
		}
	}
	if e.Study == UCI {
		checks = append(checks, CheckName("splits", e.Splits))
	} else {
		checks = append(checks, empty("splits", e.Splits))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Options)) {
		checks = append(checks, CheckName("the name of an option", name))
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

// Set is a named list of experiments: what one figure or table needs.
type Set struct {
	Name        string
	Doc         string       // one line
	Experiments []Experiment // of all its scales; see At
	// Lacks says which experiments the set will have that cannot be listed yet, and what to do for it; "" for none.
	Lacks string
}

// At returns the set's experiments of one scale, in their order.
func (s Set) At(scale string) []Experiment {
	return Filter{Scale: scale}.Apply(s.Experiments)
}

// Union lists the experiments of sets in their order, each once.
func Union(sets ...Set) []Experiment {
	var all []Experiment
	seen := make(map[string]bool)
	for _, s := range sets {
		for _, e := range s.Experiments {
			if id := e.ID(); !seen[id] {
				seen[id] = true
				all = append(all, e)
			}
		}
	}
	return all
}

// Filter selects experiments; a zero field selects everything.
type Filter struct {
	Methods  []string
	Datasets []string
	Splits   []int
	Seeds    []uint64
	Fidelity string
	Scale    string
}

// Apply returns the experiments that pass, in their order.
func (f Filter) Apply(all []Experiment) []Experiment {
	var kept []Experiment
	for _, e := range all {
		if (len(f.Methods) == 0 || slices.Contains(f.Methods, e.Method)) &&
			(len(f.Datasets) == 0 || slices.Contains(f.Datasets, e.Dataset)) &&
			(len(f.Splits) == 0 || slices.Contains(f.Splits, e.Split)) &&
			(len(f.Seeds) == 0 || slices.Contains(f.Seeds, e.Seed)) &&
			(f.Fidelity == "" || f.Fidelity == e.Fidelity) &&
			(f.Scale == "" || f.Scale == e.Scale) {
			kept = append(kept, e)
		}
	}
	return kept
}
