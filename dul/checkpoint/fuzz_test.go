package checkpoint_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/environment/must"
)

// Whatever checkpoint.json says, restoring ends with an error that names the checkpoint, and an empty store, or with
// the variables of the file.
func FuzzManifest(f *testing.F) {
	folder := f.TempDir()
	saves := open(f, folder, 1)
	store := filled(3, 1)
	store.SetParam("/seeds", "7")
	save(f, saves, 1, store)
	manifest := filepath.Join(folder, "step-00000001", "checkpoint.json")
	text := string(must.Get(os.ReadFile(manifest))(f))
	for _, change := range [][2]string{{"", ""}, {`"/model/w"`, `"model/w"`}, {`"/model/w"`, `"/model//w"`}, {`"string"`, `"int"`}, {`"/seeds"`, `"seeds"`}, {`"step": 1`, `"step": 2`}, {"null", "{}"}, {text, "{}"}} {
		f.Add(strings.Replace(text, change[0], change[1], 1))
	}
	f.Fuzz(func(t *testing.T, text string) {
		must.Do(t, os.WriteFile(manifest, []byte(text), 0o600))
		must.Do(t, os.WriteFile(manifest+".sha256", fmt.Appendf(nil, "%x  checkpoint.json\n", sha256.Sum256([]byte(text))), 0o600))
		store := model.NewStore()
		found, err := saves.Restore(checkpoint.State{Store: store})
		if err != nil {
			if !strings.Contains(err.Error(), folder) || store.NumVariables() > 0 {
				t.Errorf("%d variables, error %v", store.NumVariables(), err)
			}
			return
		}
		for v := range store.IterVariables() {
			if v.Path() != "/model/w" && v.Path() != "/model/step" {
				t.Errorf("step %d has a variable %q", found.Step, v.Path())
			}
		}
	})
}

// Whatever the names in a file, setting variables ends with an error and an empty store, or with variables of these names.
func FuzzSetTensors(f *testing.F) {
	for _, name := range []string{"model/w", "", "/", "//", "w", "/model/w", "model//w", "a/", "\xff"} {
		f.Add(name, "model/b")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		store := model.NewStore()
		named := map[string]*tensors.Tensor{one: tensors.FromScalar(1.0), two: tensors.FromScalar(2.0)}
		if err := checkpoint.SetTensors(store, named); err != nil {
			if store.NumVariables() > 0 {
				t.Errorf("%d variables, error %v", store.NumVariables(), err)
			}
			return
		}
		for name := range named {
			if store.GetVariable("/"+name) == nil {
				t.Errorf("no variable %q", "/"+name)
			}
		}
	})
}
