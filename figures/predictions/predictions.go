// Package predictions keeps what a trained classifier said about every example, so that its numbers can
// be computed again, and new ones added, without training again.
//
// One file holds one run: the class probabilities on the test set, averaged over the Monte Carlo
// samples, and each example's scores on every further set, whose labels do not matter. It is small enough
// to be kept beside the result lines: half a megabyte for CIFAR-10 with SVHN and energies.
package predictions

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
)

// Predictions are those of one run. Lists have one value for each example of their set, in the order of
// the set's file. A list that the method does not have is nil.
type Predictions struct {
	Experiment string // the run's identity, experiment.Experiment.ID()
	Dataset    string // the data set it was trained on, for example "cifar10"
	Classes    int    // C, from 2 to 256
	Samples    int    // Monte Carlo samples that were averaged, at least 1

	// The test set of Dataset, N examples.
	Labels            []int     // classes, 0 to C-1
	Probs             []float64 // [N*C], row-major: probabilities averaged over the samples
	MutualInformation []float64 // between label and sample, in nats; see metrics.MutualInformation
	DempsterShafer    []float64 // of the logits, of a method for which their size means something; see metrics.DempsterShafer
	Energy            Energies

	// HeldOut are the energies on training images that were held out, the reference of the energy
	// statistic; see metrics.EnergyOOD. Wherever energies are given, so must be these.
	HeldOut Energies

	// HeldOutLabels and HeldOutProbs, [H*C], are of the same images: what a temperature is fitted on
	// (metrics.FitTemperature). Both or neither are given, and only of a network that draws no samples,
	// whose probabilities are those of its logits.
	HeldOutLabels []int
	HeldOutProbs  []float64

	Others []Set // out of distribution, with different names
}

// Set is what is kept of a set that is out of distribution, M examples.
type Set struct {
	Name              string    // for example "svhn"; lower-case letters, digits and hyphens
	MaxProbability    []float64 // max_c of the averaged probabilities; every set has it
	Entropy           []float64 // of the averaged probabilities, in nats
	MutualInformation []float64 // between label and sample, in nats
	DempsterShafer    []float64
	Energy            Energies
}

// Energies are those of one layer's input, E(h): for the paper's statistic that of the last convolution,
// averaged over the image's positions.
type Energies struct {
	Mean []float64 // averaged over the Monte Carlo samples
	Once []float64 // of the first sample alone
}

// The limits, which also bound what Read takes in.
const (
	maxClasses  = 256
	maxSamples  = 1 << 20
	maxExamples = 1 << 20 // of one set
	maxSets     = 16
	maxName     = 100 // bytes
)

// Validate reports the first thing that is wrong with p.
func (p *Predictions) Validate() error {
	h := p.header()
	if err := h.check(); err != nil {
		return err
	}
	// Accuracy checks labels and probabilities as every metric does.
	if _, err := metrics.Accuracy(p.Probs, p.Classes, p.Labels); err != nil {
		return fmt.Errorf("the test set: %w", err)
	}
	if h.HeldOutClasses || p.HeldOutProbs != nil {
		if _, err := metrics.Accuracy(p.HeldOutProbs, p.Classes, p.HeldOutLabels); err != nil {
			return fmt.Errorf("the held-out images: %w", err)
		}
		if len(p.HeldOutLabels) != h.HeldOut {
			return fmt.Errorf("there are %d labels of held-out images and %d energies", len(p.HeldOutLabels), h.HeldOut)
		}
	}
	given := false
	for _, c := range p.columns(h) {
		if *c.list != nil {
			if err := c.check(); err != nil {
				return err
			}
			given = given || c.kind == energy
		}
	}
	if given && p.HeldOut.Mean == nil && p.HeldOut.Once == nil {
		return fmt.Errorf("there are energies but none of a held-out set to compare them with")
	}
	return nil
}

// header is the first part of a file: what it is about, how many examples the sets have, and which
// columns follow.
type header struct {
	Experiment string `json:"experiment"`
	Dataset    string `json:"dataset"`
	Classes    int    `json:"classes"`
	Samples    int    `json:"samples"`
	Examples   int    `json:"examples"`
	HeldOut    int    `json:"held_out"`
	// HeldOutClasses says that labels and probabilities of the held-out examples are there.
	HeldOutClasses bool        `json:"held_out_classes,omitempty"`
	Others         []setHeader `json:"others"`
	Columns        []string    `json:"columns"`
}

type setHeader struct {
	Name     string `json:"name"`
	Examples int    `json:"examples"`
}

func (p *Predictions) header() header {
	h := header{Experiment: p.Experiment, Dataset: p.Dataset, Classes: p.Classes, Samples: p.Samples,
		Examples: len(p.Labels), HeldOut: max(len(p.HeldOut.Mean), len(p.HeldOut.Once), len(p.HeldOutLabels)), HeldOutClasses: p.HeldOutLabels != nil}
	for _, set := range p.Others {
		h.Others = append(h.Others, setHeader{set.Name, len(set.MaxProbability)})
	}
	for _, c := range p.columns(h) {
		if *c.list != nil {
			h.Columns = append(h.Columns, c.name)
		}
	}
	return h
}

// check reports what is out of the limits.
func (h header) check() error {
	names := []string{h.Experiment, h.Dataset}
	for _, set := range h.Others {
		names = append(names, set.Name)
		if set.Examples < 1 || set.Examples > maxExamples {
			return fmt.Errorf("set %q has %d examples, want 1 to %d", set.Name, set.Examples, maxExamples)
		}
	}
	for i, name := range names {
		if name == "" || len(name) > maxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return fmt.Errorf("name %q of %s is not 1 to %d lower-case letters, digits and hyphens", name, [...]string{"the experiment", "the data set", "a set"}[min(i, 2)], maxName)
		}
		if i > 2 && slices.Contains(names[2:i], name) {
			return fmt.Errorf("two sets are named %q", name)
		}
	}
	for _, c := range []struct {
		what           string
		got, low, high int
	}{
		{"classes", h.Classes, 2, maxClasses},
		{"samples", h.Samples, 1, maxSamples},
		{"test examples", h.Examples, 1, maxExamples},
		{"held-out examples", h.HeldOut, 0, maxExamples},
		{"sets", len(h.Others), 0, maxSets},
	} {
		if c.got < c.low || c.got > c.high {
			return fmt.Errorf("%d %s, want %d to %d", c.got, c.what, c.low, c.high)
		}
	}
	return nil
}

// classified are examples with labels and probabilities.
type classified struct {
	labels *[]int
	probs  *[]float64
	n      int
}

// classified are the sets of p with labels and probabilities, in the order of the file.
func (p *Predictions) classified(h header) []classified {
	list := []classified{{&p.Labels, &p.Probs, h.Examples}}
	if h.HeldOutClasses {
		list = append(list, classified{&p.HeldOutLabels, &p.HeldOutProbs, h.HeldOut})
	}
	return list
}

// column is one list of numbers, its length, and how it is stored.
type column struct {
	name string
	list *[]float64
	n    int
	kind kind
}

// columns are the lists of p other than the test set's labels and probabilities, in the order of the
// file, whether given or not.
func (p *Predictions) columns(h header) []column {
	list := []column{
		{"mutual information", &p.MutualInformation, h.Examples, nats},
		{"dempster-shafer", &p.DempsterShafer, h.Examples, fraction},
		{"energy", &p.Energy.Mean, h.Examples, energy},
		{"energy once", &p.Energy.Once, h.Examples, energy},
		{"held-out energy", &p.HeldOut.Mean, h.HeldOut, energy},
		{"held-out energy once", &p.HeldOut.Once, h.HeldOut, energy},
	}
	for i := range p.Others {
		set, m := &p.Others[i], h.Others[i].Examples
		list = append(list,
			column{set.Name + " max probability", &set.MaxProbability, m, probability},
			column{set.Name + " entropy", &set.Entropy, m, nats},
			column{set.Name + " mutual information", &set.MutualInformation, m, nats},
			column{set.Name + " dempster-shafer", &set.DempsterShafer, m, fraction},
			column{set.Name + " energy", &set.Energy.Mean, m, energy},
			column{set.Name + " energy once", &set.Energy.Once, m, energy})
	}
	return list
}

// check reports a list of the wrong length or with values that its kind does not have.
func (c column) check() error {
	if len(*c.list) != c.n {
		return fmt.Errorf("column %q has %d values for %d examples", c.name, len(*c.list), c.n)
	}
	low, high := c.kind.domain()
	for i, v := range *c.list {
		if math.IsNaN(v) || v < low || v > high {
			return fmt.Errorf("column %q has the value %v at example %d, want one from %v to %v", c.name, v, i, low, high)
		}
	}
	return nil
}
