package datasets

import (
	"fmt"
	"math"
	"slices"
)

// Regression is a data set with one real-valued target. Values are not standardised: they are in the units of the
// source.
type Regression struct {
	// Name is the short name of the set, such as "yacht".
	Name string
	// Features are the names of the D columns of X; nil if the source has none.
	Features []string
	// Columns, if not nil, are the columns of the table from which the D inputs were made. X is then NaN where a number
	// is missing and may be.
	Columns Columns
	// X holds the inputs, shape [N, D], row-major: example i is X[i*D : (i+1)*D].
	X []float64
	// Y holds the targets, shape [N].
	Y []float64
	// N is the number of examples, D the number of features.
	N, D int
}

// Check returns an error if N, D, Columns and the lengths of X, Y and Features do not match or are 0, if two Features
// have one name, if a value is NaN or infinite (except NaN for an input that may be missing), or if all targets are
// equal up to rounding.
func (r *Regression) Check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("datasets: set %q: "+format, append([]any{r.Name}, args...)...)
	}
	switch {
	case r.N < 1 || r.D < 1:
		return fail("N is %d and D is %d; both must be at least 1", r.N, r.D)
	case len(r.X) != r.N*r.D || len(r.Y) != r.N:
		return fail("X has %d and Y %d values; %d examples of %d features have %d and %d", len(r.X), len(r.Y), r.N, r.D, r.N*r.D, r.N)
	case r.Features != nil && len(r.Features) != r.D:
		return fail("%d names of %d features", len(r.Features), r.D)
	}
	names := slices.Sorted(slices.Values(r.Features))
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return fail("two features are called %q; give each a name of its own", names[i])
		}
	}
	var mayMiss []bool
	for _, c := range r.Columns {
		mayMiss = append(mayMiss, make([]bool, c.width())...)
		mayMiss[len(mayMiss)-c.width()] = c.MayMiss
	}
	if r.Columns != nil && len(mayMiss) != r.D {
		return fail("the Columns are %d inputs, and D is %d", len(mayMiss), r.D)
	}
	for i, v := range r.X {
		if notFinite(v) && !(math.IsNaN(v) && r.Columns != nil && mayMiss[i%r.D]) {
			return fail("example %d, feature %d is %v; every value must be finite", i/r.D, i%r.D, v)
		}
	}
	for i, v := range r.Y {
		if notFinite(v) {
			return fail("the target of example %d is %v; every value must be finite", i, v)
		}
	}
	if r.N > 1 && rounding(slices.Min(r.Y), slices.Max(r.Y)) {
		return fail("the target is %v in all %d examples, but for rounding, and there is nothing to learn; is another column the target?", r.Y[0], r.N)
	}
	return nil
}

// Row returns the D features of example i as a view into X. It panics if i is out of range.
func (r *Regression) Row(i int) []float64 {
	return r.X[i*r.D : (i+1)*r.D : (i+1)*r.D]
}

// Take returns copies of the examples with the given row numbers, in that order: x is [len(rows), D] row-major, y is
// [len(rows)]. It panics if a row is out of range.
func (r *Regression) Take(rows []int) (x, y []float64) {
	x = make([]float64, 0, len(rows)*r.D)
	y = make([]float64, 0, len(rows))
	for _, i := range rows {
		x = append(x, r.Row(i)...)
		y = append(y, r.Y[i])
	}
	return x, y
}

// Scaler standardises columns: z = (x - Mean) / Std, column by column.
type Scaler struct {
	// Mean and Std have one entry per column, in the units of the data.
	// Std is never zero.
	Mean, Std []float64
}

// FitScaler returns the mean and the population standard deviation (divided by the number of rows) of each column of
// the row-major matrix x with d columns, over the given rows only. Pass the training rows, so that test rows do not
// enter the scaling, as the protocol of Hernandez-Lobato & Adams (ICML 2015) asks. For a vector of targets pass d = 1.
//
// A column that is constant over these rows (naval has two) gets Std 1, so that it becomes 0 and not NaN. NaN is a
// missing value, as in scikit-learn's StandardScaler: it does not count, and stays NaN. The mean of a column without
// values is NaN.
//
// FitScaler panics if d < 1, len(x) is not a multiple of d, rows is empty, a row is out of range, or a column has
// values that are infinite, or so large or so close to each other that the squares of their deviations overflow or
// underflow.
func FitScaler(x []float64, d int, rows []int) Scaler {
	if len(x)%d != 0 {
		panic(fmt.Sprintf("datasets: FitScaler: %d values do not form rows of %d columns", len(x), d))
	}
	if len(rows) == 0 {
		panic("datasets: FitScaler: no rows to fit on")
	}
	s := Scaler{Mean: make([]float64, d), Std: make([]float64, d)}
	for j := range d {
		values := make([]float64, 0, len(rows))
		for _, i := range rows {
			if v := x[i*d+j]; !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		if s.Mean[j], s.Std[j] = moments(values); notFinite(s.Std[j]) {
			panic(fmt.Sprintf("datasets: FitScaler: column %d has mean %g and standard deviation %g: it has values from %g to %g; leave such rows out, or use another unit", j, s.Mean[j], s.Std[j], slices.Min(values), slices.Max(values)))
		}
	}
	return s
}

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// moments returns mean and population standard deviation. Values that are all equal, or differ by rounding alone, have the
// deviation 1. A deviation whose square underflows is NaN.
func moments(values []float64) (mean, std float64) {
	if len(values) == 0 {
		return math.NaN(), 1
	}
	first, least, most := values[0], slices.Min(values), slices.Max(values)
	// Rounding in the mean of a constant column can leave a tiny deviation in
	// place of zero (it does on naval); dividing by it would turn nothing into
	// something. So constancy is judged on the values.
	if rounding(least, most) && (least == most || least != math.Trunc(least)) { // whole numbers are exact
		return first, 1
	}
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	if most-least < largeOffset*max(math.Abs(least), math.Abs(most)) { // the sum has lost digits of the differences
		mean = 0
		for _, v := range values {
			mean += (v - first) / float64(len(values))
		}
		mean += first
	}
	largest := 0.0
	for _, v := range values {
		dev := v - mean
		std += dev * dev
		largest = max(largest, math.Abs(dev))
	}
	std = math.Sqrt(std / float64(len(values)))
	if largest < tiny {
		return mean, math.NaN()
	}
	return mean, std
}

// rounding says whether values from least to most differ by no more than two units in the last place: so do results of one
// computation in another order, or of a conversion.
func rounding(least, most float64) bool {
	return !math.IsInf(most-least, 1) && most-least <= 0x1p-51*max(math.Abs(least), math.Abs(most))
}

// largeOffset is the part of the largest value below which a column's range is small.
const largeOffset = 1e-6

// tiny is a deviation whose square loses digits by underflow.
const tiny = 1e-145

// Transform returns (x - Mean) / Std for a row-major matrix x with len(Mean) columns, as a new slice. It panics if
// len(x) is not a multiple of len(Mean).
func (s Scaler) Transform(x []float64) []float64 {
	return s.apply(x, func(v float64, j int) float64 { return (v - s.Mean[j]) / s.Std[j] })
}

// Inverse returns x * Std + Mean, which undoes Transform up to rounding, as a new slice. It panics if len(x) is not a
// multiple of len(Mean).
func (s Scaler) Inverse(x []float64) []float64 {
	return s.apply(x, func(v float64, j int) float64 { return v*s.Std[j] + s.Mean[j] })
}

func (s Scaler) apply(x []float64, f func(v float64, j int) float64) []float64 {
	d := len(s.Mean)
	if len(x)%d != 0 {
		panic(fmt.Sprintf("datasets: Scaler: %d values do not form rows of %d columns", len(x), d))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = f(v, i%d)
	}
	return out
}
