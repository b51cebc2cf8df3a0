//go:build !(onnx && cgo && linux && amd64)

package environment

import (
	"errors"
	"strings"
	"testing"
)

func TestOpenSaysThatONNXIsNotCompiledIn(t *testing.T) {
	for _, config := range []string{"onnx", "onnx:cpu"} {
		t.Setenv(ConfigVariable, config)
		if _, _, err := Open(); !errors.Is(err, ErrBackend) || !strings.Contains(err.Error(), "built without ONNX Runtime") {
			t.Errorf("%q: error %v", config, err)
		}
	}
}
