package baselines

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul/metrics"
)

// Deep ensembles (Lakshminarayanan et al. 2017) are M networks of Deterministic
// layers, or of any others, that are trained apart from M seeds; their prediction
// is the mixture of the members' with equal weights. Members of a regression are
// replicas of one graph (nets.NewReplicas, predict.Mix), those
// of a classifier are trained one by one. The experiments do so in
// methods.Regressions.Fit and cifar.Classifier.

// MixClasses is the prediction of an ensemble of classifiers from its members'
// probabilities, each [N*classes]:
//
//	p(y | x) = 1/M sum_m p_m(y | x),
//
// and the mutual information of label and member, in nats, [N]: the entropy of p
// minus the mean entropy of the members, which is how far they disagree.
func MixClasses(members [][]float64, classes int) (probabilities, mutualInformation []float64, err error) {
	if len(members) == 0 {
		return nil, nil, errors.New("an ensemble without members has no prediction")
	}
	probabilities = make([]float64, len(members[0]))
	var entropies []float64 // mean over the members
	weight := 1 / float64(len(members))
	for m, p := range members {
		if len(p) != len(probabilities) {
			return nil, nil, fmt.Errorf("member %d of the ensemble has %d probabilities, member 0 has %d", m, len(p), len(probabilities))
		}
		each, err := metrics.Entropy(p, classes)
		if err != nil {
			return nil, nil, fmt.Errorf("member %d of the ensemble: %w", m, err)
		}
		if entropies == nil {
			entropies = make([]float64, len(each))
		}
		floats.AddScaled(probabilities, weight, p)
		floats.AddScaled(entropies, weight, each)
	}
	mutualInformation, err = metrics.Entropy(probabilities, classes)
	if err != nil {
		return nil, nil, err
	}
	for i, h := range entropies {
		mutualInformation[i] = math.Max(mutualInformation[i]-h, 0) // never negative but by rounding
	}
	return probabilities, mutualInformation, nil
}
