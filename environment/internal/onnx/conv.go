//go:build onnx && cgo && linux && amd64

package onnx

import (
	"reflect"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
)

// ConvGeneral implements compute.Function. It is the library's convolution, with
// what that does not know, inputs spread out and negative paddings, done to the
// input before; and products of matrices where these are better: in double
// precision, for which the library has no convolution, and where the kernel has
// fewer positions than taps, at which the library is slow. Such is the gradient
// of a convolution with respect to its kernel, where dL/dy is the kernel.
func (f *function) ConvGeneral(x, kernel compute.Value, axes compute.ConvolveAxesConfig, strides []int, paddings [][2]int, dilations, kernelDilations []int, channelGroups, batchGroups int) (y compute.Value, err error) {
	defer rescue(&err)
	in, window := do(f.Shape(x)), do(f.Shape(kernel))
	out := do(shapeinference.ConvGeneral(in, window, axes, strides, paddings, dilations, kernelDilations, channelGroups, batchGroups))
	pixels, taps, positions := dimensions(in, axes.InputSpatial), dimensions(window, axes.KernelSpatial), dimensions(out, axes.OutputSpatial)
	strides, dilations, kernelDilations = orOnes(strides, pixels), orOnes(dilations, pixels), orOnes(kernelDilations, pixels)
	paddings = append(slices.Clone(paddings), make([][2]int, len(pixels)-len(paddings))...)

	double, single := in.DType == dtypes.Float64, in.DType == dtypes.Float32
	byProducts := max(channelGroups, batchGroups) <= 1 && (double || single && size(positions) < size(taps))
	if byProducts {
		for i := range pixels {
			// No zeros beyond what the last position sees, and no more pixels
			// beyond than a convolution with that distance of taps skips.
			end := (positions[i]-1)*strides[i] + (taps[i]-1)*kernelDilations[i] - (pixels[i]-1)*dilations[i] - paddings[i][0]
			paddings[i][1] = max(end, min(0, end+kernelDilations[i]-1))
		}
	}
	spread := slices.ContainsFunc(dilations, func(d int) bool { return d > 1 })
	cut := slices.ContainsFunc(paddings, func(p [2]int) bool { return p[0] < 0 || p[1] < 0 })
	if spread || cut || byProducts && double {
		pads := make([]compute.PadAxis, in.Rank())
		for i, axis := range axes.InputSpatial {
			pads[axis] = compute.PadAxis{Start: paddings[i][0], End: paddings[i][1], Interior: dilations[i] - 1}
		}
		zeros := reflect.MakeSlice(reflect.SliceOf(in.DType.GoType()), 1, 1)
		x = do(f.Pad(x, do(f.Constant(zeros.Interface())), pads...))
		paddings, dilations = make([][2]int, len(pixels)), nil
	}
	if !byProducts {
		return f.Function.ConvGeneral(x, kernel, axes, strides, paddings, dilations, kernelDilations, channelGroups, batchGroups)
	}

	// y[b, p, o] = sum_c sum_t seen[c, (b, p), t] kernel[c, t, o]: a product for each channel c.
	x = do(f.Transpose(x, slices.Concat([]int{axes.InputChannels, axes.InputBatch}, axes.InputSpatial)...))
	var seen compute.Value
	if double {
		seen = f.patchesByCopies(x, positions, strides, taps, kernelDilations)
	} else {
		seen = f.patchesByConvolution(x, positions, strides, kernelDilations, paddings)
	}
	batch, channels, filters := in.Dimensions[axes.InputBatch], in.Dimensions[axes.InputChannels], out.Dimensions[axes.OutputChannels]
	seen = do(f.Reshape(seen, channels, batch*size(positions), size(taps)))
	kernel = do(f.Transpose(kernel, slices.Concat([]int{axes.KernelInputChannels}, axes.KernelSpatial, []int{axes.KernelOutputChannels})...))
	kernel = do(f.Reshape(kernel, channels, size(taps), filters))
	y = do(f.DotGeneral(seen, []int{2}, []int{0}, kernel, []int{1}, []int{0}, compute.DotGeneralConfig{}))
	y = do(f.Reshape(do(f.ReduceSum(y, 0)), slices.Concat([]int{batch}, positions, []int{filters})...))
	order := make([]int, out.Rank())
	order[axes.OutputBatch], order[axes.OutputChannels] = 0, out.Rank()-1
	for i, axis := range axes.OutputSpatial {
		order[axis] = 1 + i
	}
	return f.Transpose(y, order...)
}

// patchesByConvolution is what a window sees of images at each of its positions:
// [channels, batch, ...] -> [channels, batch, positions, taps]. The library moves
// pixels fastest by convolutions: here with one filter for each position, which
// takes the pixel of that position, and moves from tap to tap.
func (f *function) patchesByConvolution(x compute.Value, positions, strides, kernelDilations []int, paddings [][2]int) compute.Value {
	shape := do(f.Shape(x))
	batch, count := shape.Dimensions[1], size(positions)
	filters := make([]float32, batch*count*count)
	for i := range batch * count {
		filters[i*count+i%count] = 1
	}
	kernel := do(f.Constant(filters, slices.Concat([]int{batch * count, 1}, positions)...))
	spatial := make([]int, len(positions))
	for i := range spatial {
		spatial[i] = 2 + i
	}
	axes := compute.ConvolveAxesConfig{
		InputBatch: 0, InputChannels: 1, InputSpatial: spatial,
		KernelOutputChannels: 0, KernelInputChannels: 1, KernelSpatial: spatial,
		OutputBatch: 0, OutputChannels: 1, OutputSpatial: spatial,
	}
	return do(f.Function.ConvGeneral(x, kernel, axes, kernelDilations, paddings, nil, strides, batch, 1))
}

// patchesByCopies is the same of images with their padding, in double precision.
func (f *function) patchesByCopies(x compute.Value, positions, strides, taps, kernelDilations []int) compute.Value {
	shape := do(f.Shape(x))
	channels, batch := shape.Dimensions[0], shape.Dimensions[1]
	// pixels are count of them, at distances, from the one at index times steps on.
	pixels := func(index, steps, count, distances []int) compute.Value {
		start, limit := make([]int, shape.Rank()), slices.Clone(shape.Dimensions)
		for i := range count {
			start[2+i] = index[i] * steps[i]
			limit[2+i] = start[2+i] + (count[i]-1)*distances[i] + 1
		}
		return do(f.Slice(x, start, limit, slices.Concat([]int{1, 1}, distances)))
	}
	var parts []compute.Value
	if size(positions) < size(taps) {
		for _, p := range indices(positions) {
			part := pixels(p, strides, taps, kernelDilations)
			parts = append(parts, do(f.Reshape(part, channels, batch, 1, size(taps))))
		}
		return do(f.Concatenate(2, parts...))
	}
	for _, t := range indices(taps) {
		part := pixels(t, kernelDilations, positions, strides)
		parts = append(parts, do(f.Reshape(part, channels, batch, size(positions), 1)))
	}
	return do(f.Concatenate(3, parts...))
}

// dimensions are those of the given axes.
func dimensions(shape shapes.Shape, axes []int) []int {
	dims := make([]int, len(axes))
	for i, axis := range axes {
		dims[i] = shape.Dimensions[axis]
	}
	return dims
}

// orOnes is distances, which GoMLX leaves out where they are 1 on all axes.
func orOnes(distances, axes []int) []int {
	if len(distances) == 0 {
		return slices.Repeat([]int{1}, len(axes))
	}
	return distances
}

// size is how many entries an array of the given dimensions has.
func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// indices are those of all entries of an array, the last one running fastest.
func indices(dims []int) [][]int {
	all := make([][]int, size(dims))
	for i := range all {
		all[i] = make([]int, len(dims))
		for axis, rest := len(dims)-1, i; axis >= 0; axis-- {
			all[i][axis], rest = rest%dims[axis], rest/dims[axis]
		}
	}
	return all
}

// A failure is an error on its way from do to rescue.
type failure struct{ error }

// do is what an operation returns; an error ends the function that called
// rescue.
func do[T any](value T, err error) T {
	if err != nil {
		panic(failure{err})
	}
	return value
}

// rescue, deferred, makes the error that ended the function its result.
func rescue(err *error) {
	switch reason := recover().(type) {
	case nil:
	case failure:
		*err = reason.error
	default:
		panic(reason)
	}
}
