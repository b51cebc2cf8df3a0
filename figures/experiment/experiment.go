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
	Toy    = "toy"    // problems that can be drawn: one-dimensional regression, paper Figure 1, and two moons
	UCI    = "uci"    // UCI regression benchmarks, the paper's appendix
	Images = "images" // classification of CIFAR and out-of-distribution detection, the paper's section 4
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
	Ensemble        = "ensemble"         // deep ensemble of deterministic networks
	SNGP            = "sngp"             // spectral-normalised neural Gaussian process
	DUE             = "due"              // deterministic uncertainty estimation
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
	Small = "small" // images only: a real run on part of the data, for fewer epochs or with other options, shown with these, never compared with the paper
	Grid  = "grid"  // images only: a choice of hyperparameters, measured on held-out training images
)

// The ways to split a data set into training and test part.
const (
	GalSplits    = "gal"    // those published with Gal and Ghahramani (2016); for Year the one that its donors fixed
	RandomSplits = "random" // seeded random 90/10 splits, as in the authors' code
)

// The networks of the image study.
const (
	ResNet14 = "resnet14" // the paper's text: [2,2,2] blocks
	ResNet20 = "resnet20" // what the released code calls ResNet-14: [3,3,3] blocks
	WRN28x10 = "wrn28x10" // Wide ResNet, 28 layers, 10 times as wide
)

// The data sets of the image study.
const (
	CIFAR10  = "cifar10"
	CIFAR100 = "cifar100"
)

// The data sets of the toy study.
const (
	ToyCubic = "toy-cubic" // y = x^3 + noise with a gap in the inputs
	TwoMoons = "two-moons" // two classes in the plane, interleaved half circles
)

// The options known today. An option is a named departure from the fidelity's defaults; its value
// is text, so that it hashes and reads the same everywhere.
const (
	OptionClip = "clip" // "true": energies are clipped to [0, D]; "false": they are not
)

// Experiment is one run: one model trained once on one split with one seed.
type Experiment struct {
	Study    string            `json:"study"`             // Toy, UCI or Images
	Method   string            `json:"method"`            // one of Methods
	Dataset  string            `json:"dataset"`           // ToyCubic, TwoMoons, one of Datasets or of ImageDatasets
	Splits   string            `json:"splits"`            // GalSplits or RandomSplits; "" for the toy and images
	Split    int               `json:"split"`             // 0-based; 0 for the toy and images
	Seed     uint64            `json:"seed"`              // every random choice comes from it; off the pure Go backend noise also depends on what shares the batch
	Epochs   int               `json:"epochs"`            // passes over the training part; gradient steps for the toy
	Samples  int               `json:"samples"`           // Monte Carlo samples at prediction, of each network; a single one is drawn where all would be equal
	Fidelity string            `json:"fidelity"`          // Paper or Released
	Scale    string            `json:"scale"`             // Full or Quick; for images also Small or Grid
	Options  map[string]string `json:"options,omitempty"` // departures from the fidelity's defaults; nil and empty are the same

	// The rest is for images. A field that is empty is not part of the identity.
	Network string `json:"network,omitempty"`  // one of Networks
	TrainN  int    `json:"train_n,omitempty"`  // images to train on; 0 means all that are not held out
	TestN   int    `json:"test_n,omitempty"`   // images of the test set, and of each set out of distribution; 0 means all
	HeldOut int    `json:"held_out,omitempty"` // training images kept out of training: the reference of the energy statistic, or what a Grid run is measured on
}

// Methods lists every method: in the order of the paper's tables, then those with which it compares
// images only, or not at all.
func Methods() []string {
	return []string{Deterministic, MFVI, MCDropout, VDropout, Rank1, Density, DensityRank1Mix, Ensemble, SNGP, DUE}
}

// Networks lists the networks of the image study.
func Networks() []string { return []string{ResNet14, ResNet20, WRN28x10} }

// ImageDatasets lists the data sets that image classifiers are trained on.
func ImageDatasets() []string { return []string{CIFAR10, CIFAR100} }

// Scales lists the scales.
func Scales() []string { return []string{Full, Quick, Small, Grid} }

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
	if e.Study == Images {
		s += fmt.Sprintf(" with %s, %d epochs", e.Network, e.Epochs)
	}
	if e.TrainN > 0 {
		s += fmt.Sprintf(" of %d images", e.TrainN)
	}
	if e.HeldOut > 0 {
		s += fmt.Sprintf(", %d held out,", e.HeldOut)
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
	exactly := func(field string, value, want int) error {
		if value == want {
			return nil
		}
		return fmt.Errorf("experiment: %s is %d, want %d for study %s and scale %s", field, value, want, e.Study, e.Scale)
	}
	checks := []error{
		oneOf("study", e.Study, Toy, UCI, Images),
		oneOf("method", e.Method, Methods()...),
		atLeast("split", e.Split, 0),
		atLeast("epochs", e.Epochs, 1),
		atLeast("samples", e.Samples, 1),
		oneOf("fidelity", e.Fidelity, Paper, Released),
	}
	if e.Study != Images {
		checks = append(checks, oneOf("scale", e.Scale, Full, Quick), oneOf("network", e.Network, ""),
			exactly("train_n", e.TrainN, 0), exactly("test_n", e.TestN, 0), exactly("held_out", e.HeldOut, 0))
	}
	switch e.Study {
	case Toy:
		checks = append(checks, oneOf("dataset", e.Dataset, ToyCubic, TwoMoons), oneOf("splits", e.Splits, ""))
	case UCI:
		checks = append(checks, oneOf("dataset", e.Dataset, Datasets()...), oneOf("splits", e.Splits, GalSplits, RandomSplits))
	case Images:
		checks = append(checks, oneOf("dataset", e.Dataset, ImageDatasets()...), oneOf("splits", e.Splits, ""), exactly("split", e.Split, 0),
			oneOf("network", e.Network, Networks()...), oneOf("scale", e.Scale, Scales()...),
			atLeast("train_n", e.TrainN, 0), atLeast("test_n", e.TestN, 0), atLeast("held_out", e.HeldOut, 0))
		switch e.Scale {
		case Full: // a part of the data would be compared with the paper
			checks = append(checks, exactly("train_n", e.TrainN, 0), exactly("test_n", e.TestN, 0))
		case Grid:
			checks = append(checks, atLeast("held_out", e.HeldOut, 1))
		}
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}
