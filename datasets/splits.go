package datasets

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mathext/prng"
)

// Split divides the rows of a data set, numbered from 0, into a training and a test part. Each row is in at most one
// part, once; splits by time may leave rows out. The order of rows is part of the split.
type Split struct {
	Train, Test []int
}

// Check returns an error unless the split is valid for n rows: at least 2 training rows and 1 test row, all from 0 to
// n-1 and different.
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

// Overlap returns the number of rows that are in both test parts, divided by the size of the smaller one: 0 to 1. Two
// splits with a large overlap are hardly two independent observations.
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

// HoldOut splits the training part at random: the fraction part of it, at least one row, becomes the test part, and the
// rest the training part. The rows of s.Test are left out. It panics if the fraction asks for more rows than there are.
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

// MeanError returns the root mean squared error on the test part if you predict the mean of the training targets, in
// the unit of the target.
func (r *Regression) MeanError(split Split) float64 {
	mean, squares := 0.0, 0.0
	for _, i := range split.Train {
		mean += r.Y[i] / float64(len(split.Train))
	}
	for _, i := range split.Test {
		squares += (r.Y[i] - mean) * (r.Y[i] - mean) / float64(len(split.Test))
	}
	return math.Sqrt(squares)
}

// GalSplits returns the splits published with Gal & Ghahramani, "Dropout as a Bayesian Approximation", ICML 2016: 20
// random 90/10 splits, 5 for protein. For year it returns the one official split, in which no artist is in both parts:
// the first 463715 rows train, the last 51630 test. An unknown name is an error.
//
// The published files have the permutations of NumPy's legacy generator with seed 1. GalSplits draws the same numbers
// in the same order; tests compare them with the SHA-256 of the published files.
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

// RandomSplits returns count random 90/10 splits of n rows. Split i depends only on n and i, and equals scikit-learn's
//
//	train_test_split(numpy.arange(n), test_size=0.1, random_state=i)
//
// in content and order: the first ceil(0.1 n) rows of NumPy's RandomState(i).permutation(n) are the test part, the
// others the training part. It panics if n < 2 or count < 0.
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

// GapSplits returns the D gap splits of a regression set (Foong, Li, Hernández-Lobato & Turner, "'In-Between'
// Uncertainty in Bayesian Neural Networks", 2019, arXiv:1906.11537). Split d orders the rows by input d, tests on the
// middle third, from place floor(n/3) to before floor(2n/3), and trains on the others. The splits are published and
// common, but some have no gap: for your own data use [HoleSplits].
//
// Rows with equal values of the input keep the order of the set; other sources order them differently. An input with
// few values may therefore have tested values in training too, as input 2 of boston (ZN): the gap is a block of rows.
// Inputs that depend on each other have nearly the same gap, such as the first two of energy. [Holes] measures which
// gaps are far from training rows.
//
// Both parts list rows in the order of the input. GapSplits panics if n < 3.
func GapSplits(r *Regression) []Split {
	if r.N < 3 {
		panic(fmt.Sprintf("datasets: GapSplits: %s has %d rows, want at least 3", r.Name, r.N))
	}
	splits := make([]Split, r.D)
	for d := range splits {
		order := ascending(r.N)
		slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(r.Row(a)[d], r.Row(b)[d]), a-b) })
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
