package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
	"densityuncertainty/environment/atomicfile"
)

// Export writes the variables of a model that have a role (see package params),
// its parameters and running statistics, and texts about it to one safetensors
// file. Optimizer and random state are left out: the file is a trained model, for
// evaluation and for other programs. Tensors are called by their variable's path
// without the first slash.
func Export(store *model.Store, path string, metadata map[string]string) error {
	var list []namedTensor
	for v := range store.IterVariables() {
		if params.RoleOf(v, store) == "" {
			continue
		}
		t, err := named(v)
		if err != nil {
			return fmt.Errorf("checkpoint: exporting to %s: %w", path, err)
		}
		list = append(list, t)
	}
	if len(list) == 0 {
		return fmt.Errorf("checkpoint: exporting to %s: the store has no parameters; build the model's graph first", path)
	}
	err := atomicfile.Write(path, func(file io.Writer) error {
		w := bufio.NewWriterSize(file, bufferSize)
		return errors.Join(writeTensors(w, list, metadata), w.Flush())
	})
	if err != nil {
		return fmt.Errorf("checkpoint: exporting: %w", err)
	}
	return nil
}

// Import sets a model's parameters and running statistics to those of a file
// that Export or another program wrote, and returns the texts in it. In a store
// that has none yet it creates them; the graph that is built afterwards finds
// them there and gives them their roles. Where the store has some, the file must
// have the same ones, of the same shapes and types: the first that differs is an
// error, after which the store is as it was.
func Import(store *model.Store, path string) (metadata map[string]string, err error) {
	list, metadata, _, err := readModel(path)
	if err == nil {
		err = importTensors(store, list)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: importing %s: %w", path, err)
	}
	return metadata, nil
}

func importTensors(store *model.Store, list []namedTensor) error {
	values := map[string]*tensors.Tensor{}
	for _, t := range list {
		values[model.RootScopePath+t.name] = t.tensor
	}
	known := map[string]bool{}
	for v := range store.IterVariables() {
		if params.RoleOf(v, store) != "" {
			known[v.Path()] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(known)) {
		if values[path] == nil {
			return fmt.Errorf("the model has variable %s, the file has not", path)
		}
	}
	paths := slices.Sorted(maps.Keys(values))
	for _, path := range paths {
		if len(known) > 0 && !known[path] {
			return fmt.Errorf("the file has variable %s, the model has not", path)
		}
		if err := checkFits(store, path, values[path]); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if _, err := setVariable(store, path, values[path]); err != nil {
			return err
		}
	}
	return nil
}
