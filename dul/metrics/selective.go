package metrics

// AURC returns the area under the risk-coverage curve (El-Yaniv and Wiener 2010, Geifman et al. 2019), 1/N sum_{k=1}^N
// risk_k, where risk_k is the fraction of wrong answers among the k most confident examples. It is between 0 (no
// errors) and 1; smaller is better. It depends on the accuracy too: a constant confidence gives 1 - accuracy.
//
// confidence is any score that is larger for answers that are trusted more, such as the largest probability or the
// negative entropy. Examples of equal confidence count by their average over all orders. NewOutcomes returns right and
// a confidence.
func AURC(confidence []float64, right []bool) float64 {
	wrong := make([]bool, len(right))
	for i, r := range right {
		wrong[i] = !r
	}
	return NewRanks(confidence, wrong).Sweep(nil).AURC()
}

// AURC returns the result of the function AURC for the examples of the sweep. The score is the confidence, and the
// positive examples are those with a wrong answer.
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
