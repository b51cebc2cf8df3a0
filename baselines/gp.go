package baselines

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
)

// A Likelihood is what a Gaussian process f is observed through.
type Likelihood int

const (
	// Softmax is p(y | f) = softmax(f)_y, with one f for each class.
	Softmax Likelihood = iota
	// Gaussian is p(y | f) = N(f, sigma^2), whose sigma is not the layer's own.
	Gaussian
)

// FailedReplicas is the error of models whose Gaussian processes had a matrix
// without a Cholesky factor, by the number of the replica. The other replicas are
// as good as without them.
type FailedReplicas map[int]error

// Error names the replicas in order.
func (f FailedReplicas) Error() string {
	var parts []string
	for _, r := range slices.Sorted(maps.Keys(f)) {
		parts = append(parts, fmt.Sprintf("replica %d: %v", r, f[r]))
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns the errors of the replicas, in their order.
func (f FailedReplicas) Unwrap() []error {
	var all []error
	for _, r := range slices.Sorted(maps.Keys(f)) {
		all = append(all, f[r])
	}
	return all
}

// asError is nil where no replica failed.
func (f FailedReplicas) asError() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// Headless is the family of SpectralNormed without a last layer: its Dense returns
// its input. A network of it, with the parameters of one of SNGP or DUE, gives
// the features that the Gaussian process sees.
type Headless struct{ SpectralNormed }

// Dense returns x.
func (Headless) Dense(_ *model.Scope, x *graph.Node, _ int) *graph.Node { return x }

// orthogonalBlocks starts a [rows, columns] matrix with blocks of orthogonal
// columns of random directions, whose lengths are distributed as those of columns
// of independent draws from N(0, 1).
func orthogonalBlocks(rng *rand.Rand, dims []int, values []float64) {
	rows, columns := dims[0], dims[1]
	directions := make([]float64, len(values))
	params.Orthogonal(rng, []int{columns, rows}, directions)
	for j := range columns {
		squares := 0.0
		for range rows {
			x := rng.NormFloat64()
			squares += x * x
		}
		for i := range rows {
			values[i*columns+j] = math.Sqrt(squares) * directions[j*rows+i]
		}
	}
}

// orDefaultInt returns value, or the default where value is zero.
func orDefaultInt(value, standard int) int {
	if value == 0 {
		return standard
	}
	return value
}

// leadOf returns the replica axes of [..., n, m].
func leadOf(x *graph.Node) []int { return x.Shape().Dimensions[:x.Rank()-2] }

// float64sAt is the value and shape of a variable.
func float64sAt(store *model.Store, path string) ([]float64, shapes.Shape, error) {
	v := store.GetVariable(path)
	if v == nil {
		return nil, shapes.Shape{}, fmt.Errorf("there is no variable %s", path)
	}
	value, err := v.Value()
	if err != nil {
		return nil, shapes.Shape{}, fmt.Errorf("reading %s: %w", path, err)
	}
	wide := make([]float64, value.Shape().Size())
	err = value.ConstFlatData(func(flat any) {
		switch flat := flat.(type) {
		case []float32:
			for i, x := range flat {
				wide[i] = float64(x)
			}
		case []float64:
			copy(wide, flat)
		}
	})
	return wide, value.Shape(), err
}

// setVariable sets a variable that no optimizer trains, creating it where there is none.
func setVariable(store *model.Store, path string, value *tensors.Tensor) error {
	if v := store.GetVariable(path); v != nil {
		return v.SetValue(value)
	}
	store.VariableWithValue(path, value).SetTrainable(false)
	return nil
}
