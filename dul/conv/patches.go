package conv

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/ops"
)

// byProducts is the convolution as matrix products: of the kernel with all patches
// where the window moves pixel by pixel, and else of each pixel of the window by itself.
func byProducts(x, kernel *graph.Node, w Window) *graph.Node {
	if w.Stride > 1 {
		return byPixels(x, kernel, w)
	}
	return byPatches(x, kernel, w)
}

// byPixels adds up one product for each pixel of the window: of the kernel's entries
// for it with what it sees at the window's positions.
func byPixels(x, kernel *graph.Node, w Window) *graph.Node {
	filters, channels, batch := kernel.Shape().Dim(0), x.Shape().Dim(0), x.Shape().Dim(1)
	high, wide := w.Out(x.Shape().Dim(2), x.Shape().Dim(3))
	x = pad(x, graph.PadAxis{}, graph.PadAxis{}, w.around(), w.around())
	square := graph.Reshape(kernel, filters, channels, w.Size, w.Size)
	seen := func(first, count int) graph.SliceAxisSpec {
		return graph.AxisRange(first, first+(count-1)*w.Stride+1).Stride(w.Stride)
	}
	var sum *graph.Node
	for u := range w.Size {
		for v := range w.Size {
			weights := graph.Slice(square, graph.AxisRange(), graph.AxisRange(), graph.AxisElem(u), graph.AxisElem(v))
			pixels := graph.Slice(x, graph.AxisRange(), graph.AxisRange(), seen(u, high), seen(v, wide))
			y := ops.Product(graph.Reshape(weights, filters, channels), Channels(pixels))
			if sum != nil {
				y = graph.Add(sum, y)
			}
			sum = y
		}
	}
	return graph.Reshape(sum, filters, batch, high, wide)
}

// byPatches multiplies the kernel by the patches P(x): y = K P(x), so that
//
//	dL/dK = dL/dy P(x)^T
//
// and dL/dx is the convolution of dL/dy with the kernel turned by 180 degrees.
// Convolutions of the same images share their patches.
func byPatches(x, kernel *graph.Node, w Window) *graph.Node {
	seen, g := patches(ops.Source(x), w.Size, w.around())
	y := graph.StopGradient(g.image(product(kernel, seen)))
	return ops.WithGradient([]*graph.Node{x, kernel},
		func(in []*graph.Node) *graph.Node { return ops.Tied(y, in) },
		func(_, dy *graph.Node) []*graph.Node {
			seenBack, back := patches(dy, w.Size, w.back())
			square := graph.Reshape(kernel, dy.Shape().Dim(0), x.Shape().Dim(0), w.Size, w.Size)
			turned := graph.Reverse(graph.Transpose(square, 0, 1), 2, 3)
			return []*graph.Node{
				back.image(product(graph.Reshape(turned, x.Shape().Dim(0), -1), seenBack)),
				ops.FirstOrder(kernelGradient(g.flat(dy), seen)),
			}
		})
}

// product is the matrix product, for which nobody asks a gradient.
func product(a, b *graph.Node) *graph.Node {
	return graph.DotGeneral(a, []int{1}, nil, b, []int{0}, nil)
}

// kernelGradient is dL/dy P(x)^T. The Go backend brings the right factor of such a
// product into order entry by entry, the left one with vector instructions: so
// the larger, P(x), is the left one here.
func kernelGradient(dy, seen *graph.Node) *graph.Node {
	return graph.Transpose(graph.DotGeneral(seen, []int{1}, nil, dy, []int{1}, nil), 0, 1)
}

// around is the padding.
func (w Window) around() graph.PadAxis { return graph.PadAxis{Start: w.Padding, End: w.Padding} }

// back is the padding of the convolution back from the positions to the pixels.
func (w Window) back() graph.PadAxis { return Window{Padding: w.Size - 1 - w.Padding}.around() }

// A grid says where in the columns of a patch matrix the positions of the window
// lie: in images of rows x columns pixels, the first high x wide pixels of the
// first batch images are positions. The others hold nothing of use.
type grid struct {
	images, rows, columns int
	batch, high, wide     int
}

// image takes the positions out of a matrix with one column for each pixel of
// the grid: [filters, images*rows*columns] -> [filters, batch, high, wide].
func (g grid) image(m *graph.Node) *graph.Node {
	x := graph.Reshape(m, m.Shape().Dim(0), g.images, g.rows, g.columns)
	return lengthen(x, g.batch-g.images, g.high-g.rows, g.wide-g.columns)
}

// flat is the transpose of image: it puts zeros where there is no position.
func (g grid) flat(x *graph.Node) *graph.Node {
	return Channels(lengthen(x, g.images-g.batch, g.rows-g.high, g.columns-g.wide))
}

// patches returns what a window of size x size pixels that moves pixel by pixel sees at
// each of its positions, with zeros around images, and where these are: [channels, batch, height, width] ->
// [channels*size*size, pixels of the grid].
//
// With enough zeros after each row and each image, the neighbour (u, v) pixels
// away of every pixel is a fixed number of entries away in memory, zero beyond
// the border. So each row of the patch matrix is the padded image, moved by that
// number. To move them, all are laid one after the other with just so many zeros
// between them that the rows of a fixed length, into which the whole is then cut,
// begin at the right entries: one concatenation, which the Go backend copies in
// blocks. For one row a b c of an image and one row of a window of three pixels (here the rows
// are as short as can be; below they are a whole number of images long):
//
//	laid out:  0 a b c 0 a b c 0 a b c 0 0 0
//	cut by 5:  0 a b c 0    what is left of each pixel
//	           a b c 0 a    the pixel; the first three columns are the positions
//	           b c 0 0 0    what is right of it
func patches(x *graph.Node, size int, around graph.PadAxis) (*graph.Node, grid) {
	cut := graph.PadAxis{Start: min(around.Start, 0), End: min(around.End, 0)} // of a window that has positions beyond all pixels
	around.Start, around.End = around.Start-cut.Start, around.End-cut.End
	x = pad(x, graph.PadAxis{}, graph.PadAxis{}, cut, cut)
	channels, batch, height, width := x.Shape().Dim(0), x.Shape().Dim(1), x.Shape().Dim(2), x.Shape().Dim(3)
	g := grid{batch: batch, high: height + around.Start + around.End - size + 1, wide: width + around.Start + around.End - size + 1}
	// The zeros after a row are also those before the next one.
	g.rows = max(height+max(around.Start, around.End), g.high)
	g.columns = max(width+max(around.Start, around.End), g.wide)
	pixels := g.rows * g.columns

	var moves []int // by pixel of the window: how far on in memory it looks
	for u := range size {
		for v := range size {
			moves = append(moves, (u-around.Start)*g.columns+v-around.Start)
		}
	}
	spare := max(0, -moves[len(moves)-1])
	for i := 1; i < len(moves); i++ {
		spare = max(spare, moves[i]-moves[i-1])
	}
	g.images = batch + (spare+pixels-1)/pixels

	padded := Channels(lengthen(x, 0, g.rows-height, g.columns-width))
	zeros := func(n int) *graph.Node { return graph.Zeros(x.Graph(), shapes.Make(x.DType(), channels, n)) }
	var parts []*graph.Node
	at := 0
	for i, move := range moves {
		start := i*g.images*pixels - move
		parts = append(parts, zeros(start-at), padded)
		at = start + batch*pixels
	}
	parts = append(parts, zeros(len(moves)*g.images*pixels-at))
	all := padded
	if parts = slices.DeleteFunc(parts, func(part *graph.Node) bool { return part.Shape().Dim(1) == 0 }); len(parts) > 1 {
		all = graph.Concatenate(parts, 1)
	}
	return graph.Reshape(all, channels*size*size, g.images*pixels), g
}

// lengthen puts zeros after the batch, the rows and the columns of images, and where
// their number is negative cuts entries off.
func lengthen(x *graph.Node, batch, rows, columns int) *graph.Node {
	return pad(x, graph.PadAxis{}, graph.PadAxis{End: batch}, graph.PadAxis{End: rows}, graph.PadAxis{End: columns})
}

// pad puts zeros around axes, and where their number is negative cuts entries off,
// which the Go backend copies in blocks, where it takes slices entry by entry. (GoMLX's
// gradient of it is wrong where it cuts.)
func pad(x *graph.Node, axes ...graph.PadAxis) *graph.Node {
	if !slices.ContainsFunc(axes, func(a graph.PadAxis) bool { return a != graph.PadAxis{} }) {
		return x
	}
	return graph.Pad(x, graph.ScalarZero(x.Graph(), x.DType()), axes...)
}
