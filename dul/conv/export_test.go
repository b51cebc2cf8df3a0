package conv

import (
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/params"
)

// ByProducts and Native are the two forms of Convolve, for the tests that compare them.
var ByProducts = byProducts

func Native(x, kernel *graph.Node, w Window) *graph.Node {
	if params.FactsOf(x.Graph()).BFloat16 {
		return native(x, kernel, w, inBFloat16)
	}
	return native(x, kernel, w, unchanged)
}

// NativeInFullPrecision is that form of InFullPrecision.
func NativeInFullPrecision(x, kernel *graph.Node, w Window) *graph.Node {
	return native(x, kernel, w, unchanged)
}

// TF32 convolves as a GPU that keeps 11 binary digits of each factor, which InFullPrecision writes in halves.
func TF32(x, kernel *graph.Node, w Window, full bool) *graph.Node {
	return native(x, kernel, w, func(a, b *graph.Node, i, j int) (_, _ *graph.Node) {
		if full {
			a, b = inHalves(a, b, i, j)
		}
		a, _ = halves(a)
		b, _ = halves(b)
		return a, b
	})
}
