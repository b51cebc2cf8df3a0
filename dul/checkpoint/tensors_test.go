package checkpoint_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/environment/must"
)

func TestTensorsAreReadAsTheyWereWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.safetensors")
	floats, small := []float32{1, -2, 3.5, 0, 5, 6}, []uint8{7, 255}
	metadata := map[string]string{"what": "a test"}
	err := checkpoint.WriteTensors(path, map[string]*tensors.Tensor{
		"floats": tensors.FromFlatDataAndDimensions(floats, 2, 3), "bytes": tensors.FromFlatDataAndDimensions(small, 2),
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
	if got := tensors.MustCopyFlatData[uint8](named["bytes"]); !slices.Equal(got, small) {
		t.Errorf("bytes %v", got)
	}
	if _, _, err := checkpoint.ReadTensors(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A changed bit anywhere in a file is noticed: in numbers, names, shapes and texts. Only the name of the checksum
// itself can become another text; then all else is what was written.
func TestDamageOfAFileIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.safetensors")
	want := map[string]*tensors.Tensor{"b": tensors.FromFlatDataAndDimensions([]float32{1, -2, 3.5}, 3), "a": tensors.FromScalar(7.5)}
	texts := map[string]string{"what": "a test"}
	must.Do(t, checkpoint.WriteTensors(path, want, texts))
	content := must.Get(os.ReadFile(path))(t)
	_, _, err := checkpoint.ParseTensors(content)
	must.Do(t, err)
	key := bytes.Index(content, []byte("content_sha256"))
	for i := range content {
		for bit := range 8 {
			content[i] ^= 1 << bit
			named, got, err := checkpoint.ParseTensors(content)
			content[i] ^= 1 << bit
			inKey := key <= i && i < key+len("content_sha256")
			if err == nil && (!inKey || len(named) != 2 || !named["a"].Equal(want["a"]) || !named["b"].Equal(want["b"]) || got["what"] != "a test" || len(got) != 2) {
				t.Errorf("bit %d of byte %d: %v, texts %v", bit, i, named, got)
			}
		}
	}
	reserved := checkpoint.WriteTensors(path, want, map[string]string{"content_sha256": "mine"})
	if reserved == nil || !strings.Contains(reserved.Error(), `the text "content_sha256" is reserved`) {
		t.Errorf("the name of the checksum: error %v", reserved)
	}
	_, got := must.Get2(checkpoint.ReadTensors(path))(t)
	if !maps.Equal(got, texts) {
		t.Errorf("texts %v", got)
	}
}
