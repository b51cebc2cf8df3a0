package checkpoint_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/checkpoint"
)

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
