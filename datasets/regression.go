package datasets

import "fmt"

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
