package baselines

import (
	"fmt"
	"maps"
	"slices"
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
// without a Cholesky factor, by the number of the replica. Other replicas are not
// affected.
type FailedReplicas map[int]error

// Error names the replicas in order.
func (f FailedReplicas) Error() string { return fmt.Sprintf("replicas %v", map[int]error(f)) }

// Unwrap returns the errors of the replicas.
func (f FailedReplicas) Unwrap() []error { return slices.Collect(maps.Values(f)) }

// asError is nil where no replica failed.
func (f FailedReplicas) asError() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
