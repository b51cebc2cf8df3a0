// Package conv has convolutions, operations by channel and batch normalisation, for images [channels, batch, height,
// width]. A convolution is the product of the kernel, [filters, channels*size*size], and the patches,
// [channels*size*size, batch*height*width]. XLA is faster with channels last: there each function transposes its images
// and its result, which cancels between two functions. For your own entrywise operations use [Entrywise], which
// transposes too.
package conv

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

// A Window is the geometry of a convolution: a square of Size x Size pixels that moves by Stride along both axes, with
// Padding zeros on each side.
type Window struct{ Size, Stride, Padding int }

// Same returns the window of a size with padding size/2. If size is odd and stride 1, the result has the size of the
// image.
func Same(size, stride int) Window { return Window{Size: size, Stride: stride, Padding: size / 2} }

// Pixels returns the number of pixels in the window, Size^2.
func (w Window) Pixels() int { return w.Size * w.Size }

// Out returns the numbers of positions of the window along the height and the width of an image. It panics if the
// window does not fit.
func (w Window) Out(height, width int) (high, wide int) { return w.out(height), w.out(width) }

// out is the number of positions along an axis of n pixels. It panics if the window does not fit.
func (w Window) out(n int) int {
	if w.Size < 1 || w.Stride < 1 || w.Padding < 0 || n+2*w.Padding < w.Size {
		panic(fmt.Errorf("conv: window of size %d, stride %d and padding %d over an axis of %d pixels", w.Size, w.Stride, w.Padding, n))
	}
	return (n+2*w.Padding-w.Size)/w.Stride + 1
}

// Convolve returns the convolution, without flipping the kernel as in all networks,
//
//	y[f, n, i, j] = sum_{c, u, v} kernel[f, (c, u, v)] x[c, n, i*Stride + u - Padding, j*Stride + v - Padding]
//
// where x is 0 outside its borders. x is [channels, batch, height, width], the kernel [filters, channels*Pixels()] with
// v running fastest, and the result [filters, batch, high, wide] with the numbers of Out. It panics on other shapes, or
// if the window does not fit.
//
// The pure Go backend computes it as a product of matrices, because GoMLX's ConvGeneral takes 10 to 30 times as long
// there.
func Convolve(x, kernel *graph.Node, w Window) *graph.Node {
	if params.FactsOf(x.Graph()).BFloat16 {
		return convolved(x, kernel, w, inBFloat16)
	}
	return convolved(x, kernel, w, unchanged)
}

// InFullPrecision is Convolve with full precision, also with params.Facts.BFloat16 and on GPUs, which keep only 11 binary digits
// of a float32 (TF32). Use it for sums that nearly cancel.
func InFullPrecision(x, kernel *graph.Node, w Window) *graph.Node {
	if ops.OnCUDA(x) {
		return convolved(x, kernel, w, inHalves)
	}
	return convolved(x, kernel, w, unchanged)
}

// convolved is Convolve in the given precision.
func convolved(x, kernel *graph.Node, w Window, in precision) *graph.Node {
	if x.Rank() != 4 {
		panic(fmt.Errorf("conv: an image of shape %s; want [channels, batch, height, width]", x.Shape()))
	}
	w.Out(x.Shape().Dim(2), x.Shape().Dim(3)) // which panics if the window does not fit
	if want := x.Shape().Dim(0) * w.Pixels(); kernel.Rank() != 2 || kernel.Shape().Dim(1) != want {
		panic(fmt.Errorf("conv: kernel of shape %s; want [filters, %d]", kernel.Shape(), want))
	}
	if ops.OnGo(x) {
		return byProducts(x, kernel, w)
	}
	return native(x, kernel, w, in)
}

// A precision is what becomes of the factors a and b of a convolution, which sums their
// products over axis i of a and axis j of b.
type precision func(a, b *graph.Node, i, j int) (_, _ *graph.Node)

func unchanged(a, b *graph.Node, _, _ int) (_, _ *graph.Node) { return a, b }

func inBFloat16(a, b *graph.Node, _, _ int) (_, _ *graph.Node) {
	return graph.ConvertDType(a, dtypes.BFloat16), graph.ConvertDType(b, dtypes.BFloat16)
}

// inHalves writes float32 factors as sums of a number of 11 binary digits, which TF32
// keeps, and a remainder of 12, and their product without that of the remainders, 2^-24
// of it, as one sum over three times the axis.
func inHalves(a, b *graph.Node, i, j int) (_, _ *graph.Node) {
	if a.DType() != dtypes.Float32 {
		return a, b
	}
	high, low := halves(a)
	first, second := halves(b)
	return graph.Concatenate([]*graph.Node{high, low, high}, i), graph.Concatenate([]*graph.Node{first, first, second}, j)
}

// halves are x to 11 binary digits, rounded to nearest, and the rest.
func halves(x *graph.Node) (high, low *graph.Node) {
	bits := graph.AddScalar(graph.Bitcast(x, dtypes.Uint32), 1<<12)
	high = graph.Bitcast(graph.BitwiseAnd(bits, graph.Const(x.Graph(), ^uint32(1<<13-1))), x.DType())
	return high, graph.Sub(x, high)
}

// native is the backend's own convolution. Its gradients are convolutions too:
// dL/dx of dL/dy, spread out by the stride, with the kernel turned by 180
// degrees; dL/dkernel of x with dL/dy as a kernel, spread out by the stride, and
// the batch in the place of the channels. (GoMLX's own gradient is wrong for
// windows of even size and refuses large paddings.)
func native(x, kernel *graph.Node, w Window, in precision) *graph.Node {
	sizes := [2]int{x.Shape().Dim(2), x.Shape().Dim(3)}
	// [height, width, channels, filters]
	square := graph.TransposeAllAxes(graph.Reshape(kernel, kernel.Shape().Dim(0), x.Shape().Dim(0), w.Size, w.Size), 2, 3, 1, 0)
	image := graph.ConvolveAxesConfig{ // [batch, .., channels] and [.., channels, filters] -> [batch, .., filters]
		InputChannels: 3, InputBatch: 0, InputSpatial: []int{1, 2},
		KernelOutputChannels: 3, KernelInputChannels: 2, KernelSpatial: []int{0, 1},
		OutputChannels: 3, OutputBatch: 0, OutputSpatial: []int{1, 2},
	}
	back := image // [batch, .., filters] and [.., channels, filters] -> [batch, .., channels]
	back.KernelOutputChannels, back.KernelInputChannels = 2, 3
	across := image // [batch, .., channels] and [batch, .., filters] -> [.., channels, filters]
	across.InputChannels, across.InputBatch = 0, 3
	across.KernelInputChannels, across.KernelSpatial, across.KernelOutputChannels = 0, []int{1, 2}, 3
	across.OutputSpatial, across.OutputBatch, across.OutputChannels = []int{0, 1}, 2, 3
	one, stride := []int{1, 1}, []int{w.Stride, w.Stride}
	// paddings are those before and after each axis, as functions of the pixels beyond the last position.
	paddings := func(of func(leftOver int) [2]int) (all [][2]int) {
		for _, size := range sizes {
			all = append(all, of((size+2*w.Padding-w.Size)%w.Stride))
		}
		return all
	}
	// convolve is ConvGeneral with b reversed along the axes turned; what it gives has the type of x. Compilers see the
	// gradient of a convolution only if nothing else comes between the turn and it.
	convolve := func(a, b *graph.Node, axes graph.ConvolveAxesConfig, strides []int, paddings [][2]int, spreadA, spreadB []int, turned ...int) *graph.Node {
		a, b = in(a, b, axes.InputChannels, axes.KernelInputChannels)
		if len(turned) > 0 {
			b = graph.Reverse(b, turned...)
		}
		return graph.ConvertDType(graph.ConvGeneral(a, b, axes, strides, paddings, spreadA, spreadB, 1, 1), x.DType())
	}
	return ops.WithGradient([]*graph.Node{x, kernel},
		func(in []*graph.Node) *graph.Node {
			padding := paddings(func(int) [2]int { return [2]int{w.Padding, w.Padding} })
			y := channelsFirst(convolve(channelsLast(in[0]), square, image, stride, padding, one, one))
			return ops.Tied(graph.StopGradient(y), in)
		},
		func(_, dy *graph.Node) []*graph.Node {
			lead := paddings(func(leftOver int) [2]int { return [2]int{w.Size - 1 - w.Padding, w.Size - 1 - w.Padding + leftOver} })
			within := paddings(func(leftOver int) [2]int { return [2]int{w.Padding, w.Padding - leftOver} })
			last := channelsLast(dy)
			dx := channelsFirst(convolve(last, square, back, one, lead, stride, one, 0, 1))
			batch, part := x.Shape().Dim(1), imagesAtOnce
			if ops.OnCUDA(x) {
				part = batch
			}
			var dk *graph.Node
			for i := 0; i < batch; i += part {
				of := graph.AxisRange(i, min(i+part, batch))
				sum := convolve(graph.Slice(channelsLast(x), of), graph.Slice(last, of), across, one, within, one, stride)
				if dk != nil {
					sum = graph.Add(dk, sum)
				}
				dk = sum
			}
			dk = graph.TransposeAllAxes(dk, 3, 2, 0, 1)
			return []*graph.Node{dx, graph.Reshape(dk, kernel.Shape().Dimensions...)}
		})
}

// imagesAtOnce is the number of images in each of the sums that add up to the gradient of a kernel on a processor. XLA puts the
// images beside each other in memory first. They are a power of two apart, so that the cache holds only few of them at a time:
// all 128 of a batch at once take a step of the plain ResNet-14 a fifth longer.
const imagesAtOnce = 32

// A Spec describes a convolutional layer.
type Spec struct {
	Filters int
	Window  Window
	// NoBias omits the bias, as before a batch normalisation.
	NoBias bool
}

// FanIn returns the number of inputs of each output entry in a convolution of x.
func (c Spec) FanIn(x *graph.Node) int { return x.Shape().Dim(0) * c.Window.Pixels() }

// Layer returns the deterministic convolution of x with the kernel "weights", [filters, channels*Pixels()], and the
// "bias", [filters, 1]. Initial weights are params.KaimingNormal, the initial bias is drawn from U(-1/sqrt(fan in),
// 1/sqrt(fan in)). Both have the role params.Weight.
func Layer(s *model.Scope, x *graph.Node, c Spec) *graph.Node {
	fanIn := c.FanIn(x)
	kernel := params.New(s, Channels(x), "weights", params.Weight, params.KaimingNormal(fanIn), c.Filters, fanIn)
	return AddBias(s, Convolve(x, kernel, c.Window), c, fanIn)
}

// AddBias adds the parameter "bias", as in Layer, to the output y of a convolution, [filters, batch, height, width],
// unless c.NoBias.
func AddBias(s *model.Scope, y *graph.Node, c Spec, fanIn int) *graph.Node {
	if c.NoBias {
		return y
	}
	bias := params.New(s, Channels(y), "bias", params.Weight, params.Uniform(1/math.Sqrt(float64(fanIn))), c.Filters, 1)
	return LikeImage(AddColumn(Channels(y), bias), y)
}
