package nets

import (
	"bytes"
	"errors"
	"fmt"

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
	variable, err := m.randomState()
	if err != nil {
		return nil, err
	}
	value, err := variable.Value()
	if err == nil {
		err = value.ConstBytes(func(data []byte) { state = bytes.Clone(data) })
	}
	if err != nil {
		return nil, fmt.Errorf("reading the random state: %w", err)
	}
	return state, nil
}

// SetNoiseState puts the noise where it was when NoiseState returned the given
// state, of a model with the same source of noise and as many replicas; after an
// error it is where it was before. Graphs that were built before, as by a
// predict.Sample that still runs, may have drawn theirs.
func (m *Model) SetNoiseState(state []byte) error {
	if m.Host != nil {
		return m.Host.SetState(state)
	}
	variable, err := m.randomState()
	if err != nil {
		return err
	}
	value := tensors.FromShape(variable.Shape())
	if size := int(value.ByteSize()); len(state) != size {
		return fmt.Errorf("the random state has %d bytes, want %d: it is of another source of noise, or damaged", len(state), size)
	}
	err = value.MutableBytes(func(data []byte) { copy(data, state) })
	if err == nil {
		err = variable.SetValue(value)
	}
	if err != nil {
		return fmt.Errorf("setting the random state: %w", err)
	}
	return nil
}

// randomState is the variable of the store that noise in the graph is drawn from.
func (m *Model) randomState() (*model.Variable, error) {
	variable := m.Store.GetVariable(model.JoinPath(model.ScopeSeparator, model.RNGStateVariableName))
	if variable == nil || !variable.HasValue() {
		return nil, errors.New("the model's store has no random state; make the model by nets.New")
	}
	return variable, nil
}
