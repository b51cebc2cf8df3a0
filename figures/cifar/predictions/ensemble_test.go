package predictions

import (
	"math"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/methods"
)

// network are predictions of a network without noise of two classes, on two test images and two of a further set, whose
// first classes have these probabilities.
func network(name string, test, other [2]float64) *Predictions {
	rows := func(first [2]float64) []float64 { return []float64{first[0], 1 - first[0], first[1], 1 - first[1]} }
	largest := func(p float64) float64 { return max(p, 1-p) }
	return &Predictions{
		Experiment: name, Dataset: "b", Classes: 2, Samples: 1, Labels: []int{0, 1}, Probs: rows(test),
		Others: []Set{{Name: "c", MaxProbability: []float64{largest(other[0]), largest(other[1])}, Probs: rows(other)}},
	}
}

// By hand: two networks that agree on the test images and not on the others, each of them being certain.
func TestEnsemble(t *testing.T) {
	a, b := network("a", [2]float64{0.9, 0.2}, [2]float64{1, 0.7}), network("b", [2]float64{0.7, 0.4}, [2]float64{0, 0.3})
	// Through files, as runs keep them.
	p := must.Get(Ensemble(read(t, written(t, a)), read(t, written(t, b))))(t)
	near := func(what string, got []float64, want ...float64) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }) {
			t.Errorf("%s are %v, want %v", what, got, want)
		}
	}
	entropy := func(p float64) float64 { return -p*math.Log(p) - (1-p)*math.Log(1-p) }
	near("probabilities", p.Probs, 0.8, 0.2, 0.3, 0.7)
	near("information of the test images", p.MutualInformation, entropy(0.8)-(entropy(0.9)+entropy(0.7))/2, entropy(0.3)-(entropy(0.2)+entropy(0.4))/2)
	c := p.Others[0]
	near("largest probabilities", c.MaxProbability, 0.5, 0.5)
	near("entropies", c.Entropy, math.Ln2, math.Ln2)
	near("information of the others", c.MutualInformation, math.Ln2, math.Ln2-entropy(0.7))
	s := scored(t, read(t, written(t, p)))
	if p.Samples != 2 || s["accuracy"] != 1 || s["ood_c_auroc"] != 1 || s["ood_c_auroc"+methods.ByMutualInformation] != 1 ||
		math.Abs(s["nll"]+(math.Log(0.8)+math.Log(0.7))/2) > 1e-6 {
		t.Errorf("of %d networks: %v", p.Samples, s)
	}

	// A set of which one of them has only the largest probabilities is left out.
	b.Others[0].Probs = nil
	if p := must.Get(Ensemble(a, b))(t); len(p.Others) != 0 {
		t.Errorf("sets %v", p.Others)
	}
	b.Others = nil
	if p := must.Get(Ensemble(a, b))(t); len(p.Others) != 0 {
		t.Errorf("sets %v", p.Others)
	}
}

func TestNoEnsemble(t *testing.T) {
	made := func(change func(*Predictions)) *Predictions {
		p := network("second", [2]float64{0.5, 0.5}, [2]float64{0.5, 0.5})
		change(p)
		return p
	}
	first := network("first", [2]float64{0.5, 0.5}, [2]float64{0.5, 0.5})
	for _, c := range []struct {
		want    string
		members []*Predictions
	}{
		{"an ensemble of 1 runs", []*Predictions{first}},
		{"run second is of other test images than run first", []*Predictions{first, made(func(p *Predictions) { p.Labels[1] = 0 })}},
		{"run second is of other test images", []*Predictions{first, made(func(p *Predictions) { p.Dataset = "d" })}},
		{"run second is a mean of 5 samples", []*Predictions{first, made(func(p *Predictions) { p.Samples = 5 })}},
		{"the ensemble of first, second: ", []*Predictions{first, made(func(p *Predictions) { p.Probs = p.Probs[:2] })}},
		{`the ensemble of first, second: set "c": `, []*Predictions{first, made(func(p *Predictions) { p.Others[0].Probs = p.Others[0].Probs[:2] })}},
	} {
		if _, err := Ensemble(c.members...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
