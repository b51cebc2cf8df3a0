package predictions

import (
	"fmt"
	"slices"

	"densityuncertainty/dul/metrics"
)

// The scores by which sets out of distribution are told from the test set. Larger is stranger in each.
const (
	ByMaxProbability    = ""                   // minus the largest probability, as the paper's baselines
	ByEntropy           = "_entropy"           // entropy of the averaged probabilities
	ByMutualInformation = "_mutualinformation" // between label and sample
	ByEnergy            = "_energy"            // squared distance from the mean held-out energy, as the paper's method
	ByEnergyOnce        = "_energyonce"        // the same of one sample
)

// Score computes every metric that the predictions allow:
//
//	accuracy, nll, brier, ece10, ece15, adaptive_ece15, classwise_ece15   on the test set
//	aurc                                                                  by the largest probability
//	ood_SET_auroc, ood_SET_auprc, ood_SET_ap, ood_SET_fpr95               for each other set
//
// where the examples out of distribution are the positive ones and each of the last names stands for the
// score ByMaxProbability; the other scores append their name, as in ood_svhn_auroc_energy, and are
// there if their lists are. Definitions are those of package metrics (auprc by the trapezoidal rule, ap
// the average precision). nll is +Inf when a label has probability 0.
func Score(p *Predictions) (map[string]float64, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("predictions: scoring %s: %w", p.Experiment, err)
	}
	s := scorer{scores: make(map[string]float64)}
	s.set("accuracy")(metrics.Accuracy(p.Probs, p.Classes, p.Labels))
	s.set("nll")(metrics.CategoricalNLL(p.Probs, p.Classes, p.Labels))
	s.set("brier")(metrics.Brier(p.Probs, p.Classes, p.Labels))
	s.set("classwise_ece15")(metrics.ClasswiseECE(p.Probs, p.Classes, p.Labels, 15))
	outcomes, err := metrics.NewOutcomes(p.Probs, p.Classes, p.Labels)
	s.note(err)
	s.set("ece10")(outcomes.ECE(10))
	s.set("ece15")(outcomes.ECE(15))
	s.set("adaptive_ece15")(outcomes.AdaptiveECE(15))
	s.set("aurc")(metrics.AURC(outcomes.Confidence, outcomes.Right))
	for _, set := range p.Others {
		for _, by := range []string{ByMaxProbability, ByEntropy, ByMutualInformation, ByEnergy, ByEnergyOnce} {
			inside, outside, err := p.Strangeness(set, by)
			s.note(err)
			if inside != nil && outside != nil {
				s.detection("ood_"+set.Name+"_", by, inside, outside)
			}
		}
	}
	if s.err != nil {
		return nil, fmt.Errorf("predictions: scoring %s: %w", p.Experiment, s.err)
	}
	return s.scores, nil
}

// Strangeness is the score by which the set's examples are told from the test set's, for the examples of
// each. Both are nil if the predictions lack the lists for it.
func (p *Predictions) Strangeness(set Set, by string) (test, other []float64, err error) {
	switch by {
	case ByMaxProbability:
		inside, err := metrics.MaxProbability(p.Probs, p.Classes)
		return negated(inside), negated(set.MaxProbability), err
	case ByEntropy:
		if set.Entropy == nil {
			return nil, nil, nil
		}
		inside, err := metrics.Entropy(p.Probs, p.Classes)
		return inside, set.Entropy, err
	case ByMutualInformation:
		if p.MutualInformation == nil || set.MutualInformation == nil {
			return nil, nil, nil
		}
		return p.MutualInformation, set.MutualInformation, nil
	case ByEnergy:
		return distances(p.Energy.Mean, set.Energy.Mean, p.HeldOut.Mean)
	case ByEnergyOnce:
		return distances(p.Energy.Once, set.Energy.Once, p.HeldOut.Once)
	}
	return nil, nil, fmt.Errorf("predictions: unknown score %q", by)
}

// distances is the energy statistic of both sets.
func distances(test, other, heldOut []float64) (testScore, otherScore []float64, err error) {
	if test == nil || other == nil || heldOut == nil {
		return nil, nil, nil
	}
	if testScore, err = metrics.EnergyOOD(test, heldOut); err != nil {
		return nil, nil, err
	}
	if otherScore, err = metrics.EnergyOOD(other, heldOut); err != nil {
		return nil, nil, err
	}
	return testScore, otherScore, nil
}

func negated(values []float64) []float64 {
	turned := make([]float64, len(values))
	for i, v := range values {
		turned[i] = -v
	}
	return turned
}

// scorer collects numbers and the first error.
type scorer struct {
	scores map[string]float64
	err    error
}

func (s *scorer) note(err error) {
	if s.err == nil {
		s.err = err
	}
}

// set returns a function that takes a metric's results.
func (s *scorer) set(name string) func(float64, error) {
	return func(value float64, err error) {
		s.note(err)
		s.scores[name] = value
	}
}

// detection adds the ranking metrics of one score.
func (s *scorer) detection(prefix, suffix string, inside, outside []float64) {
	positive := slices.Concat(make([]bool, len(inside)), slices.Repeat([]bool{true}, len(outside)))
	ranks, err := metrics.NewRanks(slices.Concat(inside, outside), positive)
	if err != nil {
		s.note(err)
		return
	}
	sweep, err := ranks.Sweep(nil)
	if err != nil {
		s.note(err)
		return
	}
	s.scores[prefix+"auroc"+suffix] = sweep.AUROC()
	s.scores[prefix+"auprc"+suffix] = sweep.AUPRC()
	s.scores[prefix+"ap"+suffix] = sweep.AveragePrecision()
	s.scores[prefix+"fpr95"+suffix] = sweep.FPRAtTPR(0.95)
}
