//go:build onnx && cgo && linux && amd64

package onnx

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// Gather implements compute.Function. The wrapped backend takes one entry of
// each axis that has a start index; slices of several are gathered here entry by
// entry, where all axes are kept and the last one of the start indices counts the
// axes. Slices must lie inside of x.
func (f *function) Gather(x, start compute.Value, vectorAxis int, offsetAxes, collapsed, startAxes, sizes []int, sorted bool) (y compute.Value, err error) {
	defer rescue(&err)
	from, vectors := do(f.Shape(x)), do(f.Shape(start))
	long := slices.ContainsFunc(startAxes, func(axis int) bool { return sizes[axis] > 1 })
	if !long || len(collapsed) > 0 || vectorAxis != vectors.Rank()-1 {
		return f.Function.Gather(x, start, vectorAxis, offsetAxes, collapsed, startAxes, sizes, sorted)
	}

	// The index of every entry: [..., slice axes, vector].
	count, lead := len(startAxes), vectors.Dimensions[:vectorAxis]
	slice := make([]int, count)
	for i, axis := range startAxes {
		slice[i] = sizes[axis]
	}
	var offsets []int64
	for _, index := range indices(slice) {
		for _, i := range index {
			offsets = append(offsets, int64(i))
		}
	}
	ones := func(n int) []int { return slices.Repeat([]int{1}, n) }
	start = do(f.ConvertDType(start, dtypes.Int64))
	entries := do(f.Add(
		do(f.Reshape(start, slices.Concat(lead, ones(count), []int{count})...)),
		do(f.Constant(offsets, slices.Concat(ones(len(lead)), slice, []int{count})...))))

	// All of them are single, so that the result is [..., slice axes, other axes].
	single, place := slices.Clone(sizes), map[int]int{}
	var others []int
	for i, axis := range startAxes {
		single[axis], place[axis] = 1, len(lead)+i
	}
	for axis := range from.Rank() {
		if !slices.Contains(startAxes, axis) {
			place[axis] = len(lead) + count + len(others)
			others = append(others, place[axis])
		}
	}
	y = do(f.Function.Gather(x, entries, len(lead)+count, others, startAxes, startAxes, single, false))

	order := make([]int, len(lead)+from.Rank())
	next := 0
	for i := range order {
		if axis := slices.Index(offsetAxes, i); axis >= 0 {
			order[i] = place[axis]
		} else {
			order[i] = next
			next++
		}
	}
	return f.Transpose(y, order...)
}
