package nets

import (
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
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
