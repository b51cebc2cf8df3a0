//go:build onnx && cgo && linux && amd64

package onnx

import (
	"fmt"
	"os"
	"reflect"

	"github.com/gomlx/compute"
	onnxruntime "github.com/gomlx/compute-onnx"
	"github.com/gomlx/compute/shapes"
)

// Name is how configurations call the backend.
const Name = "onnx"

func init() {
	// These take the places of the unsafe ones, whose package is initialised first.
	compute.Register(Name, New)
	compute.Register(onnxruntime.BackendName, New)
}

// Backend is ONNX Runtime on the processor.
type Backend struct {
	*onnxruntime.Backend
}

var _ compute.Backend = (*Backend)(nil)

// New opens the backend, on the processor. The only options are "" and "cpu".
func New(options string) (compute.Backend, error) {
	if options != "" && options != "cpu" {
		return nil, fmt.Errorf("ONNX Runtime takes no option %q: it runs on the processor, as %q or %q", options, Name, Name+":cpu")
	}
	library, err := Library()
	if err != nil {
		return nil, err
	}
	// The only way to have the backend take this library, and download none.
	if err := os.Setenv(LibraryVariable, library); err != nil {
		return nil, fmt.Errorf("naming the library of ONNX Runtime: %w", err)
	}
	// Of what the library would log only errors are of use here.
	inner, err := onnxruntime.New("cpu,log=0")
	if err != nil {
		return nil, fmt.Errorf("ONNX Runtime %s as %s does not start: %w", Version, library, err)
	}
	return &Backend{inner.(*onnxruntime.Backend)}, nil
}

// Builder implements compute.Backend.
func (b *Backend) Builder(name string) compute.Builder {
	inner := onnxruntime.NewBuilder(name, b.Backend)
	builder := &builder{Builder: inner, backend: b}
	builder.main = &function{
		Function: inner.Main().(*onnxruntime.Function),
		builder:  builder,
		fixed:    map[compute.Value]bool{},
		negated:  map[compute.Value]compute.Value{},
		never:    map[compute.Value]bool{},
	}
	return builder
}

// BufferFromFlatData implements compute.DataInterface: it copies flat.
func (b *Backend) BufferFromFlatData(device compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	buffer, data, err := b.NewSharedBuffer(device, shape)
	if err != nil {
		return nil, err
	}
	if shape.Size() == 0 {
		return buffer, nil
	}
	from, to := reflect.ValueOf(flat), reflect.ValueOf(data)
	if !from.IsValid() || from.Type() != to.Type() || from.Len() != to.Len() {
		return nil, fmt.Errorf("a buffer of shape %s was asked for, from values of type %T: want %d of type %s", shape, flat, to.Len(), to.Type().Elem())
	}
	reflect.Copy(to, from)
	return buffer, nil
}

// NewSharedBuffer implements compute.DataInterface. The values are C memory,
// not to be used after the buffer has been finalized or dropped.
func (b *Backend) NewSharedBuffer(device compute.DeviceNum, shape shapes.Shape) (compute.Buffer, any, error) {
	inner, flat, err := b.Backend.NewSharedBuffer(device, shape)
	if err != nil {
		return nil, nil, fmt.Errorf("a buffer of shape %s for ONNX Runtime: %w", shape, err)
	}
	return newBuffer(b, inner, shape, nil), flat, nil
}
