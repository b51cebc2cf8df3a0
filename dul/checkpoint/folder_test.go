package checkpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// progress is what the runs of these tests keep beside their variables.
type progress struct {
	Epoch int
	Seeds []uint64
	Order []byte
}

func open(t testing.TB, path string, keep int) *checkpoint.Folder {
	t.Helper()
	f := must.Get(checkpoint.Open(path, keep))(t)
	t.Cleanup(func() {
		must.Do(t, f.Close())
	})
	return f
}

// filled is a store with one variable of n entries, all equal to value, and a
// scalar of the same value.
func filled(n int, value float64) *model.Store {
	store := model.NewStore()
	store.VariableWithValue("/model/w", slices.Repeat([]float64{value}, n))
	store.VariableWithValue("/model/step", int64(value))
	return store
}

func save(t testing.TB, f *checkpoint.Folder, step int, store *model.Store) {
	t.Helper()
	must.Do(t, f.Save(step, checkpoint.State{Store: store}))
}

// consistent returns the value with which the store of a checkpoint was filled.
func consistent(store *model.Store) (float64, error) {
	w, err := store.GetVariable("/model/w").Value()
	if err != nil {
		return 0, err
	}
	step, err := store.GetVariable("/model/step").Value()
	if err != nil {
		return 0, err
	}
	want := float64(tensors.ToScalar[int64](step))
	var problem error
	err = tensors.ConstFlatData(w, func(flat []float64) {
		for i, v := range flat {
			if v != want {
				problem = fmt.Errorf("entry %d is %g, the step %g", i, v, want)
			}
		}
	})
	return want, errors.Join(err, problem)
}

// requireStep restores into a new store and fails unless that is the given
// step's; it returns what Restore found.
func requireStep(t testing.TB, f *checkpoint.Folder, want int) checkpoint.Restored {
	t.Helper()
	store := model.NewStore()
	found := must.Get(f.Restore(checkpoint.State{Store: store}))(t)
	if !found.Found || found.Step != want {
		t.Fatalf("restored step %d (found: %t), want %d", found.Step, found.Found, want)
	}
	if value, err := consistent(store); err != nil || value != float64(want) {
		t.Fatalf("step %d restored the values of step %g: %v", want, value, err)
	}
	return found
}

// list is the visible content of a folder.
func list(t testing.TB, path string) string {
	t.Helper()
	entries := must.Get(os.ReadDir(path))(t)
	var names []string
	for _, entry := range entries {
		if entry.Name() != ".lock" {
			names = append(names, entry.Name())
		}
	}
	return strings.Join(names, " ")
}

func bytesOf(t testing.TB, v *model.Variable) []byte {
	t.Helper()
	value := must.Get(v.Value())(t)
	var all []byte
	must.Do(t, value.ConstBytes(func(data []byte) { all = slices.Clone(data) }))
	return all
}

// requireEqualStores compares all variables but the noise, bit by bit and in
// the order of their creation.
func requireEqualStores(t testing.TB, got, want *model.Store) {
	t.Helper()
	variables := func(s *model.Store) []*model.Variable {
		var all []*model.Variable
		for v := range s.IterVariables() {
			if !stochastic.IsNoiseBuffer(v) {
				all = append(all, v)
			}
		}
		return all
	}
	g, w := variables(got), variables(want)
	if len(g) != len(w) {
		t.Fatalf("%d variables, want %d", len(g), len(w))
	}
	for i := range w {
		if g[i].Path() != w[i].Path() || g[i].Trainable != w[i].Trainable || !g[i].Shape().Equal(w[i].Shape()) {
			t.Errorf("variable %d is %s %s (trainable: %t), want %s %s (%t)", i, g[i].Path(), g[i].Shape(), g[i].Trainable, w[i].Path(), w[i].Shape(), w[i].Trainable)
		} else if !bytes.Equal(bytesOf(t, g[i]), bytesOf(t, w[i])) {
			t.Errorf("variable %s differs", w[i].Path())
		}
	}
}

// varied is a store with variables of several types, the state of random draws,
// settings and a buffer of noise.
func varied(t testing.TB) *model.Store {
	t.Helper()
	store := model.NewStore()
	store.VariableWithValue("/model/w", [][]float32{{1.5, -2}, {1e-45, 3e38}})
	store.VariableWithValue("/a/before/w", []float64{1 / 3.0})
	store.VariableWithValue("/model/mean", []float32{7}).SetTrainable(false)
	store.VariableWithValue("/model/counts", []int64{-1 << 63, 1<<63 - 1})
	store.VariableWithValue("/model/ints", []int32{-5})
	store.VariableWithValue("/model/flag", true).SetTrainable(false)
	store.VariableWithValue("/model/half", []bfloat16.BFloat16{bfloat16.FromFloat32(1.25)})
	store.VariableWithValue("/noise/sheet_1/draw_0", []float32{9})
	must.Do(t, store.SetRNGStateFromSeed(42))
	store.SetParams(map[string]any{
		"/parameter_roles/|model|w": "weight", "/text": "with \"quotes\"\nand lines", "/empty": "",
		"/yes": true, "/initializer_seed": int64(-7), "/scope/n": 3, "/scope/rate": 1e-300,
	})
	return store
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not", "there", "yet")
	saved := varied(t)
	noise := stochastic.NewReplicatedHostSampler([]uint64{1, 2})
	before := progress{Epoch: 3, Seeds: []uint64{1<<64 - 1}, Order: []byte{0, 255}}
	f := open(t, path, 2)
	must.Do(t, f.Save(1234, checkpoint.State{Store: saved, Noise: noise, Progress: before, Version: "v1"}))
	if got, want := list(t, path), "step-00001234.safetensors"; got != want {
		t.Errorf("the folder holds %s, want %s", got, want)
	}
	must.Do(t, f.Close())

	// One store is empty, one has been built, with other values.
	built := varied(t)
	for v := range built.IterVariables() {
		value := must.Get(v.Value())(t)
		must.Do(t, value.MutableBytes(func(data []byte) { clear(data) }))
		v.SetTrainable(true)
	}
	for _, c := range []struct {
		name  string
		store *model.Store
	}{{"into an empty store", model.NewStore()}, {"into a built one", built}} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, path, 2)
			after, otherNoise := progress{Epoch: 99}, stochastic.NewReplicatedHostSampler([]uint64{0, 0})
			found := must.Get(f.Restore(checkpoint.State{Store: c.store, Noise: otherNoise, Progress: &after}))(t)
			if !found.Found || found.Step != 1234 || found.Version != "v1" || len(found.Damaged) != 0 || filepath.Base(found.Path) != "step-00001234.safetensors" {
				t.Errorf("restored %+v", found)
			}
			requireEqualStores(t, c.store, saved)
			for path, want := range saved.IterParams() {
				if got, has := c.store.GetParam(path); !has || got != want {
					t.Errorf("parameter %s is %v, want %v", path, got, want)
				}
			}
			if fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("the progress is %+v, want %+v", after, before)
			}
			got, gotErr := otherNoise.State()
			want, wantErr := noise.State()
			if gotErr != nil || wantErr != nil || !bytes.Equal(got, want) {
				t.Errorf("the noise is at %x, want %x (%v, %v)", got, want, gotErr, wantErr)
			}
			must.Do(t, f.Close())
		})
	}
	if built.GetVariable("/noise/sheet_1/draw_0") == nil {
		t.Error("the noise buffer of the built store is gone")
	}
}

// A kept is a step to save, and the files in the folder afterwards.
type kept struct {
	step int
	want string
}

// saves saves each step, checks the files in the folder, and restores the step.
func saves(t *testing.T, f *checkpoint.Folder, path string, steps []kept) {
	t.Helper()
	for _, c := range steps {
		save(t, f, c.step, filled(3, float64(c.step)))
		if got := list(t, path); got != c.want {
			t.Errorf("after step %d the folder holds %s, want %s", c.step, got, c.want)
		}
		requireStep(t, f, c.step)
	}
}

func TestTheNewestAreKept(t *testing.T) {
	path := t.TempDir()
	f := open(t, path, 2)
	saves(t, f, path, []kept{
		{0, "step-00000000.safetensors"},
		{7, "step-00000000.safetensors step-00000007.safetensors"},
		{100, "step-00000007.safetensors step-00000100.safetensors"},
		{100, "step-00000007.safetensors step-00000100.safetensors"}, // a step again takes its place
		{123456789, "step-00000100.safetensors step-123456789.safetensors"},
	})
	// What has other names is left alone.
	for _, other := range []string{"step-1.safetensors", "step-000000000005.safetensors", "step-00000005", "notes"} {
		must.Do(t, os.Mkdir(filepath.Join(path, other), 0o755))
	}
	before := list(t, path)
	must.Err(t, f.Save(99, checkpoint.State{Store: filled(3, 99)}), "which has step 100")
	if got := list(t, path); got != before {
		t.Errorf("a refused save changed the folder from %s to %s", before, got)
	}
}

func TestOpenRefuses(t *testing.T) {
	path := t.TempDir()
	taken := filepath.Join(path, "file")
	must.Do(t, os.WriteFile(taken, nil, 0o600))
	must.GetErr(checkpoint.Open(taken, 1))(t, taken)
	f := open(t, path, 1)
	must.GetErr(checkpoint.Open(path, 1))(t, path+" is in use by another run")
	must.Do(t, f.Close())
	open(t, path, 1)
}

func TestSaveRefuses(t *testing.T) {
	f := open(t, t.TempDir(), 1)
	withParameter := filled(1, 1)
	withParameter.SetParam("/layers", struct{}{})
	noValue := filled(1, 1)
	must.Do(t, noValue.GetVariable("/model/w").Reset())
	complexes := filled(1, 1)
	complexes.VariableWithValue("/c", complex64(1))
	for says, state := range map[string]checkpoint.State{
		"progress": {Store: filled(1, 1), Progress: func() {}},
		"type not registered for interface: struct {}": {Store: withParameter},
		"reading variable /mo":                         {Store: noValue},
		"of type Complex64":                            {Store: complexes},
	} {
		must.Err(t, f.Save(1, state), says)
	}
}

// A checkpoint of another model or run is refused, and nothing of it is taken.
func TestRestoreRefusesOtherModels(t *testing.T) {
	f := open(t, t.TempDir(), 1)
	state := checkpoint.State{Store: filled(3, 5), Noise: stochastic.NewHostSampler(1), Progress: progress{Epoch: 2}}
	must.Do(t, f.Save(5, state))
	shape := filled(4, 0)
	dtype := model.NewStore()
	dtype.VariableWithValue("/model/w", make([]float32, 3))
	more := filled(3, 0)
	more.VariableWithValue("/model/v", 1.0)
	type other struct{ Epochs int }
	for _, c := range []struct {
		name  string
		state checkpoint.State // with its own noise and progress where they are nil
		says  string
	}{
		{"shape", checkpoint.State{Store: shape}, "/model/w is (Float64)[4] in the model and (Float64)[3]"},
		{"type", checkpoint.State{Store: dtype}, "/model/w is (Float32)[3]"},
		{"more variables", checkpoint.State{Store: more}, "/model/v, the checkpoint has not"},
		{"replicas", checkpoint.State{Store: filled(3, 0), Noise: stochastic.NewReplicatedHostSampler([]uint64{1, 2})}, "for 2 streams"},
		{"noise of the graph", checkpoint.State{Store: filled(3, 0)}, "continued with noise from the host: false"},
		{"progress", checkpoint.State{Store: filled(3, 0), Progress: &other{Epochs: 9}}, `unknown object member name "Epoch"`},
		{"no pointer", checkpoint.State{Store: filled(3, 0), Progress: progress{}}, "must be passed as a non-nil pointer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := c.state
			if state.Progress == nil {
				state.Progress = &progress{Epoch: 9}
			}
			if state.Noise == nil && c.name != "noise of the graph" {
				state.Noise = stochastic.NewHostSampler(2)
			}
			position := func() (at []byte) {
				if state.Noise != nil {
					var err error
					if at, err = state.Noise.State(); err != nil {
						t.Fatal(err)
					}
				}
				return at
			}
			before := must.Get(state.Store.Clone())(t)
			noise := position()
			found, err := f.Restore(state)
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "step-00000005") || found.Found {
				t.Errorf("%+v and the error %v, want one that says %q", found, err, c.says)
			}
			requireEqualStores(t, state.Store, before)
			if !bytes.Equal(position(), noise) {
				t.Error("the noise was moved")
			}
		})
	}
}

// damaged prepares a folder with checkpoints of steps 1 and 2.
func damaged(t *testing.T) (f *checkpoint.Folder, newest string) {
	t.Helper()
	path := t.TempDir()
	f = open(t, path, 3)
	save(t, f, 1, filled(3, 1))
	save(t, f, 2, filled(3, 2))
	return f, filepath.Join(path, "step-00000002.safetensors")
}

// requireFallback fails unless step 2 is refused by name and step 1 is used.
func requireFallback(t *testing.T, what string, f *checkpoint.Folder, newest string) {
	t.Helper()
	found := requireStep(t, f, 1)
	if len(found.Damaged) != 1 || !strings.Contains(found.Damaged[0].Error(), newest) {
		t.Fatalf("%s: the damaged checkpoints are %v, want %s", what, found.Damaged, newest)
	}
}

// Whatever happens to the file is noticed, and the checkpoint before is used.
func TestDamageIsNoticed(t *testing.T) {
	f, newest := damaged(t)
	content := must.Get(os.ReadFile(newest))(t)
	for i := 0; i < len(content); i += 7 {
		changed := slices.Clone(content)
		changed[i] ^= 1 << (i % 8)
		rewrite(t, newest, changed)
		requireFallback(t, fmt.Sprintf("byte %d changed", i), f, newest)
		rewrite(t, newest, content[:i])
		requireFallback(t, fmt.Sprintf("cut to %d bytes", i), f, newest)
	}
	rewrite(t, newest, append(slices.Clone(content), 0))
	requireFallback(t, "a byte more", f, newest)
	var other bytes.Buffer
	must.Do(t, checkpoint.EncodeTensors(&other, map[string]*tensors.Tensor{"a": tensors.FromScalar(1.0)}, nil))
	rewrite(t, newest, other.Bytes())
	requireFallback(t, "other tensors", f, newest)
	rewrite(t, newest, content)
	requireStep(t, f, 2)
}

// rewrite changes a file in place.
func rewrite(t *testing.T, file string, content []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(file, content, 0o600))
}

// After a fall-back the run resumes from the older checkpoint; the damaged one
// does not take the place of a good one and is not in the way.
func TestSavingGoesOnAfterDamage(t *testing.T) {
	path := t.TempDir()
	f := open(t, path, 2)
	for _, step := range []int{10, 20, 30} {
		save(t, f, step, filled(3, float64(step)))
	}
	rewrite(t, filepath.Join(path, "step-00000030.safetensors"), nil)
	must.Err(t, f.Save(25, checkpoint.State{Store: filled(3, 25)})) // step 25 was saved before the damage of step 30 was known
	requireStep(t, f, 20)
	saves(t, f, path, []kept{
		{25, "step-00000020.safetensors step-00000025.safetensors step-00000030.safetensors"},
		{30, "step-00000025.safetensors step-00000030.safetensors"},
		{40, "step-00000030.safetensors step-00000040.safetensors"},
	})
}

func TestCheckpointsThatMayNotBeReadAreNoDamage(t *testing.T) {
	f, newest := damaged(t)
	must.Do(t, os.Chmod(newest, 0))
	if _, err := os.ReadFile(newest); err == nil {
		t.Skip("this user may read everything")
	}
	must.GetErr(f.Restore(checkpoint.State{Store: model.NewStore()}))(t, fs.ErrPermission)
}
