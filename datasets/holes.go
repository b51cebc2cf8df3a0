package datasets

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/spatial/kdtree"
	"gonum.org/v1/gonum/stat"
)

// A Hole says how far the test rows of a split are from its training rows. The distance d of a test row is the
// Euclidean distance to the nearest training row, for inputs that are standardised by the whole set; missing numbers
// are means. For comparison, ordinary distances are those of ten random splits with as many test rows.
type Hole struct {
	// Distance is the mean of d divided by the mean ordinary distance, about 1 for a random split.
	Distance float64
	// Beyond is the fraction of test rows whose d is above the upper quartile of ordinary distances, about 0.25 for a
	// random split.
	Beyond float64
	// Energy is the mean of (x-m)' S⁻¹ (x-m) over the test rows, divided by its mean over the training rows, where m
	// and S are the mean and the covariance of the training rows (with 1e-6 added to the variances). Below 1, the
	// energy of one fitted Gaussian is lower at the test rows than at the training rows, although they are in the gap.
	Energy float64
	// Outside is the fraction of test rows in which some input is outside the range of the training rows: there a
	// network extrapolates.
	Outside float64
}

// IsHole reports whether the split has a hole: at least half of its test rows have a d above the upper quartile of ordinary
// distances.
func (h Hole) IsHole() bool { return h.Beyond >= 0.5 }

// ordinarySplits are drawn for ordinary distances.
const ordinarySplits = 10

// Holes returns one Hole for each split of a regression set. It is an error if the set or a split is invalid, or if
// every ordinary distance is 0 because all rows have copies.
func Holes(r *Regression, splits ...Split) ([]Hole, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	x := r.standardised()
	ordinary := map[int][]float64{} // ascending, by the number of test rows
	holes := make([]Hole, len(splits))
	for i, s := range splits {
		if err := s.Check(r.N); err != nil {
			return nil, fmt.Errorf("datasets: Holes: split %d of set %q %w", i, r.Name, err)
		}
		n := len(s.Test)
		if ordinary[n] == nil {
			for seed := range uint64(ordinarySplits) {
				train, test := HoldOut(r.N, n, seed)
				ordinary[n] = append(ordinary[n], nearest(x, Split{Train: train, Test: test})...)
			}
			slices.Sort(ordinary[n])
		}
		mean := stat.Mean(ordinary[n], nil)
		if mean == 0 {
			return nil, fmt.Errorf("datasets: Holes: set %q has each row so often that test rows of random splits are training rows, too, and no distance can be compared; leave copies out", r.Name)
		}
		d, quartile := nearest(x, s), stat.Quantile(0.75, stat.LinInterp, ordinary[n], nil)
		holes[i] = Hole{
			Distance: stat.Mean(d, nil) / mean,
			Beyond:   float64(floats.Count(func(v float64) bool { return v > quartile }, d)) / float64(n),
		}
		holes[i].Energy, holes[i].Outside = likelihoods(x, s)
	}
	return holes, nil
}

// standardised are the inputs of each row, standardised by the whole set. Missing numbers are means.
func (r *Regression) standardised() [][]float64 {
	values := FitScaler(r.X, r.D, ascending(r.N)).Transform(r.X)
	x := make([][]float64, r.N)
	for i := range x {
		x[i] = values[i*r.D : (i+1)*r.D]
		for j, v := range x[i] {
			if math.IsNaN(v) {
				x[i][j] = 0
			}
		}
	}
	return x
}

// nearest is the distance of each test row from the nearest training row.
func nearest(x [][]float64, s Split) []float64 {
	var rows [][]float64
	for _, row := range s.Train {
		rows = append(rows, x[row])
	}
	slices.SortFunc(rows, slices.Compare)
	var points kdtree.Points
	for _, row := range slices.CompactFunc(rows, slices.Equal) { // copies of a row would make a tree of one branch
		points = append(points, row)
	}
	tree, d := kdtree.New(points, false), make([]float64, len(s.Test))
	for i, row := range s.Test {
		_, squared := tree.Nearest(kdtree.Point(x[row]))
		d[i] = math.Sqrt(squared)
	}
	return d
}

// ridge is added to the variances of standardised training rows, so that an input that is constant there has one.
const ridge = 1e-6

// likelihoods are Hole.Energy and Hole.Outside.
func likelihoods(x [][]float64, s Split) (energy, outside float64) {
	dims := len(x[0])
	train := mat.NewDense(len(s.Train), dims, nil)
	for i, row := range s.Train {
		train.SetRow(i, x[row])
	}
	mean, low, high := make([]float64, dims), make([]float64, dims), make([]float64, dims)
	for j := range dims {
		column := mat.Col(nil, j, train)
		mean[j], low[j], high[j] = stat.Mean(column, nil), slices.Min(column), slices.Max(column)
	}
	var covariance mat.SymDense
	stat.CovarianceMatrix(&covariance, train, nil)
	for j := range dims {
		covariance.SetSym(j, j, covariance.At(j, j)+ridge)
	}
	var factor mat.Cholesky
	if !factor.Factorize(&covariance) {
		panic("datasets: Holes: a covariance with a ridge is positive definite")
	}
	of := func(rows []int) (sum float64) {
		for _, row := range rows {
			d := stat.Mahalanobis(mat.NewVecDense(dims, x[row]), mat.NewVecDense(dims, mean), &factor)
			sum += d * d / float64(len(rows))
		}
		return sum
	}
	for _, row := range s.Test {
		for j, v := range x[row] {
			if v < low[j] || v > high[j] {
				outside += 1 / float64(len(s.Test))
				break
			}
		}
	}
	return of(s.Test) / of(s.Train), outside
}

// Between returns a split by values, one for each row: its test part are the rows at places first to before end in
// ascending order. Rows with equal values stay in one part: each bound moves to the nearest place where the value
// changes (the lower of two), except at 0 and len(values). The test part is empty if no value changes between the
// bounds. Both parts list rows in ascending order of their numbers.
func Between(values []float64, first, end int) (s Split) {
	order := ascending(len(values))
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(values[a], values[b]), a-b) })
	cut := func(at int) (place int) {
		if at == 0 || at == len(order) {
			return at
		}
		for i := 1; i < len(order); i++ {
			if values[order[i]] != values[order[i-1]] && (place == 0 || max(i-at, at-i) < max(place-at, at-place)) {
				place = i
			}
		}
		return place
	}
	from, to := cut(first), max(cut(first), cut(end))
	s = Split{Train: slices.Concat(order[:from], order[to:]), Test: slices.Clone(order[from:to])}
	slices.Sort(s.Train)
	slices.Sort(s.Test)
	return s
}

// HoleSplits returns splits with a gap for your own data, and the names of their inputs. Each tests on the middle third
// of an input's values, cut between different values (see [Between]). An input has no split if its test part would have
// less than a sixth or more than half of the rows, if it comes from a column of words (see [Column]), or if numbers are
// missing. A gap in one input need not be a hole in all inputs together: check with [Holes]. It is an error if no input
// has a split.
func HoleSplits(r *Regression) (splits []Split, inputs []string, err error) {
	if err := r.Check(); err != nil {
		return nil, nil, err
	}
	columns := r.Columns
	if columns == nil {
		columns = make(Columns, r.D)
	}
	at := 0
	for _, c := range columns {
		j := at
		if at += c.width(); c.MayMiss || c.Categories != nil {
			continue
		}
		values := make([]float64, r.N)
		for i := range values {
			values[i] = r.Row(i)[j]
		}
		if s := Between(values, r.N/3, 2*r.N/3); 6*len(s.Test) < r.N || 2*len(s.Test) > r.N {
			continue
		} else if splits = append(splits, s); r.Features != nil {
			inputs = append(inputs, r.Features[j])
		} else {
			inputs = append(inputs, fmt.Sprintf("input %d", j+1))
		}
	}
	if splits == nil {
		return nil, nil, fmt.Errorf("datasets: HoleSplits: no input of set %q has a gap: an input needs numbers, none of them missing, that differ enough to leave out a middle third", r.Name)
	}
	return splits, inputs, nil
}
