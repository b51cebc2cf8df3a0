package baselines

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/params"
)

// below returns hidden, and notes that the graph g needs a Gaussian process above it.
func below(g *graph.Graph, hidden SpectralNormed) SpectralNormed {
	params.FactsOf(g).NeedsHead = true
	return hidden
}

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
