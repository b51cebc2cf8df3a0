package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
)

// Export writes a trained model to one safetensors file, for evaluation and for other programs: its parameters and
// running statistics (the variables that have a role, see package params) and the metadata. Optimizer and random state
// are left out. A tensor has the name of its variable's path without the first slash. The file has a checksum. It is an
// error if an entry is NaN or infinite, or if the model was never used and so has no parameters.
func Export(store *model.Store, path string, metadata map[string]string) error {
	fail := func(err error) error { return fmt.Errorf("checkpoint: exporting to %s: %w", path, err) }
	named := map[string]*tensors.Tensor{}
	for v := range store.IterVariables() {
		if params.RoleOf(v, store) == "" {
			continue
		}
		values, _, err := params.Values(store, v.Path())
		if err != nil {
			return fail(err)
		}
		if at := params.NotFinite(values); at >= 0 {
			return fail(fmt.Errorf("entry %d of variable %s is %g: the training diverged, such a model predicts nothing", at, v.Path(), values[at]))
		}
		if named[tensorName(v.Path())], err = v.Value(); err != nil {
			return fail(err)
		}
	}
	if len(named) == 0 {
		return fail(errors.New("the store has no parameters; build the model's graph first"))
	}
	if err := writeFile(path, named, metadata); err != nil {
		return fail(err)
	}
	return nil
}

// SetTensors sets a model's parameters and running statistics to the tensors of a file that Export or another program
// wrote (ReadTensors, ParseTensors). It copies them. The names, shapes and types must be those of the model; otherwise
// it is an error, and the store does not change.
//
// A model that was never used has no parameters. SetTensors then creates them, and the model's first training or
// prediction checks that they are its own, and otherwise returns an error:
//
//	m, err := nets.New(backend, network, likelihood.Gaussian{}, 1) // as it was trained
//	named, metadata, err := checkpoint.ReadTensors(path)
//	err = checkpoint.SetTensors(m.Store, named)
//	p, err := predict.Sample(ctx, m, inputs, predict.Options{})
func SetTensors(store *model.Store, named map[string]*tensors.Tensor) error {
	fail := func(err error) error { return fmt.Errorf("checkpoint: setting variables: %w", err) }
	if len(named) == 0 {
		return fail(errors.New("there are no tensors; read them by ReadTensors or ParseTensors"))
	}
	known := make(map[string]bool)
	for v := range store.IterVariables() {
		if params.RoleOf(v, store) != "" {
			known[tensorName(v.Path())] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if named[name] == nil {
			return fail(fmt.Errorf("the model has variable %s, the file has not", model.RootScopePath+name))
		}
	}
	names := slices.Sorted(maps.Keys(named))
	for _, name := range names {
		if len(known) > 0 && !known[name] {
			return fail(fmt.Errorf("the file has variable %s, the model has not", model.RootScopePath+name))
		}
		if err := checkFits(store, model.RootScopePath+name, named[name]); err != nil {
			return fail(err)
		}
	}
	for _, name := range names {
		own, err := named[name].LocalClone() // training frees the values of variables
		if err != nil {
			return fail(fmt.Errorf("copying the tensor %s: %w", name, err))
		}
		v, err := params.Set(store, model.RootScopePath+name, own)
		if err != nil {
			return fail(err)
		}
		if len(known) == 0 {
			params.SetLoaded(store, v.Path())
		}
	}
	return nil
}
