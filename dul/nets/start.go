package nets

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// newStore returns the store of an untrained model: the seeds, one for each
// replica, fix the initial parameters, the first of them the noise that is drawn
// in the graph.
func newStore(seeds []uint64) (*model.Store, error) {
	store := model.NewStore()
	params.SetSeeds(store, seeds...)
	if err := store.SetRNGStateFromSeed(int64(seeds[0])); err != nil {
		return nil, err
	}
	return store, nil
}

// newHost returns the source of noise of a model: the host on the pure Go
// backend, nil, which means the graph, on all others.
func newHost(backend compute.Backend, seeds []uint64, replicated bool) *stochastic.Host {
	switch {
	case !ops.IsGo(backend):
		return nil
	case replicated:
		return stochastic.NewReplicatedHost(seeds)
	default:
		return stochastic.NewHost(seeds[0])
	}
}
