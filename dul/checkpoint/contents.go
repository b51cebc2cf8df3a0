package checkpoint

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	strict "encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// settingsKey is the one text of a checkpoint's file besides the checksum: its settings as JSON.
const settingsKey = "checkpoint"

// settings are what a checkpoint holds besides its tensors.
type settings struct {
	Version   string          `json:"version"`
	Progress  json.RawMessage `json:"progress"`
	Noise     []byte          `json:"noise"`     // nil without a host source
	Variables []variable      `json:"variables"` // in the order of their creation
	// Parameters are those of the store in GoMLX's sense, named settings: package params
	// keeps the roles of parameters and the seeds of their initial values there. They are
	// a map[string]any by encoding/gob, which keeps the types.
	Parameters []byte `json:"store_parameters"`
}

// A variable is what of a variable is not in its tensor.
type variable struct {
	Path      string `json:"path"`
	Trainable bool   `json:"trainable"`
}

// write writes a checkpoint to the file at path.
func write(path string, state State) error {
	s := settings{Version: state.Version}
	var err error
	if s.Progress, err = json.Marshal(state.Progress); err != nil {
		return fmt.Errorf("the progress cannot be stored: %w", err)
	}
	if state.Noise != nil {
		if s.Noise, err = state.Noise.State(); err != nil {
			return err
		}
	}
	named := map[string]*tensors.Tensor{}
	for v := range state.Store.IterVariables() {
		if stochastic.IsNoiseBuffer(v) {
			continue
		}
		value, err := v.Value()
		if err != nil {
			return fmt.Errorf("reading variable %s: %w", v.Path(), err)
		}
		named[tensorName(v.Path())] = value
		s.Variables = append(s.Variables, variable{v.Path(), v.Trainable})
	}
	var parameters bytes.Buffer
	if err := gob.NewEncoder(&parameters).Encode(maps.Collect(state.Store.IterParams())); err != nil {
		return fmt.Errorf("the store's parameters cannot be stored: %w", err)
	}
	s.Parameters = parameters.Bytes()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return writeFile(path, named, map[string]string{settingsKey: string(text)})
}

// tensorName is the name in a file of the variable at path.
func tensorName(path string) string { return strings.TrimPrefix(path, model.RootScopePath) }

// A contents is a checkpoint as it was read.
type contents struct {
	settings
	tensors map[string]*tensors.Tensor // by name in the file
}

// read reads and checks the checkpoint at path.
func read(path string) (*contents, error) {
	named, metadata, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if len(metadata) != 1 { // readFile has checked the checksum and taken it out
		return nil, errors.New("it has no checksum, or is no checkpoint")
	}
	c := &contents{tensors: named}
	if err := decodeStrictly([]byte(metadata[settingsKey]), &c.settings); err != nil {
		return nil, err
	}
	return c, nil
}

// apply puts the checkpoint into a run's state: all of it, or after an error
// nothing, except that Progress may have changed.
func (c *contents) apply(state State) error {
	saved := map[string]bool{}
	for _, v := range c.Variables {
		saved[v.Path] = true
		if err := checkFits(state.Store, v.Path, c.tensors[tensorName(v.Path)]); err != nil {
			return err
		}
	}
	for v := range state.Store.IterVariables() {
		if !saved[v.Path()] && !stochastic.IsNoiseBuffer(v) {
			return fmt.Errorf("the model has variable %s, the checkpoint has not", v.Path())
		}
	}
	var parameters map[string]any
	if err := gob.NewDecoder(bytes.NewReader(c.Parameters)).Decode(&parameters); err != nil {
		return fmt.Errorf("the store's parameters: %w", err)
	}
	if (c.Noise != nil) != (state.Noise != nil) {
		return fmt.Errorf("saved with noise from the host: %t, to be continued with noise from the host: %t; use the same backend", c.Noise != nil, state.Noise != nil)
	}
	if state.Progress != nil {
		if err := decodeStrictly(c.Progress, state.Progress); err != nil {
			return fmt.Errorf("the progress is not a %T: %w", state.Progress, err)
		}
	}
	if state.Noise != nil {
		if err := state.Noise.SetState(c.Noise); err != nil {
			return err
		}
	}
	state.Store.SetParams(parameters)
	for _, saved := range c.Variables {
		v, err := params.Set(state.Store, saved.Path, c.tensors[tensorName(saved.Path)])
		if err != nil {
			return err
		}
		v.SetTrainable(saved.Trainable)
	}
	return nil
}

// checkFits says whether a tensor can be the value of the variable at path.
func checkFits(store *model.Store, path string, value *tensors.Tensor) error {
	if v := store.GetVariable(path); v != nil && !v.Shape().Equal(value.Shape()) {
		return fmt.Errorf("variable %s is %s in the model and %s in the file", path, v.Shape(), value.Shape())
	}
	return nil
}

// decodeStrictly reads one JSON value and nothing after it. Unknown fields are errors,
// so that what was saved is not silently dropped, and so are names that are there twice.
func decodeStrictly(text []byte, target any) error {
	return strict.Unmarshal(text, target, strict.RejectUnknownMembers(true))
}
