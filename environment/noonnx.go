//go:build !(onnx && cgo && linux && amd64)

package environment

import "github.com/gomlx/compute"

// onnxCompiledIn tells whether this program contains the ONNX Runtime backend.
const onnxCompiledIn = false

// describeONNX recognises no backend in a program without ONNX Runtime.
func describeONNX(compute.Backend) (config, device string, ok bool) { return "", "", false }
