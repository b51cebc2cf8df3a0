package train

import (
	"context"
	"slices"

	"github.com/gomlx/compute"

	"densityuncertainty/dul/nets"
)

// FitEnsemble trains a member of a deep ensemble for each of Seeds, all on the
// same set, as the replicas of one graph (see FitReplicas).
func (t Regression) FitEnsemble(ctx context.Context, backend compute.Backend, set Set) (*nets.Regression, error) {
	return t.FitReplicas(ctx, backend, slices.Repeat([]Set{set}, len(t.Seeds)))
}
