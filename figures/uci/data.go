package uci

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"densityuncertainty/datasets"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/spec"
)

// Data is a UCI data set with its splits; it is an experiment.Source. The target and the inputs are standardised by the
// training part.
type Data struct {
	Name string // one of datasets.UCINames
	Kind Splits
	// Validation is for choosing hyperparameters without a look at the test part: a fifth of the training part is
	// predicted in its place, and not trained on.
	Validation bool
	// HeldOut keeps a fifth of the training part for early stopping.
	HeldOut bool
	// Calibration predicts a fifth of the training part too, as the set "calibration", and does not train on it.
	Calibration bool
}

// Splits is a way to split a data set into training and test part.
type Splits int

const (
	// Gal are the splits published with Gal & Ghahramani (2016): 20, of Protein 5. Year has the one of its donors.
	Gal Splits = iota
	// Random are as many random splits with a tenth of the examples as the test part, as in the authors' code.
	Random
	// Gap are splits with a gap, one for each input: the examples with the middle third of its values are the test part
	// (Foong et al. 2019). Not all are holes, and some are nearly the same; see datasets.GapSplits.
	Gap
	// Hole are twelve splits whose test part is a hole in the space of all inputs; see datasets.Hole. They were chosen so that
	// distance and energy are unrelated.
	Hole
)

// String is the name of the splits.
func (s Splits) String() string {
	if s < 0 || int(s) >= len(splitsNames) {
		return fmt.Sprintf("Splits(%d)", int(s))
	}
	return splitsNames[s]
}

var splitsNames = []string{"gal", "random", "gap", "hole"}

// TestTrain is the ratio of test to training examples of all splits, for the correction of paired differences.
func (d Data) TestTrain(int) float64 {
	switch {
	case d.Validation:
		return heldOutPart / (1 - heldOutPart)
	case d.Kind == Gap || d.Kind == Hole:
		return 1.0 / 2 // the middle third are test examples; of a hole at most as many
	}
	return 1.0 / 9 // ten percent are
}

// heldOutPart is the part of the training examples on which hyperparameters are chosen, and epochs by early stopping.
const heldOutPart = 0.2

// year names the set that is not part of the program, but downloaded. It has a single split.
const year = "year"

// checksums are experiment.Digest of the published numbers, for Year of its published table.
var checksums = map[string]string{
	year:             "4b6f8e50235b359e01689ae7fb33ad0f",
	"boston":         "d2a81544bda7c1d2446bebb5082931de",
	"concrete":       "dcbbe52d10cd274a08664448c0d4e61a",
	"energy":         "bcebae3779ef27ae242dcaf10645cc29",
	"energy-cooling": "5c5eabaf3bf820e4ff89a58ebdd80b64",
	"kin8nm":         "31d521b7351f9a321e0be7ef44e104d2",
	"naval":          "821c5f1bcf0322f79d7ad1eda8e17680",
	"protein":        "09f7ec2a6a0521f16f3fc9f8fd4011f1",
	"wine":           "1a8336e6d8579c0974daef8a743960a8",
	"yacht":          "7d053a8f452bf16bbf9e0f15b1b1e26f",
}

// identity is what decides the numbers of Data.
type identity struct {
	Name, SHA256 string
	Kind         Splits `experiment:"Splits"`
	Validation   bool   `experiment:"Choosing"`
	HeldOut      bool
	Calibration  bool
}

// Identity implements spec.Identifier.
func (d Data) Identity() spec.Identity {
	return spec.Identity{Type: "uci.Data", Value: identity{d.Name, checksums[d.Name], d.Kind, d.Validation, d.HeldOut, d.Calibration}}
}

// Check says what cannot be.
func (d Data) Check() error {
	if !slices.Contains(datasets.UCINames(), d.Name) {
		return fmt.Errorf("there is no UCI data set %q; there are %s", d.Name, strings.Join(datasets.UCINames(), ", "))
	}
	if d.Kind < Gal || d.Kind > Hole {
		return fmt.Errorf("there are no splits %v; there are uci.Gal, uci.Random, uci.Gap and uci.Hole", d.Kind)
	}
	if d.Kind == Hole && d.Measured() == nil {
		return fmt.Errorf("there are no holes of %s; figures/uci/holes.csv has those of other data sets, and datasets.HoleSplits makes some", d.Name)
	}
	if d.HeldOut && d.Calibration {
		return fmt.Errorf("uci.Data of %s has HeldOut and Calibration, which are the same examples; leave one of them out", d.Name)
	}
	return nil
}

// Splits implements experiment.Source. It is 0 for a data set that there is not.
func (d Data) Splits() int {
	_, features, published, err := datasets.UCISize(d.Name)
	switch {
	case err != nil:
		return 0
	case d.Kind == Gap:
		return features
	case d.Kind == Hole:
		return len(d.Measured())
	}
	return published
}

// Load implements experiment.Source.
func (d Data) Load(ctx context.Context, split int) (experiment.Data, error) {
	set, splits, err := d.read(ctx)
	if err != nil {
		return experiment.Data{}, err
	}
	held := 0.0
	if d.HeldOut || d.Calibration {
		held = heldOutPart
	}
	return experiment.Table{Set: set, Parts: splits, HeldOut: held, Calibration: d.Calibration}.Load(ctx, split)
}

// read reads the data set and makes the training and test parts of its splits. Year may be downloaded; the context lets Ctrl-C
// stop that.
func (d Data) read(ctx context.Context) (set *datasets.Regression, splits []datasets.Split, err error) {
	if d.Name == year {
		set, err = datasets.Year(ctx, nil)
	} else {
		set, err = datasets.UCI(d.Name)
	}
	if err == nil {
		splits, err = d.splits(set)
	}
	return set, splits, err
}

// splits makes the training and test parts of the splits.
func (d Data) splits(set *datasets.Regression) (splits []datasets.Split, err error) {
	switch d.Kind {
	case Random:
		splits = datasets.RandomSplits(set.N, d.Splits())
	case Gap:
		splits = datasets.GapSplits(set)
	case Hole:
		z := standardised(set)
		for _, m := range d.Measured() {
			splits = append(splits, m.split(set, z))
		}
	default:
		splits, err = datasets.GalSplits(d.Name)
	}
	if d.Validation {
		for i, parts := range splits {
			splits[i] = parts.HoldOut(heldOutPart, uint64(i))
		}
	}
	return splits, err
}

// meanErrors has, by Data, functions that compute the errors of Data.MeanError once. published has, by name, functions that read
// their data sets once.
var meanErrors, published sync.Map

// MeanError is that of experiment.Table. It is not known for Year, which may not be at hand. It panics for a data set and
// for a split that there is not.
func (d Data) MeanError(split int) float64 {
	if d.Name == year {
		return math.Inf(1)
	}
	d.HeldOut, d.Calibration = false, false // of the same parts
	all, _ := meanErrors.LoadOrStore(d, sync.OnceValue(d.computeMeanErrors))
	return all.(func() []float64)()[split]
}

func (d Data) computeMeanErrors() (all []float64) {
	read, _ := published.LoadOrStore(d.Name, sync.OnceValues(func() (*datasets.Regression, error) { return datasets.UCI(d.Name) }))
	set, err := read.(func() (*datasets.Regression, error))()
	var splits []datasets.Split
	if err == nil {
		splits, err = d.splits(set)
	}
	if err != nil {
		panic(fmt.Errorf("uci: the error of predicting the mean: %w", err))
	}
	for _, parts := range splits {
		all = append(all, set.MeanError(parts))
	}
	return all
}

// On are the UCI data sets with these names, on the published splits.
func On(names ...string) []experiment.Source {
	var all []experiment.Source
	for _, name := range names {
		all = append(all, Data{Name: name})
	}
	return all
}
