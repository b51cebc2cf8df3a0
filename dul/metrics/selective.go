package metrics

// A selective classifier answers only where it is confident: of N examples the k with the largest
// confidence. Its coverage is k/N and its risk the fraction of wrong answers among the k. Any score that
// is larger where the prediction is trusted more will do as confidence: the largest probability, the
// negative entropy, the negative energy statistic. right says which answers are right; both come from
// NewOutcomes. Examples of equal confidence cannot be told apart, so that every order of them is equally
// likely and the area below is an average over those orders.

// AURC is the area under the curve of risk over coverage (El-Yaniv and Wiener 2010, Geifman et al. 2019),
// 1/N sum_{k=1}^N risk_k, where risk_k is that of the k most confident examples: from 0 (no errors) to 1.
// Smaller is better. It depends on the accuracy too; a constant confidence gives 1 - accuracy.
func AURC(confidence []float64, right []bool) float64 {
	wrong := make([]bool, len(right))
	for i, r := range right {
		wrong[i] = !r
	}
	return NewRanks(confidence, wrong).Sweep(nil).AURC()
}

// AURC is what the function AURC computes, where the score is the confidence and the positive examples are those with a
// wrong answer, over the examples of the sweep.
func (s Sweep) AURC() float64 {
	total := 0.0
	kept, wrong := 0, 0
	for g, hits := range s.hits {
		// Of j random examples of this confidence the expected number of wrong ones is in proportion.
		size := hits + s.misses[g]
		if size == 1 { // the rest of the loop in one division
			total += float64(wrong+hits) / float64(kept+1)
		}
		for j := 1; j <= size && size > 1; j++ {
			total += (float64(wrong) + float64(hits)*float64(j)/float64(size)) / float64(kept+j)
		}
		kept += size
		wrong += hits
	}
	return total / (s.positives + s.negatives)
}
