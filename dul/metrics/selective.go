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
	return NewRanks(confidence, wrong).Sweep().AURC()
}

// AURC returns the result of the function AURC for the examples of the sweep. The score is the confidence, and the
// positive examples are those with a wrong answer.
func (s Sweep) AURC() float64 {
	total, kept, wrong := 0.0, 0, 0
	for g, misses := range s.misses {
		hits := int(s.hits[g])
		size := hits + int(misses)
		// Of j random examples of this confidence the expected number of wrong ones is share j, and the risks add up to
		// sum_{j=1}^size (wrong + share j) / (kept + j).
		share := float64(hits) / float64(max(size, 1))
		total += share*float64(size) + (float64(wrong)-share*float64(kept))*(s.harmonics[kept+size]-s.harmonics[kept])
		kept, wrong = kept+size, wrong+hits
	}
	return total / (s.positives + s.negatives)
}
