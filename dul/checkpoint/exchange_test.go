package checkpoint_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
)

// values are the bytes of all variables with a role, by path.
func values(t *testing.T, store *model.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for v := range store.IterVariables() {
		if params.RoleOf(v, store) != "" {
			all[v.Path()] = string(bytesOf(t, v))
		}
	}
	return all
}

func TestExportAndImport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	trained := newRun(t, 1, false, train.SGD{Momentum: 0.9})
	trained.train(t, 2)
	if err := checkpoint.Export(trained.store, path, "v7"); err != nil {
		t.Fatal(err)
	}
	want := values(t, trained.store)

	fresh := newRun(t, 2, false, train.SGD{})
	metadata, err := checkpoint.Import(fresh.store, path)
	if err != nil {
		t.Fatal(err)
	}
	if metadata[checkpoint.MetadataVersion] != "v7" || !strings.Contains(metadata[checkpoint.MetadataRoles], `"model/network/output/weights":"weight"`) {
		t.Errorf("metadata %v", metadata)
	}
	if n := fresh.store.NumVariables(); n != len(want)+1 { // and the state of random draws
		t.Errorf("the import gave the store %d variables, want %d", n, len(want)+1)
	}
	for path, bytes := range want {
		v := fresh.store.GetVariable(path)
		if v == nil || string(bytesOf(t, v)) != bytes || !v.Trainable {
			t.Errorf("variable %s is %v, or not trainable", path, v)
		}
	}

	built := newRun(t, 3, false, train.SGD{Momentum: 0.9})
	built.train(t, 1)
	if _, err := checkpoint.Import(built.store, path); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(values(t, built.store), want) {
		t.Error("the import into a built model differs")
	}
}

// Running statistics are exported with the parameters and stay untrained.
func TestImportedStatisticsAreNotTrainable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	store := model.NewStore()
	store.VariableWithValue("/model/mean", []float32{1, 2}).SetTrainable(false)
	store.SetParam("/parameter_roles/|model|mean", string(params.Running))
	if err := checkpoint.Export(store, path, ""); err != nil {
		t.Fatal(err)
	}
	fresh := model.NewStore()
	if _, err := checkpoint.Import(fresh, path); err != nil {
		t.Fatal(err)
	}
	if v := fresh.GetVariable("/model/mean"); v == nil || v.Trainable {
		t.Errorf("the statistic is %v, trainable: %t", v, v.Trainable)
	}
}

// The first difference between file and model is named, and nothing is changed.
func TestImportRefusesOtherModels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	with := func(variables map[string]any) *model.Store {
		store := model.NewStore()
		for _, path := range slices.Sorted(maps.Keys(variables)) {
			store.VariableWithValue(path, variables[path])
			store.SetParam("/parameter_roles/"+strings.ReplaceAll(path, "/", "|"), string(params.Weight))
		}
		return store
	}
	file := with(map[string]any{"/m/a": []float32{1, 2}, "/m/b": float32(3)})
	if err := checkpoint.Export(file, path, ""); err != nil {
		t.Fatal(err)
	}
	for says, store := range map[string]*model.Store{
		"the model has variable /m/0, the file has not":                           with(map[string]any{"/m/0": 1.0, "/m/a": []float32{0, 0}, "/m/b": float32(0), "/m/c": 1.0}),
		"the file has variable /m/b, the model has not":                           with(map[string]any{"/m/a": []float32{0, 0}}),
		"/m/a is (Float32)[3] in the model and (Float32)[2] in the file":          with(map[string]any{"/m/a": []float32{0, 0, 0}, "/m/b": 0.0}),
		"variable /m/b is (Float64) in the model and (Float32) in the file":       with(map[string]any{"/m/a": []float32{0, 0}, "/m/b": 0.0}),
		"variable /m/a is (Float32)[2, 1] in the model and (Float32)[2] in the f": with(map[string]any{"/m/a": [][]float32{{0}, {0}}, "/m/b": float32(0)}),
	} {
		before := values(t, store)
		if _, err := checkpoint.Import(store, path); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
			t.Errorf("the error is %v, want one that says %q", err, says)
		}
		if !maps.Equal(values(t, store), before) {
			t.Errorf("%s: the refused import changed the store", says)
		}
	}
}

func TestExportAndImportErrors(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "model.safetensors")
	if err := checkpoint.Export(filled(1, 1), path, ""); err == nil || !strings.Contains(err.Error(), "no parameters") {
		t.Errorf("exporting a store without parameters: %v", err)
	}
	if got := list(t, folder); got != "" {
		t.Errorf("a refused export left %s", got)
	}
	if _, err := checkpoint.Import(model.NewStore(), path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("importing a missing file: %v", err)
	}
	r := newRun(t, 1, false, train.SGD{})
	r.train(t, 1)
	if err := checkpoint.Export(r.store, filepath.Join(folder, "missing", "x"), ""); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("exporting into a missing folder: %v", err)
	}
	if err := checkpoint.Export(r.store, path, ""); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, path, content[:len(content)-1])
	store := model.NewStore()
	if _, err := checkpoint.Import(store, path); err == nil || !strings.Contains(err.Error(), "in data of") || store.NumVariables() != 0 {
		t.Errorf("importing a file that was cut short: %v", err)
	}
	bad := bytes.Replace(content, []byte(`\"model/network/output/weights\":\"weight\"`), []byte(`\"model/network/output/weights\":[weight]]]`), 1)
	rewrite(t, path, bad)
	if _, err := checkpoint.Import(store, path); err == nil || !strings.Contains(err.Error(), "roles") {
		t.Errorf("importing a file with damaged roles: %v", err)
	}
}
