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

// Export writes the variables of a model that have a role (see package params),
// its parameters and running statistics, and texts about it to one safetensors
// file. Optimizer and random state are left out: the file is a trained model, for
// evaluation and for other programs. Tensors are called by their variable's path
// without the first slash. The file has a checksum of all that. An entry that
// is not finite is an error.
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

// SetTensors sets a model's parameters and running statistics to those of a file
// that Export or another program wrote (ReadTensors, ParseTensors). The file must
// have the same ones as the store, of the same shapes and types: the first that
// differs is an error, after which the store is as it was. The tensors are copied.
//
// A model that was never used has none yet. Then SetTensors creates them, and the
// model's first use, in training or in prediction, finds them there and gives them
// their roles; that use is an error if the file is of another model:
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
