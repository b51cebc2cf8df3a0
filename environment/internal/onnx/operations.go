//go:build onnx && cgo && linux && amd64

package onnx

import (
	"fmt"
	"math"
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

// Where implements compute.Function: what is never selected is left out.
func (f *function) Where(condition, onTrue, onFalse compute.Value) (compute.Value, error) {
	y, err := f.Function.Where(condition, onTrue, onFalse)
	if err != nil || !f.never[condition] {
		return y, err
	}
	want, err := f.Shape(y)
	if err != nil {
		return nil, err
	}
	if got, err := f.Shape(onFalse); err != nil || !got.Equal(want) {
		return y, err
	}
	return onFalse, nil
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
		// Entries are spread with blanks after the last one too.
		if x, err = f.extend(x, fill, axis, p.Start, p.End-p.Interior); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// spread puts so many blanks after each entry of the axis.
func (f *function) spread(x, fill compute.Value, axis, blanks int) (compute.Value, error) {
	shape, err := f.Shape(x)
	if err != nil {
		return nil, err
	}
	if blanks == 0 {
		return x, nil
	}
	column := shapes.Make(shape.DType, slices.Insert(slices.Clone(shape.Dimensions), axis+1, 1)...)
	if x, err = f.Reshape(x, column.Dimensions...); err != nil {
		return nil, err
	}
	if x, err = f.extend(x, fill, axis+1, 0, blanks); err != nil {
		return nil, err
	}
	spread := slices.Clone(shape.Dimensions)
	spread[axis] *= 1 + blanks
	return f.Reshape(x, spread...)
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
