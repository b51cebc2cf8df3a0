package nets

import (
	"bytes"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// NoiseState is where the model's noise is: after SetNoiseState the draws that
// followed on it follow again. It is the position of the streams on the host, or
// the random state of the store.
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

// SetNoiseState puts the noise where it was when NoiseState of this model returned the given
// state. Graphs that were built before, as by a
// predict.Sample that still runs, may have drawn theirs.
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
