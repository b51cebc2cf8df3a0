package checkpoint

import (
	"bufio"
	"encoding/json"
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

// The keys of an exported file's metadata.
const (
	// MetadataVersion has the version of the program that wrote the file.
	MetadataVersion = "version"
	// MetadataRoles has the roles of the tensors: a JSON object, name to role.
	MetadataRoles = "roles"
)

// Export writes the variables of a model that have a role (see package params),
// its parameters and running statistics, to one safetensors file. Optimizer and
// random state are left out: the file is for evaluation and for other programs.
// Tensors are called by their variable's path without the first slash.
func Export(store *model.Store, path, version string) error {
	var list []namedTensor
	roles := map[string]params.Role{}
	for v := range store.IterVariables() {
		role := params.RoleOf(v, store)
		if role == "" {
			continue
		}
		t, err := named(v)
		if err != nil {
			return fmt.Errorf("checkpoint: exporting to %s: %w", path, err)
		}
		list = append(list, t)
		roles[t.name] = role
	}
	if len(list) == 0 {
		return fmt.Errorf("checkpoint: exporting to %s: the store has no parameters; build the model's graph first", path)
	}
	text, err := json.Marshal(roles)
	if err != nil {
		return fmt.Errorf("checkpoint: exporting to %s: %w", path, err)
	}
	err = atomicfile.Write(path, func(file io.Writer) error {
		w := bufio.NewWriterSize(file, bufferSize)
		metadata := map[string]string{MetadataVersion: version, MetadataRoles: string(text)}
		return errors.Join(writeTensors(w, list, metadata), w.Flush())
	})
	if err != nil {
		return fmt.Errorf("checkpoint: exporting: %w", err)
	}
	return nil
}

// Import sets a model's parameters and running statistics to those of a file
// that Export or another program wrote, and returns the file's metadata. In a
// store that has none yet it creates them; the graph that is built afterwards
// finds them there and gives them their roles. Where the store has some, the
// file must have the same ones, of the same shapes and types: the first that
// differs is an error, after which the store is as it was.
func Import(store *model.Store, path string) (metadata map[string]string, err error) {
	list, metadata, _, err := readModel(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: importing %s: %w", path, err)
	}
	if err := importTensors(store, list, metadata); err != nil {
		return nil, fmt.Errorf("checkpoint: importing %s: %w", path, err)
	}
	return metadata, nil
}

func importTensors(store *model.Store, list []namedTensor, metadata map[string]string) error {
	roles := map[string]params.Role{}
	if text, has := metadata[MetadataRoles]; has {
		if err := json.Unmarshal([]byte(text), &roles); err != nil {
			return fmt.Errorf("reading the roles in its metadata: %w", err)
		}
	}
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
		v, created, err := setVariable(store, path, values[path])
		if err != nil {
			return err
		}
		if created {
			v.SetTrainable(roles[tensorName(path)] != params.Running)
		}
	}
	return nil
}
