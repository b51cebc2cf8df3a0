package stochastic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/ml/model"
)

// stateSize is the length of one stream's position, in bytes, as
// rand.PCG.MarshalBinary writes it.
const stateSize = 20

// State returns the position of the streams: what SetState needs to go on with
// the same draws. The noise in the buffers is not part of it, as every execution
// draws its own.
func (h *HostSampler) State() ([]byte, error) {
	state := make([]byte, 0, stateSize*len(h.sources))
	for r, source := range h.sources {
		position, err := source.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("reading the position of noise stream %d: %w", r, err)
		}
		state = append(state, position...)
	}
	return state, nil
}

// SetState puts the streams where they were when State returned the given
// position; the source must have as many replicas as that one. Set it before a
// graph is built: building draws the noise of the first execution. After an
// error the streams are where they were before.
func (h *HostSampler) SetState(state []byte) error {
	if len(state) != stateSize*len(h.sources) {
		return fmt.Errorf("the position of the noise streams has %d bytes, want %d for %d streams: it is of a source with another number of replicas, or damaged",
			len(state), stateSize*len(h.sources), len(h.sources))
	}
	positions := make([]rand.PCG, 0, len(h.sources))
	for part := range slices.Chunk(state, stateSize) {
		var position rand.PCG
		if err := position.UnmarshalBinary(part); err != nil {
			return fmt.Errorf("the position of noise stream %d: %w", len(positions), err)
		}
		positions = append(positions, position)
	}
	for r, source := range h.sources {
		*source = positions[r]
	}
	return nil
}

// IsNoiseBuffer says whether a variable is one of NoiseBuffers: its value is drawn
// anew for every execution, so it is not part of a model or of its training.
func IsNoiseBuffer(v *model.Variable) bool { return strings.HasPrefix(v.Path(), noiseScope) }
