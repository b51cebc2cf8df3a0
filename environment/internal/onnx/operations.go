//go:build onnx && cgo && linux && amd64

package onnx

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// Div implements compute.Function: 1/x as -(-1/x), which is the same number. The
// library wants to turn y (1/x) into y/x, and fails on the graph that it gets
// where what made y was of no effect and has been taken out.
func (f *function) Div(x, y compute.Value) (compute.Value, error) {
	minusOne, found := f.negated[x]
	if !found {
		return f.Function.Div(x, y)
	}
	quotient, err := f.Function.Div(minusOne, y)
	if err != nil {
		return nil, err
	}
	return f.Neg(quotient)
}

// Cos implements compute.Function: in double precision, for which the library
// has none, as sin(x + pi/2).
func (f *function) Cos(x compute.Value) (compute.Value, error) {
	shape, err := f.Shape(x)
	if err != nil || shape.DType != dtypes.Float64 {
		return f.Function.Cos(x)
	}
	quarter, err := f.Constant([]float64{math.Pi / 2})
	if err != nil {
		return nil, err
	}
	if x, err = f.Add(x, quarter); err != nil {
		return nil, err
	}
	return f.Sin(x)
}

// ReduceWindow implements compute.Function. It refuses the sums that the
// wrapped backend computes as means times the size of the window: those whose
// windows reach over a border, are dilated, or lie in fewer than two dimensions.
func (f *function) ReduceWindow(x compute.Value, reduction compute.ReduceOpType, window, strides, dilations, windowDilations []int, paddings [][2]int) (compute.Value, error) {
	if reduction == compute.ReduceOpSum {
		padded := slices.ContainsFunc(paddings, func(p [2]int) bool { return p != [2]int{} })
		dilated := slices.ContainsFunc(windowDilations, func(d int) bool { return d > 1 })
		if padded || dilated || len(window) < 3 {
			return nil, fmt.Errorf("ReduceWindow: a sum over windows %v with padding %v and dilation %v on ONNX Runtime: %w", window, paddings, windowDilations, compute.ErrNotImplemented)
		}
	}
	return f.Function.ReduceWindow(x, reduction, window, strides, dilations, windowDilations, paddings)
}

// Pad implements compute.Function, which the wrapped backend does not have, by
// concatenation.
func (f *function) Pad(x, fill compute.Value, axes ...compute.PadAxis) (compute.Value, error) {
	for axis, p := range axes {
		var err error
		if x, err = f.spread(x, fill, axis, p.Interior); err != nil {
			return nil, err
		}
		if x, err = f.extend(x, fill, axis, p.Start, p.End); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// spread puts between entries of the axis.
func (f *function) spread(x, fill compute.Value, axis, between int) (compute.Value, error) {
	shape, err := f.Shape(x)
	if err != nil {
		return nil, err
	}
	n := shape.Dimensions[axis]
	if between == 0 || n < 2 {
		return x, nil
	}
	// Each entry, followed by its blanks, then all but the last ones.
	column := shapes.Make(shape.DType, slices.Insert(slices.Clone(shape.Dimensions), axis+1, 1)...)
	if x, err = f.Reshape(x, column.Dimensions...); err != nil {
		return nil, err
	}
	if x, err = f.extend(x, fill, axis+1, 0, between); err != nil {
		return nil, err
	}
	spread := slices.Clone(shape.Dimensions)
	spread[axis] = n * (1 + between)
	if x, err = f.Reshape(x, spread...); err != nil {
		return nil, err
	}
	return f.extend(x, fill, axis, 0, -between)
}

// extend puts entries before and after those of the axis, or takes some away
// where their number is negative.
func (f *function) extend(x, fill compute.Value, axis, before, after int) (compute.Value, error) {
	shape, err := f.Shape(x)
	if err != nil {
		return nil, err
	}
	blank := func(n int) (compute.Value, error) {
		part := shape.Clone()
		part.Dimensions[axis] = n
		return f.BroadcastInDim(fill, part, nil)
	}
	parts := []compute.Value{x}
	if before > 0 {
		b, err := blank(before)
		if err != nil {
			return nil, err
		}
		parts = slices.Insert(parts, 0, b)
	}
	if after > 0 {
		b, err := blank(after)
		if err != nil {
			return nil, err
		}
		parts = append(parts, b)
	}
	if len(parts) > 1 {
		if x, err = f.Concatenate(axis, parts...); err != nil {
			return nil, err
		}
	}
	if before >= 0 && after >= 0 {
		return x, nil
	}
	start, limit := make([]int, shape.Rank()), slices.Clone(shape.Dimensions)
	start[axis] = max(0, -before)
	limit[axis] += max(0, before) + after
	return f.Slice(x, start, limit, slices.Repeat([]int{1}, shape.Rank()))
}

// ConvGeneral implements compute.Function: with dilated inputs, which the
// gradient of a strided convolution has, and with negative paddings, neither of
// which the library knows.
func (f *function) ConvGeneral(x, kernel compute.Value, axes compute.ConvolveAxesConfig, strides []int, paddings [][2]int, dilations, kernelDilations []int, channelGroups, batchGroups int) (compute.Value, error) {
	dilated := slices.ContainsFunc(dilations, func(d int) bool { return d > 1 })
	cut := slices.ContainsFunc(paddings, func(p [2]int) bool { return p[0] < 0 || p[1] < 0 })
	if dilated || cut {
		shape, err := f.Shape(x)
		if err != nil {
			return nil, err
		}
		pads := make([]compute.PadAxis, shape.Rank())
		for i, axis := range axes.InputSpatial {
			if dilated {
				pads[axis].Interior = dilations[i] - 1
			}
			if len(paddings) > 0 {
				pads[axis].Start, pads[axis].End = paddings[i][0], paddings[i][1]
			}
		}
		zeros := reflect.MakeSlice(reflect.SliceOf(shape.DType.GoType()), 1, 1)
		zero, err := f.Constant(zeros.Interface())
		if err != nil {
			return nil, err
		}
		if x, err = f.Pad(x, zero, pads...); err != nil {
			return nil, err
		}
		paddings, dilations = nil, nil
	}
	return f.Function.ConvGeneral(x, kernel, axes, strides, paddings, dilations, kernelDilations, channelGroups, batchGroups)
}
