package conv_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest/fixtures"
)

// BenchmarkConvolve times one convolution of a ResNet-14 with both gradients, at
// batch size 128, for each kind that occurs in the network.
func BenchmarkConvolve(b *testing.B) {
	for _, c := range []struct{ channels, filters, size, stride int }{
		{3, 16, 32, 1}, {16, 16, 32, 1}, {16, 32, 32, 2}, {32, 32, 16, 1}, {32, 64, 16, 2}, {64, 64, 8, 1},
	} {
		w := conv.Same(3, c.stride)
		b.Run(fmt.Sprintf("%d to %d channels, %d pixels, stride %d", c.channels, c.filters, c.size, c.stride), func(b *testing.B) {
			tensor := func(dims ...int) *tensors.Tensor { return tensors.FromShape(shapes.Make(dtypes.Float32, dims...)) }
			x, kernel := tensor(c.channels, 128, c.size, c.size), tensor(c.filters, c.channels*9)
			high, wide := w.Out(c.size, c.size)
			dy := tensor(c.filters, 128, high, wide)
			exec, err := graph.NewExec(fixtures.Backend(b), func(x, kernel, dy *graph.Node) []*graph.Node {
				y := conv.Convolve(x, kernel, w)
				return append(graph.Gradient(graph.ReduceAllSum(graph.Mul(y, dy)), x, kernel), y)
			})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				outputs, err := exec.Call(x, kernel, dy)
				if err != nil {
					b.Fatal(err)
				}
				for _, out := range outputs {
					if err := out.FinalizeAll(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
