package nets

import (
	"bytes"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// NoiseState returns the state of the model's noise, for SetNoiseState: the position of the host's streams, or the
// random state of the store.
func (m *Model) NoiseState() (state []byte, err error) {
	if m.Host != nil {
		return m.Host.State()
	}
	value, err := m.randomState().Value()
	if err == nil {
		err = value.ConstBytes(func(data []byte) { state = bytes.Clone(data) })
	}
	return state, err
}

// SetNoiseState restores a state that NoiseState of this model returned, so that the same draws follow. A graph that
// was built before may already hold noise for its next execution.
func (m *Model) SetNoiseState(state []byte) error {
	if m.Host != nil {
		return m.Host.SetState(state)
	}
	value := tensors.FromShape(m.randomState().Shape())
	if err := value.MutableBytes(func(data []byte) { copy(data, state) }); err != nil {
		return err
	}
	return m.randomState().SetValue(value)
}

// randomState is the variable of the store that noise in the graph is drawn from.
func (m *Model) randomState() *model.Variable {
	return m.Store.GetVariable(model.JoinPath(model.ScopeSeparator, model.RNGStateVariableName))
}
