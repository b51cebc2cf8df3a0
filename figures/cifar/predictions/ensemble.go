package predictions

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/predict"
)

// Ensemble are the predictions of the deep ensemble (Lakshminarayanan et al. 2017) whose members are the networks of
// several runs: the mean of their probabilities, and how far they disagree (metrics.MutualInformation of label and
// member). Of the further sets it has those for which all members have the probabilities of all classes; their lists
// of energies, distances and held-out images, which belong to single networks, it has not. The runs must be of the same
// test images and draw no samples; an error says which of them is not.
func Ensemble(members ...*Predictions) (*Predictions, error) {
	if len(members) < 2 {
		return nil, fmt.Errorf("predictions: an ensemble of %d runs; there must be two at least", len(members))
	}
	first := members[0]
	p := &Predictions{Dataset: first.Dataset, Classes: first.Classes, Samples: len(members), Labels: slices.Clone(first.Labels)}
	var names []string
	for _, m := range members {
		if m.Dataset != p.Dataset || m.Classes != p.Classes || !slices.Equal(m.Labels, p.Labels) {
			return nil, fmt.Errorf("predictions: run %s is of other test images than run %s, so they are no ensemble", m.Experiment, first.Experiment)
		}
		if m.Samples != 1 {
			return nil, fmt.Errorf("predictions: run %s is a mean of %d samples, and what each of them says, which the mutual information is made of, is not kept",
				m.Experiment, m.Samples)
		}
		names = append(names, m.Experiment)
	}
	p.Experiment = fmt.Sprintf("%s-and-%d-more", first.Experiment, len(members)-1)
	fail := func(err error) (*Predictions, error) {
		return nil, fmt.Errorf("predictions: the ensemble of %s: %w", strings.Join(names, ", "), err)
	}
	mixed := func(of func(*Predictions) []float64) (mean, information []float64, err error) {
		each := make([][]float64, len(members))
		for i, m := range members {
			each[i] = of(m)
		}
		return predict.MixClasses(each, p.Classes)
	}
	var err error
	if p.Probs, p.MutualInformation, err = mixed(func(m *Predictions) []float64 { return m.Probs }); err != nil {
		return fail(err)
	}
	for _, set := range first.Others {
		if slices.ContainsFunc(members, func(m *Predictions) bool { return m.set(set.Name).Probs == nil }) {
			continue
		}
		made := Set{Name: set.Name}
		var mutual, most, entropy error
		made.Probs, made.MutualInformation, mutual = mixed(func(m *Predictions) []float64 { return m.set(set.Name).Probs })
		made.MaxProbability, most = metrics.MaxProbability(made.Probs, p.Classes)
		made.Entropy, entropy = metrics.Entropy(made.Probs, p.Classes)
		if err := errors.Join(mutual, most, entropy); err != nil {
			return fail(fmt.Errorf("set %q: %w", set.Name, err))
		}
		p.Others = append(p.Others, made)
	}
	return p, p.Validate()
}

// set is the further set of that name, without any lists where there is none.
func (p *Predictions) set(name string) Set {
	i := slices.IndexFunc(p.Others, func(s Set) bool { return s.Name == name })
	if i < 0 {
		return Set{}
	}
	return p.Others[i]
}
