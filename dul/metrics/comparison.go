package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Difference is the mean difference of two methods over paired measurements, with its interval and test.
type Difference struct {
	Mean      float64 // mean of the differences a_i - b_i
	Low, High float64 // the interval for the mean, at the requested level
	P         float64 // two-sided p-value of a mean of 0
}

// NewDifference returns a mean difference with the standard error se: the interval mean +- z.Quantile((1+level)/2) se,
// and the two-sided P of mean/se, which has the distribution z if the true mean is 0. If se is 0, P is 0, or 1 if the
// mean is 0 too.
func NewDifference(mean, se, level float64, z interface {
	Quantile(p float64) float64
	Survival(x float64) float64
}) Difference {
	inUnit(level)
	reach := z.Quantile((1+level)/2) * se
	d := Difference{Mean: mean, Low: mean - reach, High: mean + reach}
	switch {
	case math.IsNaN(mean + se):
		d.P = math.NaN()
	case se > 0:
		d.P = 2 * z.Survival(math.Abs(mean)/se)
	case mean == 0:
		d.P = 1
	}
	return d
}

// PairedDifference compares two methods measured on the same n >= 2 splits of one data set. Splits share examples, so
// that the differences d_i = a_i - b_i are correlated and the usual t interval is too narrow. With the correction of
// Nadeau and Bengio (2003, section 3) the interval is
//
//	mean(d) +- t_{n-1}((1+level)/2) s sqrt(1/n + testTrain),   s^2 = 1/(n-1) sum_i (d_i - mean(d))^2,
//
// where testTrain is the number of test examples divided by the number of training examples of a split (1/9 for ten
// percent test examples). For independent measurements, such as seeds, pass 0. P is the p-value of t = mean(d) / (s
// sqrt(1/n + testTrain)) with n-1 degrees of freedom. If all d_i are equal, within 1e-12 of the largest value, their
// spread is unknown: P and the interval are NaN. If all are 0, P is 1 and the interval is their mean. It panics unless
// 0 < level < 1.
func PairedDifference(a, b []float64, testTrain, level float64) Difference {
	same("b", len(b), "a", len(a))
	if len(a) < 2 || testTrain < 0 {
		panic(fmt.Sprintf("metrics: a paired difference of %d pairs with %v test examples for each training example", len(a), testTrain))
	}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = a[i] - b[i]
	}
	mean, s := stat.MeanStdDev(differences, nil)
	if rounding := 1e-12 * max(floats.Norm(a, math.Inf(1)), floats.Norm(b, math.Inf(1))); s <= rounding {
		if s = math.NaN(); math.Abs(mean) <= rounding {
			return Difference{Mean: mean, Low: mean, High: mean, P: 1}
		}
	}
	n := float64(len(a))
	return NewDifference(mean, s*math.Sqrt(1/n+testTrain), level, distuv.StudentsT{Sigma: 1, Nu: n - 1})
}

// BootstrapDifference returns the difference of a number between two methods, with the interval and P-value for other
// test examples, from at least two bootstrap replicates of the difference (see Replicates). With se their standard
// deviation the interval is
//
//	value +- z((1+level)/2) se,
//
// where z is the normal quantile, and P is that of value/se. Both hold for many examples. The interval is centred at
// the value, because numbers such as the calibration error are larger on resamples. If se is 0, P is 0, or 1 if the
// value is 0 too.
func BootstrapDifference(value float64, replicates []float64, level float64) Difference {
	return NewDifference(value, stat.StdDev(replicates, nil), level, distuv.UnitNormal)
}

// Holm returns the adjusted p-values of m hypotheses tested together, in the order of p (Holm 1979). For the k-th
// smallest,
//
//	adjusted_(k) = max_{j <= k} min(1, (m - j + 1) p_(j)).
//
// If you reject where the adjusted value is at most alpha, the probability of any false rejection is at most alpha,
// however the tests depend on each other.
func Holm(p []float64) []float64 {
	adjusted, largest := make([]float64, len(p)), 0.0
	for k, e := range ascending(p) {
		largest = max(largest, min(1, float64(len(p)-k)*e.value))
		adjusted[e.index] = largest
	}
	return adjusted
}

// Spearman returns the rank correlation of x and y, in [-1, 1]: Pearson's correlation of their ranks, where equal
// values share the mean of their ranks (Spearman 1904; Kendall 1948 for ties). It is 1 if y increases with x. It is NaN
// if all values of one list are equal.
func Spearman(x, y []float64) float64 {
	return stat.Correlation(Midranks(x), Midranks(y), nil)
}

// Midranks returns the ranks of values, from 1, in their order; equal values share the mean of their ranks. If a value is
// NaN, all are. Spearman is Pearson's correlation of them, which is faster to compute for many permutations.
func Midranks(values []float64) []float64 {
	if floats.HasNaN(values) {
		return slices.Repeat([]float64{math.NaN()}, len(values))
	}
	ranks := make([]float64, len(values))
	order := ascending(values)
	for first := 0; first < len(order); {
		end := first
		for end < len(order) && order[end].value == order[first].value {
			end++
		}
		for _, e := range order[first:end] {
			ranks[e.index] = float64(first+1+end) / 2
		}
		first = end
	}
	return ranks
}

// Bootstrap returns the percentile interval of a number computed from test examples (Efron 1979). It evaluates f on
// resamples of the examples, drawn with replacement, and returns bounds that contain the middle fraction level of the
// values. The interval says how much the number would vary between test sets of this size; it does not contain the
// spread between training runs. The same seed gives the same interval.
//
// The examples may come from several test sets, with sizes[0] in the first, sizes[1] in the second and so on. Each set
// is resampled separately, so that the numbers of examples in and out of distribution, on which AUPRC depends, stay the
// same.
//
// counts[i] is how often example i is in the resample; f must not keep counts. Compute outside of f what does not
// depend on the resample: sort with NewRanks, judge with NewOutcomes. To compare two methods, return the difference of
// their numbers.
//
// The bounds have rank (1-level)/2 (replicates+1) from below and from above, with linear interpolation. With too few
// replicates for this rank they are the smallest and the largest value. 1000 replicates are usual for a level of 0.95.
func Bootstrap(sizes []int, replicates int, seed uint64, level float64, f func(counts []float64) float64) (low, high float64) {
	inUnit(level)
	values := make([]float64, replicates)
	for b, drawn := range Replicates(sizes, replicates, seed, func(counts []float64) []float64 { return []float64{f(counts)} }) {
		values[b] = drawn[0]
	}
	slices.Sort(values)
	if math.IsNaN(values[0]) { // NaN sorts first
		return math.NaN(), math.NaN()
	}
	low = ranked(values, (1-level)/2)
	slices.Reverse(values)
	return low, ranked(values, (1-level)/2)
}

// Replicates returns the values of f on bootstrap resamples, [replicates][numbers], which are those of Bootstrap for
// the same sizes and seed. f returns several numbers, always equally many, such as those of all methods to be compared.
func Replicates(sizes []int, replicates int, seed uint64, f func(counts []float64) []float64) [][]float64 {
	n := 0
	for _, size := range sizes {
		n += size
	}
	rng := rand.New(rand.NewPCG(seed, bootstrapStream))
	values, counts := make([][]float64, replicates), make([]float64, n)
	for b := range values {
		clear(counts)
		first := 0
		for _, size := range sizes {
			for range size {
				counts[first+rng.IntN(size)]++
			}
			first += size
		}
		values[b] = slices.Clone(f(counts)) // f may use its memory again
	}
	return values
}

// bootstrapStream keeps the draws apart from others made from the same seed.
const bootstrapStream = 0x626f6f74

// ranked is the value of rank p (n+1), counted from 1, interpolated between neighbours.
func ranked(values []float64, p float64) float64 {
	rank := p*float64(len(values)+1) - 1
	k := int(math.Floor(rank))
	switch {
	case k < 0:
		return values[0]
	case k >= len(values)-1:
		return values[len(values)-1]
	}
	share := rank - float64(k)
	return (1-share)*values[k] + share*values[k+1]
}

// MeanAt returns a function for Bootstrap that computes the mean of the values in a resample.
func MeanAt(values []float64) func(counts []float64) float64 {
	return func(counts []float64) float64 {
		total := floats.Dot(counts, values)
		if math.IsNaN(total) { // an infinite value that is not in the resample does not count
			total = 0
			for i, count := range counts {
				if count > 0 {
					total += count * values[i]
				}
			}
		}
		return total / floats.Sum(counts)
	}
}

// mostRanked is the most differences that SignedRank takes: beyond, its exact distribution takes long.
const mostRanked = 500

// SignedRank returns the two-sided p-value of Wilcoxon's signed-rank test (1945) that the differences are symmetric
// around 0. It uses the exact distribution of the sum of the ranks of |d_i| over the positive d_i. Equal |d_i| share
// their mean rank; differences of 0 are left out. If none is left, the result is 1. It panics if more than 500 are
// left.
func SignedRank(differences []float64) float64 {
	if floats.HasNaN(differences) {
		return math.NaN()
	}
	d := slices.DeleteFunc(slices.Clone(differences), func(v float64) bool { return v == 0 })
	switch {
	case len(d) == 0:
		return 1
	case len(d) > mostRanked:
		panic(fmt.Sprintf("metrics: %d differences, want at most %d", len(d), mostRanked))
	}
	sizes := make([]float64, len(d))
	for i, v := range d {
		sizes[i] = math.Abs(v)
	}
	ranks := Midranks(sizes)
	total, sum := len(d)*(len(d)+1), 0
	probability := make([]float64, total+1) // of each sum of ranks
	probability[0] = 1
	for i, v := range d {
		r := int(2 * ranks[i]) // ranks are halves at most
		if v > 0 {
			sum += r
		}
		for s := total; s >= 0; s-- {
			p := probability[s] / 2
			if s >= r {
				p += probability[s-r] / 2
			}
			probability[s] = p
		}
	}
	p := 0.0
	for _, v := range probability[:min(sum, total-sum)+1] {
		p += v
	}
	return min(1, 2*p)
}

// MedianInterval returns the median of independent values, and its percentile bootstrap interval at a level between 0
// and 1, from the given number of resamples drawn with replacement.
func MedianInterval(values []float64, level float64, replicates int, seed uint64) (median, low, high float64) {
	inUnit(level)
	if floats.HasNaN(values) {
		return math.NaN(), math.NaN(), math.NaN()
	}
	rng, drawn, medians := rand.New(rand.NewPCG(seed, 0)), make([]float64, len(values)), make([]float64, replicates)
	for r := range medians {
		for i := range drawn {
			drawn[i] = values[rng.IntN(len(values))]
		}
		medians[r] = medianOf(drawn)
	}
	slices.Sort(medians)
	tail := (1 - level) / 2
	return medianOf(slices.Clone(values)), stat.Quantile(tail, stat.Empirical, medians, nil), stat.Quantile(1-tail, stat.Empirical, medians, nil)
}

// medianOf sorts values and returns their median.
func medianOf(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return values[(n-1)/2]/2 + values[n/2]/2 // the sum may overflow
}
