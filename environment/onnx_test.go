//go:build onnx && cgo && linux && amd64

package environment

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/environment/internal/onnx"
)

func TestOpenONNX(t *testing.T) {
	if _, err := onnx.Library(); err != nil {
		t.Skipf("not tested: %v", err)
	}
	for _, config := range []string{"onnx", "onnx:cpu", "onnxruntime"} {
		t.Setenv(ConfigVariable, config)
		backend, line, err := Open()
		if err != nil {
			t.Fatal(err)
		}
		if got := Describe(backend).Backend; got != "onnx:cpu" {
			t.Errorf("%q is described as %q", config, got)
		}
		if !strings.HasPrefix(line, "backend onnx:cpu (asked for by "+ConfigVariable+"), device: "+processor()) {
			t.Errorf("%q: line %q", config, line)
		}
		square := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node { return graph.Mul(x, x) })
		if got := square.MustCall1(float32(3)).Value(); got != float32(9) {
			t.Errorf("3*3 = %v on %s", got, line)
		}
	}
}

func TestOpenONNXFailsLoudly(t *testing.T) {
	t.Setenv(onnx.LibraryVariable, filepath.Join(t.TempDir(), "none.so"))
	for _, c := range []struct {
		config string
		want   string
	}{
		{"onnx", "./environment/setup --onnx"},
		{"onnx:cpu", onnx.LibraryVariable},
		{"onnx:cuda", `"cuda"`},
	} {
		t.Run(c.config, func(t *testing.T) {
			t.Setenv(ConfigVariable, c.config)
			if backend, _, err := Open(); !errors.Is(err, ErrBackend) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: backend %v, error %v; want one with %q", c.config, backend, err, c.want)
			}
		})
	}
}

// ONNX Runtime must be asked for.
func TestOpenDoesNotChooseONNX(t *testing.T) {
	t.Setenv(ConfigVariable, "")
	backend, line, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, chosen := backend.(*onnx.Backend); chosen {
		t.Errorf("chosen unasked: %s", line)
	}
}
