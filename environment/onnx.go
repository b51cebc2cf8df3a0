//go:build onnx && cgo && linux && amd64

package environment

import (
	"github.com/gomlx/compute"

	"densityuncertainty/environment/internal/onnx"
)

// onnxCompiledIn tells whether this program contains the ONNX Runtime backend.
const onnxCompiledIn = true

// describeONNX returns the configuration and the device of an ONNX Runtime
// backend; ok is false for any other backend.
func describeONNX(backend compute.Backend) (config, device string, ok bool) {
	if _, ok := backend.(*onnx.Backend); !ok {
		return "", "", false
	}
	return onnx.Name + ":cpu", processor(), true
}
