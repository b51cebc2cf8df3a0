package conv

import "github.com/gomlx/gomlx/core/graph"

// ByProducts and Native are the two forms of Convolve, for the tests that compare them.
var ByProducts = byProducts

func Native(x, kernel *graph.Node, w Window) *graph.Node {
	return native(x, kernel, w, usesBFloat16(x.Graph()))
}

// NativeInFullPrecision is that form of InFullPrecision.
func NativeInFullPrecision(x, kernel *graph.Node, w Window) *graph.Node {
	return native(x, kernel, w, false)
}
