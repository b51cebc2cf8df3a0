// Package conv holds what the image layers of all methods are made of: one
// convolution, operations by channel, and batch normalisation, written once for
// all backends.
//
// # Shapes
//
// Images are [channels, batch, height, width]. The channel comes first, so that
// an image batch is a matrix with one row for each channel (Channels) and a
// convolution is a product of matrices: the kernel, [filters, channels*size*size],
// times the patches of the image, [channels*size*size, batch*height*width]. An
// entry for each channel is a column, [channels, 1].
package conv

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/ops"
)

// A Window is the geometry of a convolution: a square of Size x Size pixels
// that moves by Stride over an image with Padding zeros on each side.
type Window struct {
	Size, Stride, Padding int
}

// Same is the window of odd size that moves by stride and, for stride 1, gives
// an image of the same size: its padding is size/2.
func Same(size, stride int) Window { return Window{Size: size, Stride: stride, Padding: size / 2} }

// Out is the number of positions of the window along an axis of n pixels.
func (w Window) Out(n int) int { return (n+2*w.Padding-w.Size)/w.Stride + 1 }

// check panics, as GoMLX's graph-building functions do, where the window does not fit x.
func (w Window) check(x *graph.Node) {
	if x.Rank() != 4 {
		panic(fmt.Errorf("conv: an image of shape %s; want [channels, batch, height, width]", x.Shape()))
	}
	h, v := x.Shape().Dim(2), x.Shape().Dim(3)
	if w.Size < 1 || w.Stride < 1 || w.Padding < 0 || min(h, v)+2*w.Padding < w.Size {
		panic(fmt.Errorf("conv: window of size %d, stride %d and padding %d over an image of %d x %d", w.Size, w.Stride, w.Padding, h, v))
	}
}

// Convolve returns the convolution (without kernel flip, as in all networks)
//
//	y[f, n, i, j] = sum_{c, u, v} kernel[f, (c, u, v)] x[c, n, i*Stride + u - Padding, j*Stride + v - Padding]
//
// where x is 0 outside its borders: x is [channels, batch, height, width], the
// kernel [filters, channels*Size*Size] with the column running fastest, the
// result [filters, batch, Out(height), Out(width)].
//
// It is GoMLX's ConvGeneral where that is fast, and a product of matrices with a
// gradient of our own on the pure Go backend, whose ConvGeneral takes 10 to 30
// times as long.
func Convolve(x, kernel *graph.Node, w Window) *graph.Node {
	w.check(x)
	if want := x.Shape().Dim(0) * w.Size * w.Size; kernel.Rank() != 2 || kernel.Shape().Dim(1) != want {
		panic(fmt.Errorf("conv: kernel of shape %s; want [filters, %d]", kernel.Shape(), want))
	}
	if x.Graph().Backend().String() == goBackend {
		return byProducts(x, kernel, w)
	}
	return native(x, kernel, w)
}

// goBackend is how the pure Go backend calls itself.
const goBackend = "go"

// native is the backend's own convolution. Its gradients are convolutions too:
// dL/dx of dL/dy, spread out by the stride, with the kernel turned by 180
// degrees; dL/dkernel of x with dL/dy as a kernel, spread out by the stride, and
// the batch in the place of the channels. (GoMLX's own gradient is wrong for
// windows of even size and refuses large paddings.)
func native(x, kernel *graph.Node, w Window) *graph.Node {
	height, width := x.Shape().Dim(2), x.Shape().Dim(3)
	square := graph.Reshape(kernel, kernel.Shape().Dim(0), x.Shape().Dim(0), w.Size, w.Size)
	image := graph.ConvolveAxesConfig{ // [channels, batch, ..] and [filters, channels, ..] -> [filters, batch, ..]
		InputChannels: 0, InputBatch: 1, InputSpatial: []int{2, 3},
		KernelOutputChannels: 0, KernelInputChannels: 1, KernelSpatial: []int{2, 3},
		OutputChannels: 0, OutputBatch: 1, OutputSpatial: []int{2, 3},
	}
	back := image // [filters, batch, ..] and [filters, channels, ..] -> [channels, batch, ..]
	back.KernelOutputChannels, back.KernelInputChannels = 1, 0
	across := image // [channels, batch, ..] and [filters, batch, ..] -> [filters, channels, ..]
	across.InputChannels, across.InputBatch = 1, 0
	one, stride := []int{1, 1}, []int{w.Stride, w.Stride}
	paddings := func(before int, after func(n int) int) [][2]int {
		return [][2]int{{before, after(height)}, {before, after(width)}}
	}
	return ops.WithGradient([]*graph.Node{x, kernel},
		func(in []*graph.Node) *graph.Node {
			padding := paddings(w.Padding, func(int) int { return w.Padding })
			y := graph.StopGradient(graph.ConvGeneral(x, square, image, stride, padding, one, one, 1, 1))
			return tied(y, in)
		},
		func(_, dy *graph.Node) []*graph.Node {
			turned := graph.Reverse(square, 2, 3)
			dx := graph.ConvGeneral(dy, turned, back, one, paddings(w.lead(), w.tail), stride, one, 1, 1)
			seen := func(n int) int { return w.Padding - w.leftOver(n) }
			dk := graph.ConvGeneral(x, dy, across, one, paddings(w.Padding, seen), one, stride, 1, 1)
			return []*graph.Node{dx, graph.Reshape(dk, kernel.Shape().Dimensions...)}
		})
}

// tied is y, made to depend on the inputs for the backward sweep, which else
// would not reach them, as it stops at y. What is selected is always y: a
// compiler sees that and leaves the selection out.
func tied(y *graph.Node, inputs []*graph.Node) *graph.Node {
	g := y.Graph()
	for _, input := range inputs {
		first := make([]graph.SliceAxisSpec, input.Rank())
		for i := range first {
			first[i] = graph.AxisRange(0, 1)
		}
		entry := graph.Reshape(graph.Slice(input, first...))
		y = graph.Where(graph.Const(g, false), graph.BroadcastToShape(entry, y.Shape()), y)
	}
	return y
}

// byProducts is the same convolution as matrix products. With P(x) the patches
// of x it is y = K P(x), so that dL/dK = dL/dy P(x)^T; dL/dx is a convolution as
// in native.
func byProducts(x, kernel *graph.Node, w Window) *graph.Node {
	channels, height, width := x.Shape().Dim(0), x.Shape().Dim(2), x.Shape().Dim(3)
	var columns *graph.Node
	var g grid
	return ops.WithGradient([]*graph.Node{x, kernel},
		func(in []*graph.Node) *graph.Node {
			columns, g = patches(in[0], w.Size, w.Stride, sides{w.Padding, w.Padding}, sides{w.Padding, w.Padding})
			return g.image(product(in[1], columns))
		},
		func(_, dy *graph.Node) []*graph.Node {
			spread := dilate(dilate(dy, 2, w.Stride), 3, w.Stride)
			seen, back := patches(spread, w.Size, 1, sides{w.lead(), w.tail(height)}, sides{w.lead(), w.tail(width)})
			return []*graph.Node{
				back.image(product(turned(kernel, channels, w.Size), seen)),
				graph.DotGeneral(g.flat(dy), []int{1}, nil, columns, []int{1}, nil),
			}
		})
}

// lead is how many zeros before the gradient of the output its convolution with
// the turned kernel begins.
func (w Window) lead() int { return w.Size - 1 - w.Padding }

// tail is the same at the far border, of an axis of n pixels.
func (w Window) tail(n int) int { return w.lead() + w.leftOver(n) }

// leftOver is how many of n pixels, padding included, the last position leaves out.
func (w Window) leftOver(n int) int { return (n + 2*w.Padding - w.Size) % w.Stride }

// product is the plain matrix product.
func product(a, b *graph.Node) *graph.Node {
	return graph.DotGeneral(a, []int{1}, nil, b, []int{0}, nil)
}

// turned exchanges filters and channels of the kernel and turns each window by
// 180 degrees: [filters, channels*size*size] -> [channels, filters*size*size].
func turned(kernel *graph.Node, channels, size int) *graph.Node {
	filters := kernel.Shape().Dim(0)
	k := graph.Reshape(kernel, filters, channels, size*size)
	k = graph.Reverse(graph.Transpose(k, 0, 1), 2)
	return graph.Reshape(k, channels, filters*size*size)
}
