package predictions

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/methods"
)

// The scores by which sets out of distribution are told from the test set, besides those that package methods names.
// Each is larger for examples that are less like the training data.
const (
	ByMaxProbability = ""            // minus the largest probability, as the paper's baselines
	ByEnergyOnce     = "_energyonce" // methods.ByEnergy of one sample

	ByGaussian      = "_gaussian"      // squared distance of the features from a Gaussian fitted afterwards
	ByClassGaussian = "_classgaussian" // the same from the nearest class's
)

// ByLayer is methods.ByEnergy for the input of a layer, by its name in Predictions.Layers.
func ByLayer(layer string) string { return methods.ByEnergy + "@" + layer }

// Scores are the scores that predictions may have.
func (p *Predictions) Scores() []string {
	list := []string{ByMaxProbability, methods.ByEntropy, methods.ByMutualInformation, methods.ByDempsterShafer, ByGaussian, ByClassGaussian, methods.ByEnergy, ByEnergyOnce}
	for _, layer := range p.Layers {
		list = append(list, ByLayer(layer))
	}
	return list
}

// Alike says whether two numbers of a run are equal up to the rounding of the predictions that are kept.
func Alike(a, b float64) bool { return math.Abs(a-b) <= 1e-5*max(1, math.Abs(b)) }

// Scaled ends the names of the metrics after temperature scaling.
const Scaled = "_scaled"

// Optional says whether a metric of a result line is one that Score leaves out where the predictions do not allow it.
func Optional(metric string) bool {
	return metric == "temperature" || strings.HasPrefix(metric, "ood_") || strings.HasSuffix(metric, Scaled)
}

// Score computes every metric that the predictions allow:
//
//	accuracy, nll, brier, ece10, ece15, adaptive_ece15, classwise_ece15   on the test set
//	aurc                                                                  by the largest probability
//	ood_SET_auroc, ood_SET_auprc, ood_SET_ap, ood_SET_fpr95               for each other set
//	temperature                                                           that the held-out images ask for
//	accuracy_scaled, nll_scaled, ...                                      of the first two lines, with it
//
// In the ood metrics the examples out of distribution are the positive ones. The names stand for the
// score ByMaxProbability; the other scores append their name, as in ood_svhn_auroc_energy, and are
// there if their lists are. Energies of single layers have auroc and auprc alone. Definitions are those of package metrics (auprc by the trapezoidal rule, ap
// the average precision). nll is +Inf when a label has probability 0.
//
// The temperature and what follows from it is there if labels and probabilities of held-out images are,
// and if there is a best one. The other sets have no scaled metrics.
func Score(p *Predictions) (map[string]float64, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("predictions: scoring %s: %w", p.Experiment, err)
	}
	s := scorer{scores: make(map[string]float64)}
	s.classes(p, p.Probs, "")
	s.scaled(p)
	for _, set := range p.Others {
		for _, by := range p.Scores() {
			inside, outside, err := p.oodScores(set, by)
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

// oodScores are the score by which the set's examples are told from the test set's, for the examples of
// each. Both are nil if the predictions lack the lists for it.
func (p *Predictions) oodScores(set Set, by string) (test, other []float64, err error) {
	switch by {
	case ByMaxProbability:
		inside, err := metrics.MaxProbability(p.Probs, p.Classes)
		return negated(inside), negated(set.MaxProbability), err
	case methods.ByEntropy:
		if set.Entropy == nil {
			return nil, nil, nil
		}
		inside, err := metrics.Entropy(p.Probs, p.Classes)
		return inside, set.Entropy, err
	case methods.ByMutualInformation:
		some := func(x float64) bool { return x != 0 }
		if !slices.ContainsFunc(p.MutualInformation, some) && !slices.ContainsFunc(set.MutualInformation, some) {
			return nil, nil, nil // of a single network without noise it tells nothing
		}
		return pair(p.MutualInformation, set.MutualInformation)
	case methods.ByDempsterShafer:
		return pair(p.DempsterShafer, set.DempsterShafer)
	case ByGaussian:
		return pair(p.Distances.One, set.Distances.One)
	case ByClassGaussian:
		return pair(p.Distances.Class, set.Distances.Class)
	case methods.ByEnergy:
		return distances(p.Energy.Mean, set.Energy.Mean, p.HeldOut.Mean)
	case ByEnergyOnce:
		return distances(p.Energy.Once, set.Energy.Once, p.HeldOut.Once)
	}
	if name, is := strings.CutPrefix(by, ByLayer("")); is && slices.Contains(p.Layers, name) {
		l := slices.Index(p.Layers, name)
		if p.Energy.Layers == nil || set.Energy.Layers == nil || p.HeldOut.Layers == nil {
			return nil, nil, nil
		}
		return distances(p.Energy.Layers[l], set.Energy.Layers[l], p.HeldOut.Layers[l])
	}
	return nil, nil, fmt.Errorf("predictions: unknown score %q", by)
}

// pair are two lists, or neither where one is missing.
func pair(test, other []float64) (testScore, otherScore []float64, err error) {
	if test == nil || other == nil {
		return nil, nil, nil
	}
	return test, other, nil
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

// classes adds the metrics of class probabilities on the test set.
func (s *scorer) classes(p *Predictions, probs []float64, suffix string) {
	s.set("accuracy" + suffix)(metrics.Accuracy(probs, p.Classes, p.Labels))
	s.set("nll" + suffix)(metrics.CategoricalNLL(probs, p.Classes, p.Labels))
	s.set("brier" + suffix)(metrics.Brier(probs, p.Classes, p.Labels))
	s.set("classwise_ece15" + suffix)(metrics.ClasswiseECE(probs, p.Classes, p.Labels, 15))
	outcomes, err := metrics.NewOutcomes(probs, p.Classes, p.Labels)
	if err != nil {
		s.note(err)
		return
	}
	s.set("ece10" + suffix)(outcomes.ECE(10))
	s.set("ece15" + suffix)(outcomes.ECE(15))
	s.set("adaptive_ece15" + suffix)(outcomes.AdaptiveECE(15))
	s.set("aurc" + suffix)(metrics.AURC(outcomes.Confidence, outcomes.Right))
}

// scaled adds the temperature that the held-out images ask for, and the metrics with it.
func (s *scorer) scaled(p *Predictions) {
	probs, t, err := p.Scaled()
	if err != nil || probs == nil {
		s.note(err)
		return
	}
	s.scores["temperature"] = t
	s.classes(p, probs, Scaled)
}

// Scaled are the probabilities on the test set, [N*C], with the temperature that the held-out images ask for; nil
// without labels of these, and where none is best for them.
func (p *Predictions) Scaled() (probs []float64, temperature float64, err error) {
	if p.HeldOutLabels == nil {
		return nil, 0, nil
	}
	temperature, err = metrics.FitTemperature(logits(p.HeldOutProbs), p.Classes, p.HeldOutLabels)
	if errors.Is(err, metrics.ErrNoTemperature) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	probs, err = metrics.Softmax(logits(p.Probs), p.Classes, temperature)
	return probs, temperature, err
}

// logits are those of probabilities, up to a number for each example, which makes no difference. A
// probability of 0 is taken as smallest.
func logits(probs []float64) []float64 {
	logs := make([]float64, len(probs))
	for i, p := range probs {
		logs[i] = math.Log(math.Max(p, smallest))
	}
	return logs
}

// smallest is below all positive numbers of float32, in which networks compute their logits. Means over samples are of
// float64, and a smaller one counts as this.
const smallest = 0x1p-150

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
	if strings.HasPrefix(suffix, ByLayer("")) {
		return
	}
	s.scores[prefix+"ap"+suffix] = sweep.AveragePrecision()
	s.scores[prefix+"fpr95"+suffix] = sweep.FPRAtTPR(0.95)
}
