// Package predictions keeps what a trained classifier said about every example, so that its numbers can
// be computed again, and new ones added, without training again.
//
// One file holds one run: the class probabilities on the test set, averaged over the Monte Carlo
// samples, and each example's scores on every further set, whose labels do not matter; of a network that draws no
// samples the class probabilities there, too, so that several make an ensemble (Ensemble). It has half a megabyte
// for all test images of CIFAR-10, up to 2.5 with the energies of all layers or with probabilities on further sets, on
// CIFAR-100 up to 6, and a tenth of a megabyte for a small run on CIFAR-10.
package predictions

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
)

// Predictions are those of one run. Lists have one value for each example of their set, in the order of
// the set's file. A list that the method does not have is nil.
type Predictions struct {
	Experiment string // the run's identity, results.Experiment.ID()
	Dataset    string // the data set it was trained on, for example "cifar10"
	Classes    int    // C, from 2 to 256
	Samples    int    // Monte Carlo samples that were averaged, at least 1

	// The test set of Dataset, N examples.
	Labels            []int     // classes, 0 to C-1
	Probs             []float64 // [N*C], row-major: probabilities averaged over the samples
	MutualInformation []float64 // between label and sample, in nats; see metrics.MutualInformation
	DempsterShafer    []float64 // of the logits, of a method for which their size means something; see metrics.DempsterShafer
	Distances         Distances
	Energy            Energies

	// Layers are the names of the layers whose energies are in Energies.Layers, in the order in which the network
	// applies them; nil where these are not kept.
	Layers []string

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
	Probs             []float64 // [M*C] as on the test set, of networks that draw no samples: of them an ensemble is made
	Entropy           []float64 // of the averaged probabilities, in nats
	MutualInformation []float64 // between label and sample, in nats
	DempsterShafer    []float64
	Distances         Distances
	Energy            Energies
}

// Energies are those of one layer's input, E(h): for the paper's statistic that of the last convolution,
// averaged over the image's positions.
type Energies struct {
	Mean []float64 // averaged over the Monte Carlo samples
	Once []float64 // of the first sample alone

	Layers [][]float64 // as Mean, for the input of each of Predictions.Layers
}

// Distances are squared Mahalanobis distances of the features before the last layer from Gaussians that were fitted to
// those of the training images afterwards.
type Distances struct {
	One   []float64 // from a single Gaussian
	Class []float64 // from the nearest of one Gaussian for each class, with a common covariance (Lee et al. 2018)
}

// The limits.
const (
	maxClasses  = 256
	maxSamples  = 1 << 20
	maxExamples = 1 << 20 // of one set
	maxSets     = 16
	maxName     = 100 // bytes
	maxLayers   = 1000
)

// Validate reports the first thing that is wrong with p.
func (p *Predictions) Validate() error {
	if err := errors.Join(p.checkNames(), p.checkNumbers()); err != nil {
		return err
	}
	// Accuracy checks labels and probabilities as every metric does.
	if _, err := metrics.Accuracy(p.Probs, p.Classes, p.Labels); err != nil {
		return fmt.Errorf("the test set: %w", err)
	}
	if p.HeldOutLabels != nil || p.HeldOutProbs != nil {
		if _, err := metrics.Accuracy(p.HeldOutProbs, p.Classes, p.HeldOutLabels); err != nil {
			return fmt.Errorf("the held-out images: %w", err)
		}
		if len(p.HeldOutLabels) != p.heldOut() {
			return fmt.Errorf("there are %d labels of held-out images and %d energies", len(p.HeldOutLabels), p.heldOut())
		}
	}
	for _, set := range p.Others {
		if set.Probs == nil {
			continue
		}
		if most, err := metrics.MaxProbability(set.Probs, p.Classes); err != nil {
			return fmt.Errorf("set %q: %w", set.Name, err)
		} else if len(most) != len(set.MaxProbability) {
			return fmt.Errorf("set %q has probabilities of %d examples, and the largest ones of %d", set.Name, len(most), len(set.MaxProbability))
		}
	}
	if err := p.checkLayers(); err != nil {
		return err
	}
	given := false
	for _, c := range p.columns() {
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

// heldOut is the number of held-out examples.
func (p *Predictions) heldOut() int {
	return max(len(p.HeldOut.Mean), len(p.HeldOut.Once), len(p.HeldOutLabels))
}

// checkLayers reports names of layers that cannot be, and energies of other layers than those that are named.
func (p *Predictions) checkLayers() error {
	for i, name := range p.Layers {
		if name == "" || len(name) > maxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_/") != "" || slices.Contains(p.Layers[:i], name) {
			return fmt.Errorf("name %q of layer %d is not 1 to %d lower-case letters, digits, hyphens, underscores and slashes, or is that of another layer", name, i, maxName)
		}
	}
	for _, e := range p.energies() {
		if len(e.Layers) != 0 && len(e.Layers) != len(p.Layers) {
			return fmt.Errorf("there are energies of %d layers, and names of %d", len(e.Layers), len(p.Layers))
		}
	}
	return nil
}

// checkNames reports a name that cannot be.
func (p *Predictions) checkNames() error {
	check := func(what, name string) error {
		if name == "" || len(name) > maxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return fmt.Errorf("name %q of %s is not 1 to %d lower-case letters, digits and hyphens", name, what, maxName)
		}
		return nil
	}
	if err := errors.Join(check("the experiment", p.Experiment), check("the data set", p.Dataset)); err != nil {
		return err
	}
	for i, set := range p.Others {
		if err := check("a set", set.Name); err != nil {
			return err
		}
		if slices.ContainsFunc(p.Others[:i], func(before Set) bool { return before.Name == set.Name }) {
			return fmt.Errorf("two sets are named %q", set.Name)
		}
	}
	return nil
}

// checkNumbers reports what is out of the limits.
func (p *Predictions) checkNumbers() error {
	for _, set := range p.Others {
		if n := len(set.MaxProbability); n < 1 || n > maxExamples {
			return fmt.Errorf("set %q has %d examples, want 1 to %d", set.Name, n, maxExamples)
		}
	}
	for _, c := range []struct {
		what           string
		got, low, high int
	}{
		{"classes", p.Classes, 2, maxClasses},
		{"samples", p.Samples, 1, maxSamples},
		{"test examples", len(p.Labels), 1, maxExamples},
		{"held-out examples", p.heldOut(), 0, maxExamples},
		{"sets", len(p.Others), 0, maxSets},
		{"layers", len(p.Layers), 0, maxLayers},
	} {
		if c.got < c.low || c.got > c.high {
			return fmt.Errorf("%d %s, want %d to %d", c.got, c.what, c.low, c.high)
		}
	}
	return nil
}

// kind is what the numbers of a column are.
type kind int

const (
	probability kind = iota
	nats             // entropy and mutual information
	fraction         // from 0 to 1
	squared          // a squared distance
	energy
)

// domain is the range of a kind's numbers, with room for rounding in float32.
func (k kind) domain() (low, high float64) {
	const room = 1e-4
	switch k {
	case probability, fraction:
		return 0, 1 + room
	case nats:
		return -room, 8 // above the entropy log C of C <= 256 classes
	case squared:
		return 0, 1e38
	}
	return -1e38, 1e38
}

// column is one list of numbers, its name in files, and its length.
type column struct {
	name string
	list *[]float64
	n    int
	kind kind
}

// columns are the lists of p other than labels and probabilities of all classes, whether given or not.
func (p *Predictions) columns() []column {
	examples, heldOut := len(p.Labels), p.heldOut()
	list := []column{
		{"test.mutual_information", &p.MutualInformation, examples, nats},
		{"test.dempster_shafer", &p.DempsterShafer, examples, fraction},
	}
	list = append(list, p.Distances.columns("test.", examples)...)
	list = append(list, p.Energy.columns("test.", p.Layers, examples)...)
	list = append(list, p.HeldOut.columns("held_out.", p.Layers, heldOut)...)
	for i := range p.Others {
		set := &p.Others[i]
		prefix, n := setPrefix(set.Name), len(set.MaxProbability)
		list = append(list,
			column{prefix + "log_max_probability", &set.MaxProbability, n, probability},
			column{prefix + "entropy", &set.Entropy, n, nats},
			column{prefix + "mutual_information", &set.MutualInformation, n, nats},
			column{prefix + "dempster_shafer", &set.DempsterShafer, n, fraction})
		list = append(list, set.Distances.columns(prefix, n)...)
		list = append(list, set.Energy.columns(prefix, p.Layers, n)...)
	}
	return list
}

// setPrefix begins the names of the lists of a further set.
func setPrefix(set string) string { return "ood." + set + "." }

func (d *Distances) columns(prefix string, n int) []column {
	return []column{{prefix + "gaussian", &d.One, n, squared}, {prefix + "class_gaussian", &d.Class, n, squared}}
}

func (e *Energies) columns(prefix string, layers []string, n int) []column {
	list := []column{{prefix + "energy", &e.Mean, n, energy}, {prefix + "energy_once", &e.Once, n, energy}}
	for l := range e.Layers {
		list = append(list, column{prefix + "energy." + layers[l], &e.Layers[l], n, energy})
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
