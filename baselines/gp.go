package baselines

import (
	"fmt"
	"maps"
	"slices"
)

// A Likelihood is the distribution of the observation y given the Gaussian process f.
type Likelihood int

const (
	// Softmax is p(y | f) = softmax(f)_y, with one f for each class.
	Softmax Likelihood = iota
	// Gaussian is p(y | f) = N(f, sigma^2), where sigma belongs to the model's likelihood.Gaussian and not to the
	// layer.
	Gaussian
)

// FailedReplicas has an error for each replica whose Gaussian process could not be computed, by the number of the
// replica. Other replicas are not affected.
type FailedReplicas map[int]error

// Error lists the replicas in order with their errors.
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
