// Package experiment says what a run is, as data, and lists the runs that the paper's figures and
// tables need.
//
// An Experiment is a value: two equal values are the same experiment, and its content hash is its
// identity in the results store. Nothing here trains or plots.
package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The studies.
const (
	Toy = "toy" // one-dimensional regression, paper Figure 1
	UCI = "uci" // UCI regression benchmarks, the paper's appendix
)

// The methods, by the names that the command line, the store and the tables share.
const (
	Deterministic   = "deterministic"    // no weight noise
	MFVI            = "mfvi"             // mean-field variational inference
	MCDropout       = "mcdropout"        // Monte Carlo dropout
	VDropout        = "vdropout"         // variational dropout
	Rank1           = "rank1"            // rank-1 Bayesian neural network
	Density         = "density"          // density uncertainty, full-rank LDL energy
	DensityRank1Mix = "density-rank1mix" // density uncertainty, rank-1 mixture energy
)

// The fidelities: which side is taken where the paper's text and the authors' code differ.
const (
	Paper    = "paper"    // the text
	Released = "released" // the authors' code
)

// The scales.
const (
	Full  = "full"  // the setting that is compared with the paper
	Quick = "quick" // a small one that shows the pipeline at work, never compared with the paper
)

// The ways to split a data set into training and test part.
const (
	GalSplits    = "gal"    // those published with Gal and Ghahramani (2016); for Year the one that its donors fixed
	RandomSplits = "random" // seeded random 90/10 splits, as in the authors' code
)

// ToyCubic names the toy data set: y = x^3 + noise with a gap in the inputs.
const ToyCubic = "toy-cubic"

// The options known today. An option is a named departure from the fidelity's defaults; its value
// is text, so that it hashes and reads the same everywhere.
const (
	OptionClip = "clip" // "true": energies are clipped to [0, D]; "false": they are not
)

// Experiment is one run: one model trained once on one split with one seed.
type Experiment struct {
	Study    string            `json:"study"`             // Toy or UCI
	Method   string            `json:"method"`            // one of Methods
	Dataset  string            `json:"dataset"`           // ToyCubic or one of Datasets
	Splits   string            `json:"splits"`            // GalSplits or RandomSplits; "" for the toy
	Split    int               `json:"split"`             // 0-based; 0 for the toy
	Seed     uint64            `json:"seed"`              // every random choice comes from it; off the pure Go backend noise also depends on what shares the batch
	Epochs   int               `json:"epochs"`            // passes over the training part; gradient steps for the toy
	Samples  int               `json:"samples"`           // Monte Carlo samples at prediction
	Fidelity string            `json:"fidelity"`          // Paper or Released
	Scale    string            `json:"scale"`             // Full or Quick
	Options  map[string]string `json:"options,omitempty"` // departures from the fidelity's defaults; nil and empty are the same
}

// Methods lists every method in the order of the paper's tables.
func Methods() []string {
	return []string{Deterministic, MFVI, MCDropout, VDropout, Rank1, Density, DensityRank1Mix}
}

// ID is the experiment's identity: the first 16 hexadecimal digits of the SHA-256 of its canonical
// JSON (fields in the order of the struct, option names sorted). Any change of any field changes it.
func (e Experiment) ID() string {
	canonical, err := json.Marshal(e)
	if err != nil {
		// Strings, integers and a map of strings always have a JSON form.
		panic(fmt.Sprintf("experiment: encoding %+v: %v", e, err))
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

// String describes the experiment on one line for progress and error messages.
func (e Experiment) String() string {
	s := fmt.Sprintf("%s %s on %s", e.Study, e.Variant(), e.Dataset)
	if e.Splits != "" {
		s += fmt.Sprintf(" %s split %d", e.Splits, e.Split)
	}
	return s + fmt.Sprintf(" seed %d (%s, %s)", e.Seed, e.Fidelity, e.Scale)
}

// Group is the experiment without its split and seed: experiments of equal groups differ in nothing
// else, so that they can be trained together and averaged in one table cell.
func (e Experiment) Group() string {
	e.Split, e.Seed = 0, 0
	return e.ID()
}

// Validate reports the first field that does not name a possible run.
func (e Experiment) Validate() error {
	oneOf := func(field, value string, allowed ...string) error {
		if slices.Contains(allowed, value) {
			return nil
		}
		return fmt.Errorf("experiment: %s is %q, want one of %s", field, value, strings.Join(allowed, ", "))
	}
	atLeast := func(field string, value, least int) error {
		if value >= least {
			return nil
		}
		return fmt.Errorf("experiment: %s is %d, want at least %d", field, value, least)
	}
	checks := []error{
		oneOf("study", e.Study, Toy, UCI),
		oneOf("method", e.Method, Methods()...),
		atLeast("split", e.Split, 0),
		atLeast("epochs", e.Epochs, 1),
		atLeast("samples", e.Samples, 1),
		oneOf("fidelity", e.Fidelity, Paper, Released),
		oneOf("scale", e.Scale, Full, Quick),
	}
	if e.Study == Toy {
		checks = append(checks, oneOf("dataset", e.Dataset, ToyCubic), oneOf("splits", e.Splits, ""))
	} else {
		checks = append(checks, oneOf("dataset", e.Dataset, Datasets()...), oneOf("splits", e.Splits, GalSplits, RandomSplits))
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}
