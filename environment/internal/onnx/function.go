//go:build onnx && cgo && linux && amd64

package onnx

import (
	"reflect"

	"github.com/gomlx/compute"
	onnxruntime "github.com/gomlx/compute-onnx"
	"github.com/gomlx/compute/shapes"
)

// A function is the main function of a program.
type function struct {
	*onnxruntime.Function
	builder *builder
	// fixed are the values that the library does not write anywhere when it is
	// asked for them: inputs and constants.
	fixed map[compute.Value]bool
	// negated are the constants -1 for those that are 1; see Div.
	negated map[compute.Value]compute.Value
	// never are the constants that are false; see Where.
	never map[compute.Value]bool
}

var _ compute.Function = (*function)(nil)

// Builder implements compute.Function.
func (f *function) Builder() compute.Builder { return f.builder }

// Parameter implements compute.Function.
func (f *function) Parameter(name string, shape shapes.Shape, spec *compute.ShardingSpec) (compute.Value, error) {
	v, err := f.Function.Parameter(name, shape, spec)
	if err != nil {
		return nil, err
	}
	f.fixed[v] = true
	return v, nil
}

// Constant implements compute.Function: it copies flat, which may be the C
// memory of a tensor that is gone when the function is compiled.
func (f *function) Constant(flat any, dims ...int) (compute.Value, error) {
	if from := reflect.ValueOf(flat); from.Kind() == reflect.Slice {
		to := reflect.MakeSlice(from.Type(), from.Len(), from.Len())
		reflect.Copy(to, from)
		flat = to.Interface()
	}
	v, err := f.Function.Constant(flat, dims...)
	if err != nil {
		return nil, err
	}
	f.fixed[v] = true
	switch one := flat.(type) {
	case []float32:
		if len(one) == 1 && one[0] == 1 {
			f.negated[v], err = f.Function.Constant([]float32{-1}, dims...)
		}
	case []bool:
		f.never[v] = len(one) == 1 && !one[0]
	case []float64:
		if len(one) == 1 && one[0] == 1 {
			f.negated[v], err = f.Function.Constant([]float64{-1}, dims...)
		}
	}
	return v, err
}

// Return implements compute.Function. It takes out what no output needs.
func (f *function) Return(outputs []compute.Value, shardings []*compute.ShardingSpec) error {
	written := make([]compute.Value, len(outputs))
	seen := map[compute.Value]bool{}
	for i, v := range outputs {
		if f.fixed[v] || seen[v] {
			var err error
			if v, err = f.Identity(v); err != nil {
				return err
			}
		}
		seen[v] = true
		written[i] = v
	}
	if err := f.Function.Return(written, shardings); err != nil {
		return err
	}
	prune(f.Function)
	return nil
}
