package datasets

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mathext/prng"
)

// Split divides the rows of a data set into a training and a test part. The
// numbers are 0-based rows, each in one of the parts, once, or in neither, as splits by time need. Their order is part
// of the split: it is that in which the source lists them.
type Split struct {
	Train, Test []int
}

// Check says what is wrong with a split of n rows, if anything is.
func (s Split) Check(n int) error {
	if len(s.Train) < 2 || len(s.Test) == 0 {
		return fmt.Errorf("has %d rows to train on and %d to test; at least 2 and 1 are needed", len(s.Train), len(s.Test))
	}
	used := make([]bool, n)
	for _, row := range slices.Concat(s.Train, s.Test) {
		if row < 0 || row >= n || used[row] {
			return fmt.Errorf("has the row %d, which must be from 0 to %d and in one part, once", row, n-1)
		}
		used[row] = true
	}
	return nil
}

// Overlap is the share, from 0 to 1, of the smaller of two test parts that is in both. Splits that share most of their test rows are
// hardly two observations.
func (s Split) Overlap(other Split) float64 {
	tested, both := map[int]bool{}, 0
	for _, row := range s.Test {
		tested[row] = true
	}
	for _, row := range other.Test {
		if tested[row] {
			both++
		}
	}
	return float64(both) / float64(min(len(s.Test), len(other.Test)))
}

// HoldOut splits the training part again: a part of it, from 0 to 1 and drawn at random with a seed, becomes
// the test part. The test part of the split is left out.
func (s Split) HoldOut(part float64, seed uint64) Split {
	n := len(s.Train)
	kept, held := HoldOut(n, max(1, int(math.Round(part*float64(n)))), seed)
	rows := func(places []int) []int {
		numbers := make([]int, len(places))
		for i, place := range places {
			numbers[i] = s.Train[place]
		}
		slices.Sort(numbers)
		return numbers
	}
	return Split{Train: rows(kept), Test: rows(held)}
}

// MeanError is the root mean squared error on the test part of a split of predicting the mean of the training targets.
func (r *Regression) MeanError(split Split) float64 {
	_, train := r.Take(split.Train)
	_, test := r.Take(split.Test)
	mean, squares := 0.0, 0.0
	for _, y := range train {
		mean += y / float64(len(train))
	}
	for _, y := range test {
		squares += (y - mean) * (y - mean) / float64(len(test))
	}
	return math.Sqrt(squares)
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
	if n < 2 {
		panic(fmt.Sprintf("datasets: RandomSplits: n = %d must be at least 2", n))
	}
	splits := make([]Split, count)
	for i := range splits {
		p := legacyNumPy(uint32(i)).perm(n)
		test := int(math.Ceil(0.1 * float64(n)))
		splits[i] = Split{Train: p[test:], Test: p[:test:test]}
	}
	return splits
}

// GapSplits returns one split for each of the D inputs of a regression set (Foong,
// Li, Hernández-Lobato & Turner, "'In-Between' Uncertainty in Bayesian Neural
// Networks", 2019, arXiv:1906.11537): with the rows in the order of input d, split d
// tests on the middle third and trains on the outer two. They are published and
// common, but not always gaps: for data of your own take [HoleSplits].
//
// The middle third are the places from floor(n/3) up to but not including
// floor(2n/3). Rows with equal values of the input are taken in the order of the
// set. So an input of few levels makes a gap in the file and not in the input: in
// input 2 of boston (ZN) all tested values are in training too, and the gap is a
// block of rows. Other sources break ties otherwise. Inputs that depend on each
// other make nearly the same gap, such as the first two of energy. [Holes] measures
// which gaps are far from training rows.
//
// Both parts list rows in the order of the input. GapSplits panics if n < 3 (a part
// would be empty).
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

// ascending returns 0, ..., n-1.
func ascending(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}
