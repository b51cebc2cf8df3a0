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

// Difference is what n paired measurements say about the mean difference of two methods.
type Difference struct {
	Mean      float64 // of the differences a_i - b_i
	Low, High float64 // the interval for the mean, at the level that was asked for
	P         float64 // two-sided p-value of a mean of 0
}

// NewDifference is a mean difference with its standard error, where mean/se has the distribution z.
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

// PairedDifference compares two methods measured on the same n >= 2 splits of one data set into training
// and test examples. Splits share examples, so that the differences d_i = a_i - b_i are correlated and the
// usual t interval is too narrow; with the correction of Nadeau and Bengio (2003, section 3) the interval is
//
//	mean(d) +- t_{n-1}((1+level)/2) s sqrt(1/n + testTrain),   s^2 = 1/(n-1) sum_i (d_i - mean(d))^2,
//
// where testTrain is the number of test examples over that of training examples of a split (1/9 for ten
// percent test examples). 0 is the usual interval, for measurements that are independent, such as seeds. P is
// that of t = mean(d) / (s sqrt(1/n + testTrain)) with n-1 degrees of freedom. Where all d_i are equal but for rounding
// (within 1e-12 of the largest value), nothing says how much they vary: P and the interval are NaN, or if the d_i are 0,
// P is 1 and the interval their mean. level is in (0, 1).
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

// BootstrapDifference is the difference of a number between two methods, with what bootstrap replicates of it, at
// least two (see Replicates), say about other test examples: with se their standard deviation the interval is
//
//	value +- z((1+level)/2) se,
//
// and P that of value/se, both by the normal distribution, which holds for many examples. It is centred at the value,
// since numbers such as the calibration error are larger on resamples than on the examples. Without any spread P is 0,
// or without a difference 1. level is in (0, 1).
func BootstrapDifference(value float64, replicates []float64, level float64) Difference {
	return NewDifference(value, stat.StdDev(replicates, nil), level, distuv.UnitNormal)
}

// Holm adjusts the p-values of m hypotheses that are tested together (Holm 1979): in ascending order
//
//	adjusted_(k) = max_{j <= k} min(1, (m - j + 1) p_(j)),
//
// returned in the order of p. To reject where the adjusted value is at most alpha makes any false
// rejection as rare as alpha, however the tests depend on each other.
func Holm(p []float64) []float64 {
	adjusted, largest := make([]float64, len(p)), 0.0
	for k, e := range ascending(p) {
		largest = max(largest, min(1, float64(len(p)-k)*e.value))
		adjusted[e.index] = largest
	}
	return adjusted
}

// Spearman is the rank correlation of x and y, in [-1, 1]: Pearson's correlation of their ranks, where equal
// values share the mean of their ranks (Spearman 1904; Kendall 1948 for ties). It is 1 where y grows with x,
// however it grows. If all values of one are equal, it is NaN.
func Spearman(x, y []float64) float64 {
	if floats.HasNaN(x) || floats.HasNaN(y) {
		return math.NaN()
	}
	return stat.Correlation(midranks(x), midranks(y), nil)
}

// midranks are the ranks of values, from 1; equal values share the mean of their ranks.
func midranks(values []float64) []float64 {
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

// Mean is the arithmetic mean.
func Mean(values []float64) float64 { return stat.Mean(values, nil) }

// MeanStd is the arithmetic mean and the sample standard deviation, with n-1 in the denominator: the
// spread of the values, not the standard error of their mean (which is smaller by sqrt n). The standard
// deviation of a single value is NaN.
func MeanStd(values []float64) (mean, std float64) { return stat.MeanStdDev(values, nil) }

// Bootstrap is the percentile interval of a number computed from n examples (Efron 1979): f is evaluated
// on replicates resamples of n examples, drawn with replacement, and the interval holds the
// middle fraction level of its values. It says how much the number would change with another test set of
// the same size; it does not hold the spread over training runs. The same seed gives the same interval.
//
// The examples come from one or several test sets, sizes[0] of the first, sizes[1] of the second and so on: each set is
// resampled by itself, so that the numbers of examples in and out of distribution, on which AUPRC depends, stay what
// they are.
//
// f is given how often each example is in the resample, and may keep nothing of it, as the next resample overwrites it.
// What does not depend on the resample belongs outside of f: sort with NewRanks, judge with NewOutcomes. To compare two
// methods let f be the difference of their numbers on the same resample.
//
// The bounds are the values of rank (1-level)/2 (replicates+1) from below and from above, interpolated
// linearly; with too few replicates for such a rank they are the smallest and the largest. 1000
// replicates are usual for a level of 0.95.
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

// Replicates are the values of several numbers on the same resamples, [replicates][numbers]: what Bootstrap makes its
// interval of. f returns as many numbers each time. Drawing the resamples takes time, so let f compute the numbers of all
// methods that are compared.
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

// MeanAt returns the function of a resample that is the mean of the values in it, for Bootstrap.
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
