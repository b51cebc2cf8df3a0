package checkpoint_test

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
	"densityuncertainty/environment/must"
)

// build makes a model with weights and running statistics in a store, and
// returns its output for one image.
func build(t *testing.T, store *model.Store, seed uint64) []float64 {
	t.Helper()
	params.SetSeeds(store, seed)
	y := must.Get(model.CallOnce(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
		spec := conv.Spec{Filters: 3, Window: conv.Same(3, 1)}
		return conv.BatchNorm(s.In("norm"), conv.Layer(s.In("layer"), x, spec))
	}, fixtures.Tensor(dtypes.Float32, fixtures.Zeros(2, 1, 4, 4).Map(func(float64) float64 { return 1 }))))(t)
	return fixtures.FromTensor(t, y).Values
}

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

// A model is the same when its file is read, whether it is built before or after.
func TestExportAndSetTensors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	saved := model.NewStore()
	build(t, saved, 1)
	// Not as they start.
	setTo(t, saved, "/norm/running_mean", 0.25)
	want := build(t, saved, 1)
	saved.VariableWithValue("/optimizer/step", 7.0)
	texts := map[string]string{"version": "v7", "experiment": `{"seed":1}`}
	must.Do(t, checkpoint.Export(saved, path, texts))
	for _, c := range []struct {
		name  string
		built bool
	}{{"into an empty store", false}, {"into a built model", true}} {
		t.Run(c.name, func(t *testing.T) {
			store := model.NewStore()
			if c.built {
				build(t, store, 2)
			}
			named, got := must.Get2(checkpoint.ReadTensors(path))(t)
			must.Do(t, checkpoint.SetTensors(store, named))
			if !maps.Equal(got, texts) {
				t.Errorf("texts %v, want %v", got, texts)
			}
			if y := build(t, store, 2); !slices.Equal(y, want) {
				t.Errorf("the output is %.4g, want %.4g", y, want)
			}
			if !maps.Equal(values(t, store), values(t, saved)) {
				t.Error("the variables differ")
			}
			if store.GetVariable("/optimizer/step") != nil {
				t.Error("the optimizer's state was exported")
			}
			if v := store.GetVariable("/norm/running_mean"); v.Trainable || !store.GetVariable("/layer/weights").Trainable {
				t.Error("running statistics are trained, or weights are not")
			}
		})
	}
}

func setTo(t *testing.T, store *model.Store, path string, value float64) {
	t.Helper()
	v := store.GetVariable(path)
	a := fixtures.Zeros(v.Shape().Dimensions...).Map(func(float64) float64 { return value })
	must.Do(t, v.SetValue(fixtures.Tensor(v.DType(), a)))
}

// The first difference between file and model is named, and nothing is changed.
func TestSetTensorsRefusesOtherModels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	type variable struct {
		path  string
		value any
	}
	with := func(variables ...variable) *model.Store {
		store := model.NewStore()
		for _, v := range variables {
			store.VariableWithValue(v.path, v.value)
			store.SetParam("/parameter_roles/"+strings.ReplaceAll(v.path, "/", "|"), string(params.Weight))
		}
		return store
	}
	a, b := variable{"/m/a", []float32{0, 0}}, variable{"/m/b", float32(0)}
	must.Do(t, checkpoint.Export(with(variable{"/m/a", []float32{1, 2}}, variable{"/m/b", float32(3)}), path, nil))
	for says, store := range map[string]*model.Store{
		"the model has variable /m/0, the file has not":                     with(a, b, variable{"/m/c", 1.0}, variable{"/m/0", 1.0}),
		"the file has variable /m/b, the model has not":                     with(a),
		"/m/a is (Float32)[3] in the model and (Float32)[2] in the file":    with(variable{"/m/a", []float32{0, 0, 0}}, b),
		"variable /m/b is (Float64) in the model and (Float32) in the file": with(a, variable{"/m/b", 0.0}),
		"/m/a is (Float32)[2, 1] in the model and (Float32)[2] in the file": with(variable{"/m/a", [][]float32{{0}, {0}}}, b),
	} {
		t.Run(says, func(t *testing.T) {
			before := values(t, store)
			named, _ := must.Get2(checkpoint.ReadTensors(path))(t)
			must.Err(t, checkpoint.SetTensors(store, named), says)
			if !maps.Equal(values(t, store), before) {
				t.Error("the refused file changed the store")
			}
		})
	}
}

func TestExportAndReadErrors(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "model.safetensors")
	must.Err(t, checkpoint.Export(model.NewStore(), path, nil), "no parameters")
	if got := list(t, folder); got != "" {
		t.Errorf("a refused export left %s", got)
	}
	if _, _, err := checkpoint.ReadTensors(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("reading a missing file: %v", err)
	}
	must.Err(t, checkpoint.SetTensors(model.NewStore(), nil), "there are no tensors")
	built := model.NewStore()
	build(t, built, 1)
	must.Err(t, checkpoint.Export(built, filepath.Join(folder, "missing", "x"), nil), "missing")
	must.Err(t, checkpoint.Export(built, path, map[string]string{"content_sha256": "mine"}), `the text "content_sha256" is reserved`)
	must.Do(t, checkpoint.Export(built, path, nil))
	setTo(t, built, "/norm/running_mean", math.NaN())
	broken := filepath.Join(folder, "broken")
	must.Err(t, checkpoint.Export(built, broken, nil), "entry 0 of variable /norm/running_mean is NaN")
	content := must.Get(os.ReadFile(path))(t)
	rewrite(t, path, content[:len(content)-1])
	_, _, err := checkpoint.ReadTensors(path)
	must.Err(t, err, "in data of")
}
