package checkpoint_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/environment/must"
)

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
