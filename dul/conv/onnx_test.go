//go:build onnx && cgo && linux && amd64

package conv_test

import (
	"os"
	"os/exec"
	"testing"

	"densityuncertainty/environment"
)

// ONNX Runtime composes most of what a convolution and its gradients need of
// other operations. Its backend is opened in a process of its own, as the tests
// of a program share one.
func TestConvolveOnONNXRuntime(t *testing.T) {
	t.Setenv(environment.ConfigVariable, "onnx")
	if _, _, err := environment.Open(); err != nil {
		t.Skipf("not tested: %v", err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestConvolve$")
	if output, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, output)
	}
}
