package datasets

import (
	"fmt"
	"math"

	"densityuncertainty/datasets/internal/mt19937"
)

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
	rng := mt19937.New(1)
	splits := make([]Split, set.splits)
	for i := range splits {
		p := rng.Perm(set.n)
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
		p := mt19937.New(uint32(i)).Perm(n)
		test := int(math.Ceil(0.1 * float64(n)))
		splits[i] = Split{Train: p[test:], Test: p[:test:test]}
	}
	return splits
}

// yearSplit is the split that the year set's donors prescribe.
func yearSplit() Split {
	rows := make([]int, yearRows)
	for i := range rows {
		rows[i] = i
	}
	return Split{Train: rows[:yearTrain:yearTrain], Test: rows[yearTrain:]}
}
