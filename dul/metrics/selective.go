package metrics

import (
	"iter"
	"slices"
)

// A selective classifier answers only where it is confident: of N examples the k with the largest
// confidence. Its coverage is k/N and its risk the fraction of wrong answers among the k. Any score that
// is larger where the prediction is trusted more will do as confidence: the largest probability, the
// negative entropy, the negative energy statistic. right says which answers are right; both come from
// NewOutcomes. Examples of equal confidence cannot be told apart, so that every order of them is equally
// likely and the numbers below are averages over those orders.

// RiskCoverage is the curve of risk over coverage (El-Yaniv and Wiener 2010), one point for each
// different confidence from the largest down. At the last point coverage is 1 and risk is 1 - accuracy.
func RiskCoverage(confidence []float64, right []bool) (coverage, risk []float64, err error) {
	groups, err := selections(confidence, right)
	if err != nil {
		return nil, nil, err
	}
	kept, wrong := 0, 0
	for _, g := range groups {
		kept += g.size
		wrong += g.wrong
		coverage = append(coverage, float64(kept)/float64(len(right)))
		risk = append(risk, float64(wrong)/float64(kept))
	}
	return coverage, risk, nil
}

// AURC is the area under the risk-coverage curve (Geifman et al. 2019), 1/N sum_{k=1}^N risk_k, where
// risk_k is that of the k most confident examples: from 0 (no errors) to 1. Smaller is better. It depends
// on the accuracy too; a constant confidence gives 1 - accuracy.
func AURC(confidence []float64, right []bool) (float64, error) {
	groups, err := selections(confidence, right)
	if err != nil {
		return 0, err
	}
	return meanRisk(slices.Values(groups)), nil
}

// meanRisk is the mean of the risks of the 1, 2, ... most confident examples of all selections, the most confident first.
func meanRisk(groups iter.Seq[selection]) float64 {
	total := 0.0
	kept, wrong := 0, 0
	for g := range groups {
		for j := 1; j <= g.size; j++ {
			total += g.riskOf(kept, wrong, j)
		}
		kept += g.size
		wrong += g.wrong
	}
	return total / float64(kept)
}

// selection is the examples of one confidence.
type selection struct{ size, wrong int }

// riskOf is the expected risk of the examples kept before, wrong of them wrong, and j random ones of
// the selection.
func (s selection) riskOf(kept, wrong, j int) float64 {
	return (float64(wrong) + float64(s.wrong)*float64(j)/float64(s.size)) / float64(kept+j)
}

// selections groups the examples by confidence, the largest first.
func selections(confidence []float64, right []bool) ([]selection, error) {
	if err := checkSome("confidence", confidence); err != nil {
		return nil, err
	}
	if err := checkLength("right", len(right), "confidence", len(confidence)); err != nil {
		return nil, err
	}
	order := ascending(confidence)
	var groups []selection
	for k := len(order) - 1; k >= 0; k-- {
		if k+1 == len(order) || order[k].value != order[k+1].value {
			groups = append(groups, selection{})
		}
		last := &groups[len(groups)-1]
		last.size++
		if !right[order[k].index] {
			last.wrong++
		}
	}
	return groups, nil
}
