package datasets

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mathext/prng"
)

// Regression is a data set with one real-valued target. Values are raw
// (unstandardised), in the units of the source.
type Regression struct {
	// Name is the short name by which the set is asked for, such as "yacht".
	Name string
	// Features names the D columns of X; nil where the source gives no names.
	Features []string
	// X holds the inputs, shape [N, D], row-major: example i is X[i*D : (i+1)*D].
	X []float64
	// Y holds the targets, shape [N].
	Y []float64
	// N is the number of examples, D the number of features.
	N, D int
}

// Row returns the D features of example i as a view into X (not a copy). It
// panics if i is not in [0, N).
func (r *Regression) Row(i int) []float64 {
	return r.X[i*r.D : (i+1)*r.D : (i+1)*r.D]
}

// Take copies the examples with the given row numbers, in that order: x has
// shape [len(rows), D] row-major, y has shape [len(rows)]. It panics if a row
// number is not in [0, N).
func (r *Regression) Take(rows []int) (x, y []float64) {
	x = make([]float64, 0, len(rows)*r.D)
	y = make([]float64, 0, len(rows))
	for _, i := range rows {
		if i < 0 || i >= r.N {
			panic(fmt.Sprintf("datasets: row %d of set %q is outside [0, %d)", i, r.Name, r.N))
		}
		x = append(x, r.Row(i)...)
		y = append(y, r.Y[i])
	}
	return x, y
}

// Split divides the rows of a data set into a training and a test part. The
// numbers are 0-based rows; together they hold each row once. Their order is part
// of the split: it is that in which the source lists them.
type Split struct {
	Train, Test []int
}

// GalSplits returns the splits published with Gal & Ghahramani, "Dropout as a
// Bayesian Approximation", ICML 2016: 20 random 90/10 splits, 5 for protein. For
// the year set it returns the one official split: the first 463715 rows train,
// the last 51630 test, so that no artist is in both.
//
// The published index files are what NumPy's legacy generator gives when seeded
// with 1 and asked for one permutation per split. GalSplits draws them again,
// number for number in the same order; the tests hold it to the SHA-256 of the
// published files.
func GalSplits(name string) ([]Split, error) {
	set, err := lookup(name)
	if err != nil {
		return nil, err
	}
	if set.name == yearName {
		return []Split{yearSplit()}, nil
	}
	rng := legacyNumPy(1)
	splits := make([]Split, set.splits)
	for i := range splits {
		p := rng.perm(set.n)
		train := int(math.RoundToEven(float64(set.n) * 9 / 10))
		splits[i] = Split{Train: p[:train:train], Test: p[train:]}
	}
	return splits, nil
}

// RandomSplits returns count random 90/10 splits of n rows. Split i depends only
// on n and i, and equals scikit-learn's
//
//	train_test_split(numpy.arange(n), test_size=0.1, random_state=i)
//
// in content and order: of NumPy's RandomState(i).permutation(n), the first
// ceil(0.1 n) rows are the test part and the others the training part.
//
// RandomSplits panics if n < 2 (one of the parts would be empty) or count < 0.
func RandomSplits(n, count int) []Split {
	if n < 2 || count < 0 {
		panic(fmt.Sprintf("datasets: RandomSplits: n = %d must be at least 2 and count = %d not negative", n, count))
	}
	splits := make([]Split, count)
	for i := range splits {
		p := legacyNumPy(uint32(i)).perm(n)
		test := int(math.Ceil(0.1 * float64(n)))
		splits[i] = Split{Train: p[test:], Test: p[:test:test]}
	}
	return splits
}

// GapSplits returns one split for each of the D inputs of a regression set, to ask
// for uncertainty between training data (Foong, Li, Hernández-Lobato & Turner,
// "'In-Between' Uncertainty in Bayesian Neural Networks", 2019, arXiv:1906.11537):
// with the rows in the order of input d, split d tests on the middle third and
// trains on the outer two.
//
// The middle third are the places from floor(n/3) up to but not including
// floor(2n/3). Rows with equal values of the input are taken in the order of the
// set, so that a split depends on nothing but the data; where many rows share a
// value, as in inputs of few levels, rows with a value at the edge of the gap are
// on both sides of it. Both parts list rows in the order of the input. GapSplits
// panics if n < 3 (a part would be empty).
func GapSplits(r *Regression) []Split {
	if r.N < 3 {
		panic(fmt.Sprintf("datasets: GapSplits: %s has %d rows, want at least 3", r.Name, r.N))
	}
	splits := make([]Split, r.D)
	for d := range splits {
		order := ascending(r.N)
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.Row(a)[d], r.Row(b)[d]) })
		first, end := r.N/3, 2*r.N/3
		splits[d] = Split{Train: slices.Concat(order[:first], order[end:]), Test: order[first:end:end]}
	}
	return splits
}

// yearSplit is the split that the year set's donors prescribe.
func yearSplit() Split {
	rows := ascending(yearRows)
	return Split{Train: rows[:yearTrain:yearTrain], Test: rows[yearTrain:]}
}

// legacy is the part of NumPy's legacy generator (numpy.random.RandomState) that
// the splits were drawn with: the 32-bit Mersenne Twister of Matsumoto &
// Nishimura (ACM TOMACS 8(1), 1998), and permutations drawn from its words.
type legacy struct{ words *prng.MT19937 }

// legacyNumPy seeds the generator as numpy.random.RandomState(seed) does.
func legacyNumPy(seed uint32) legacy {
	words := prng.NewMT19937()
	words.Seed(uint64(seed))
	return legacy{words}
}

// upTo returns a uniform integer in [0, limit]: random words are cut down to the
// bits of limit, and drawn again until one fits. NumPy does the same, so the
// number of words consumed agrees too.
func (g legacy) upTo(limit uint32) uint32 {
	if limit == 0 {
		return 0
	}
	mask := uint32(1)<<bits.Len32(limit) - 1
	for {
		if v := g.words.Uint32() & mask; v <= limit {
			return v
		}
	}
}

// perm returns a random permutation of 0, ..., n-1, equal to
// numpy.random.RandomState.permutation(n).
func (g legacy) perm(n int) []int {
	p := ascending(n)
	for i := n - 1; i > 0; i-- {
		j := g.upTo(uint32(i))
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// Scaler standardises columns: z = (x - Mean) / Std, column by column.
type Scaler struct {
	// Mean and Std have one entry per column, in the units of the data.
	// Std is never zero.
	Mean, Std []float64
}

// FitScaler computes the mean and the population standard deviation (divided by
// the number of rows, not by that number less one) of each column of the
// row-major matrix x with d columns, over the given rows only. Passing the
// training rows keeps the test rows out of the scaling, as the protocol of
// Hernandez-Lobato & Adams (ICML 2015) asks.
//
// A column that is constant over these rows (naval has two) gets Std 1, so that
// it becomes zero rather than NaN. For a target vector pass d = 1.
//
// FitScaler panics if d < 1, len(x) is not a multiple of d, rows is empty, or a
// row number is out of range.
func FitScaler(x []float64, d int, rows []int) Scaler {
	if d < 1 || len(x)%d != 0 {
		panic(fmt.Sprintf("datasets: FitScaler: %d values do not form rows of %d columns", len(x), d))
	}
	if len(rows) == 0 {
		panic("datasets: FitScaler: no rows to fit on")
	}
	n := len(x) / d
	for _, i := range rows {
		if i < 0 || i >= n {
			panic(fmt.Sprintf("datasets: FitScaler: row %d is outside [0, %d)", i, n))
		}
	}
	s := Scaler{Mean: make([]float64, d), Std: make([]float64, d)}
	for j := range d {
		s.Mean[j], s.Std[j] = columnMoments(x, d, j, rows)
	}
	return s
}

// columnMoments returns mean and population standard deviation of column j.
func columnMoments(x []float64, d, j int, rows []int) (mean, std float64) {
	first := x[rows[0]*d+j]
	constant := true
	for _, i := range rows {
		v := x[i*d+j]
		mean += v
		constant = constant && v == first
	}
	// Rounding in the mean of a constant column can leave a tiny deviation in
	// place of zero (it does on naval); dividing by it would turn nothing into
	// something. So constancy is judged on the values.
	if constant {
		return first, 1
	}
	mean /= float64(len(rows))
	for _, i := range rows {
		dev := x[i*d+j] - mean
		std += dev * dev
	}
	std = math.Sqrt(std / float64(len(rows)))
	if std == 0 {
		return mean, 1
	}
	return mean, std
}

// Transform returns (x - Mean) / Std for a row-major matrix x with len(Mean)
// columns. x is not changed. It panics if len(x) is not a multiple of len(Mean).
func (s Scaler) Transform(x []float64) []float64 {
	return s.apply(x, func(v float64, j int) float64 { return (v - s.Mean[j]) / s.Std[j] })
}

// Inverse returns x * Std + Mean, undoing Transform up to rounding. x is not
// changed. It panics if len(x) is not a multiple of len(Mean).
func (s Scaler) Inverse(x []float64) []float64 {
	return s.apply(x, func(v float64, j int) float64 { return v*s.Std[j] + s.Mean[j] })
}

func (s Scaler) apply(x []float64, f func(v float64, j int) float64) []float64 {
	d := len(s.Mean)
	if d == 0 || len(x)%d != 0 {
		panic(fmt.Sprintf("datasets: Scaler: %d values do not form rows of %d columns", len(x), d))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = f(v, i%d)
	}
	return out
}
