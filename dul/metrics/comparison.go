package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Difference is what n paired measurements say about the mean difference of two methods.
type Difference struct {
	Mean      float64 // of the differences a_i - b_i
	Low, High float64 // the interval for the mean, at the level that was asked for
	P         float64 // two-sided p-value of a mean of 0
}

// difference is a mean with its standard error, where mean/se has the distribution z. Numbers that overflow are an error.
func difference(mean, se, level float64, z interface {
	Quantile(p float64) float64
	Survival(x float64) float64
}) (Difference, error) {
	if !(level > 0 && level < 1) {
		return Difference{}, fmt.Errorf("metrics: the level is %v, want one in (0, 1): %w", level, ErrValue)
	}
	reach := z.Quantile((1+level)/2) * se
	d := Difference{Mean: mean, Low: mean - reach, High: mean + reach}
	switch {
	case se > 0:
		d.P = 2 * z.Survival(math.Abs(mean)/se)
	case mean == 0:
		d.P = 1
	}
	if err := checkFinite("mean, low, high or p-value of the difference", []float64{d.Mean, d.Low, d.High, d.P}); err != nil {
		return Difference{}, err
	}
	return d, nil
}

// PairedDifference compares two methods measured on the same n >= 2 splits of one data set into training
// and test examples. Splits share examples, so that the differences d_i = a_i - b_i are correlated and the
// usual t interval is too narrow; with the correction of Nadeau and Bengio (2003, section 3) the interval is
//
//	mean(d) +- t_{n-1}((1+level)/2) s sqrt(1/n + testTrain),   s^2 = 1/(n-1) sum_i (d_i - mean(d))^2,
//
// where testTrain is the number of test examples over that of training examples of a split (1/9 for ten
// percent test examples). 0 is the usual interval, for measurements that are independent, such as seeds. P is
// that of t = mean(d) / (s sqrt(1/n + testTrain)) with n-1 degrees of freedom; it is 0, or without any
// difference 1, where all d_i are equal. level is in (0, 1).
func PairedDifference(a, b []float64, testTrain, level float64) (Difference, error) {
	if err := checkSome("a", a); err != nil {
		return Difference{}, err
	}
	if err := checkSome("b", b); err != nil {
		return Difference{}, err
	}
	if err := checkLength("b", len(b), "a", len(a)); err != nil {
		return Difference{}, err
	}
	switch {
	case len(a) < 2:
		return Difference{}, fmt.Errorf("metrics: a paired difference of %d pair, want at least 2: %w", len(a), ErrEmpty)
	case !(testTrain >= 0) || math.IsInf(testTrain, 1):
		return Difference{}, fmt.Errorf("metrics: the ratio of test to training examples is %v, want at least 0: %w", testTrain, ErrValue)
	}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = a[i] - b[i]
	}
	mean, s := stat.MeanStdDev(differences, nil)
	n := float64(len(a))
	return difference(mean, s*math.Sqrt(1/n+testTrain), level, distuv.StudentsT{Sigma: 1, Nu: n - 1})
}

// BootstrapDifference is the difference of a number between two methods, with what bootstrap replicates of it, at
// least two (see Replicates), say about other test examples: with se their standard deviation the interval is
//
//	value +- z((1+level)/2) se,
//
// and P that of value/se, both by the normal distribution, which holds for many examples. It is centred at the value,
// since numbers such as the calibration error are larger on resamples than on the examples. Without any spread P is 0,
// or without a difference 1. level is in (0, 1).
func BootstrapDifference(value float64, replicates []float64, level float64) (Difference, error) {
	if err := checkSome("replicates", replicates); err != nil {
		return Difference{}, err
	}
	if err := checkFinite("value", []float64{value}); err != nil {
		return Difference{}, err
	}
	if len(replicates) < 2 {
		return Difference{}, fmt.Errorf("metrics: a difference of %d replicate, want at least 2: %w", len(replicates), ErrEmpty)
	}
	return difference(value, stat.StdDev(replicates, nil), level, distuv.UnitNormal)
}

// Holm adjusts the p-values of m hypotheses that are tested together (Holm 1979): in ascending order
//
//	adjusted_(k) = max_{j <= k} min(1, (m - j + 1) p_(j)),
//
// returned in the order of p. To reject where the adjusted value is at most alpha makes any false
// rejection as rare as alpha, however the tests depend on each other.
func Holm(p []float64) ([]float64, error) {
	if err := checkSome("p", p); err != nil {
		return nil, err
	}
	for i, v := range p {
		if v < 0 || v > 1 {
			return nil, fmt.Errorf("metrics: p[%d] is %v, want a probability: %w", i, v, ErrValue)
		}
	}
	adjusted, largest := make([]float64, len(p)), 0.0
	for k, e := range ascending(p) {
		largest = max(largest, min(1, float64(len(p)-k)*e.value))
		adjusted[e.index] = largest
	}
	return adjusted, nil
}

// Spearman is the rank correlation of x and y, in [-1, 1]: Pearson's correlation of their ranks, where equal
// values share the mean of their ranks (Spearman 1904; Kendall 1948 for ties). It is 1 where y grows with x,
// however it grows. There is an error where all values of one are equal, as then it is not defined.
func Spearman(x, y []float64) (float64, error) {
	if err := checkSome("x", x); err != nil {
		return 0, err
	}
	if err := checkSome("y", y); err != nil {
		return 0, err
	}
	if err := checkLength("y", len(y), "x", len(x)); err != nil {
		return 0, err
	}
	of, with := midranks(x), midranks(y)
	if slices.Min(of) == slices.Max(of) || slices.Min(with) == slices.Max(with) {
		return 0, fmt.Errorf("metrics: the rank correlation of a constant is not defined: %w", ErrValue)
	}
	return stat.Correlation(of, with, nil), nil
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
func Mean(values []float64) (float64, error) {
	if err := checkSome("values", values); err != nil {
		return 0, err
	}
	return finite("mean", stat.Mean(values, nil))
}

// MeanStd is the arithmetic mean and the sample standard deviation, with n-1 in the denominator: the
// spread of the values, not the standard error of their mean (which is smaller by sqrt n). The standard
// deviation of a single value is NaN.
func MeanStd(values []float64) (mean, std float64, err error) {
	if err := checkSome("values", values); err != nil {
		return 0, 0, err
	}
	if len(values) == 1 {
		return values[0], math.NaN(), nil
	}
	mean, std = stat.MeanStdDev(values, nil)
	if _, err := finite("mean or standard deviation", mean+std); err != nil {
		return 0, 0, err
	}
	return mean, std, nil
}

// Bootstrap is the percentile interval of a number computed from n examples (Efron 1979): f is evaluated
// on replicates resamples of n of the indices 0 to n-1, drawn with replacement, and the interval holds the
// middle fraction level of its values. It says how much the number would change with another test set of
// the same size; it does not hold the spread over training runs. The same seed gives the same interval.
//
// The examples come from one or several test sets, sizes[0] of the first, sizes[1] of the second and so on: each set is
// resampled by itself, so that the numbers of examples in and out of distribution, on which AUPRC depends, stay what
// they are.
//
// f may keep nothing of indices, which are overwritten by the next resample, and its error ends the
// bootstrap. What does not depend on the resample belongs outside of f: sort with NewRanks, judge with
// NewOutcomes. To compare two methods let f be the difference of their numbers on the same indices.
//
// The bounds are the values of rank (1-level)/2 (replicates+1) from below and from above, interpolated
// linearly; with too few replicates for such a rank they are the smallest and the largest. 1000
// replicates are usual for a level of 0.95.
func Bootstrap(sizes []int, replicates int, seed uint64, level float64, f func(indices []int) (float64, error)) (low, high float64, err error) {
	switch {
	case !(level > 0 && level < 1):
		return 0, 0, fmt.Errorf("metrics: the level is %v, want one in (0, 1): %w", level, ErrValue)
	case f == nil:
		return 0, 0, errNoFunction
	}
	drawn, err := Replicates(sizes, replicates, seed, func(indices []int) ([]float64, error) {
		value, err := f(indices)
		return []float64{value}, err
	})
	if err != nil {
		return 0, 0, err
	}
	values := make([]float64, replicates)
	for b := range values {
		values[b] = drawn[b][0]
	}
	slices.Sort(values)
	low = ranked(values, (1-level)/2)
	slices.Reverse(values)
	return low, ranked(values, (1-level)/2), nil
}

// Replicates are the values of several numbers on the same resamples, [replicates][numbers]: what Bootstrap makes its
// interval of. f returns as many numbers each time, which must be finite.
func Replicates(sizes []int, replicates int, seed uint64, f func(indices []int) ([]float64, error)) ([][]float64, error) {
	if f == nil {
		return nil, errNoFunction
	}
	n := 0
	for _, size := range sizes {
		if size < 1 {
			return nil, fmt.Errorf("metrics: bootstrap of %d examples: %w", size, ErrEmpty)
		}
		n += size
	}
	switch {
	case n == 0:
		return nil, fmt.Errorf("metrics: bootstrap of no examples: %w", ErrEmpty)
	case replicates < 1:
		return nil, fmt.Errorf("metrics: %d bootstrap replicates, want at least 1: %w", replicates, ErrValue)
	}
	rng := rand.New(rand.NewPCG(seed, bootstrapStream))
	values, indices := make([][]float64, replicates), make([]int, n)
	for b := range values {
		first, k := 0, 0
		for _, size := range sizes {
			for range size {
				indices[k] = first + rng.IntN(size)
				k++
			}
			first += size
		}
		found, err := f(indices)
		if err != nil {
			return nil, fmt.Errorf("metrics: bootstrap replicate %d: %w", b, err)
		}
		values[b] = slices.Clone(found) // f may use its memory again
		if len(values[b]) != len(values[0]) {
			return nil, fmt.Errorf("metrics: bootstrap replicate %d has %d numbers, the first has %d: %w", b, len(values[b]), len(values[0]), ErrLength)
		}
		for _, v := range values[b] {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("metrics: bootstrap replicate %d is %v: %w", b, v, ErrValue)
			}
		}
	}
	return values, nil
}

var errNoFunction = fmt.Errorf("metrics: bootstrap of no function of the indices, such as MeanAt(values): %w", ErrValue)

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

// MeanAt returns the function of indices that is the mean of the values there, for Bootstrap.
func MeanAt(values []float64) func(indices []int) (float64, error) {
	return func(indices []int) (float64, error) {
		if len(indices) == 0 {
			return 0, fmt.Errorf("metrics: the mean at no indices: %w", ErrEmpty)
		}
		total := 0.0
		for _, i := range indices {
			if i < 0 || i >= len(values) {
				return 0, fmt.Errorf("metrics: index %d of %d values: %w", i, len(values), ErrValue)
			}
			total += values[i]
		}
		return finite("mean", total/float64(len(indices)))
	}
}
