package checkpoint_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/checkpoint"
)

// large is a store of 150 MB: a residual network's parameters and as many
// optimizer slots, in 300 variables.
func large(b *testing.B) (store *model.Store, size int64) {
	b.Helper()
	store = model.NewStore()
	for i := range 300 {
		store.VariableWithValue(fmt.Sprintf("/model/w%03d", i), tensors.FromShape(shapes.Make(dtypes.Float32, 125, 1000)))
	}
	return store, store.ByteSize()
}

func BenchmarkSave(b *testing.B) {
	store, size := large(b)
	f := open(b, b.TempDir(), 2)
	b.SetBytes(size)
	for step := 0; b.Loop(); step++ {
		save(b, f, step, store)
	}
}

func BenchmarkRestore(b *testing.B) {
	store, size := large(b)
	f := open(b, b.TempDir(), 1)
	save(b, f, 1, store)
	b.SetBytes(size)
	for b.Loop() {
		if _, err := f.Restore(checkpoint.State{Store: store}); err != nil {
			b.Fatal(err)
		}
	}
}
