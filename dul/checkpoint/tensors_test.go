package checkpoint_test

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/dul/checkpoint"
)

func TestTensorsAreReadAsTheyWereWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.safetensors")
	floats, bytes := []float32{1, -2, 3.5, 0, 5, 6}, []uint8{7, 255}
	metadata := map[string]string{"what": "a test"}
	err := checkpoint.WriteTensors(path, map[string]*tensors.Tensor{
		"floats": tensors.FromFlatDataAndDimensions(floats, 2, 3), "bytes": tensors.FromFlatDataAndDimensions(bytes, 2),
	}, metadata)
	if err != nil {
		t.Fatal(err)
	}
	named, texts, err := checkpoint.ReadTensors(path)
	if err != nil || len(named) != 2 || !maps.Equal(texts, metadata) {
		t.Fatalf("%d tensors, texts %v, error %v", len(named), texts, err)
	}
	if got := tensors.MustCopyFlatData[float32](named["floats"]); !slices.Equal(got, floats) || named["floats"].Shape().Dim(1) != 3 {
		t.Errorf("floats %v of shape %v", got, named["floats"].Shape())
	}
	if got := tensors.MustCopyFlatData[uint8](named["bytes"]); !slices.Equal(got, bytes) {
		t.Errorf("bytes %v", got)
	}
	if _, _, err := checkpoint.ReadTensors(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
