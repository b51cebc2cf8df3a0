package conv

import "github.com/gomlx/gomlx/core/graph"

// sides are the zeros before and after an axis; negative ones are cut off.
type sides struct{ before, after int }

// A grid says where in the columns of a patch matrix the positions of the window
// lie: a batch of images of rows x columns pixels, of which the first batch
// images, and of each the first high x wide pixels, are positions. The others
// hold nothing of use.
type grid struct {
	images, rows, columns int
	batch, high, wide     int
}

// image takes the positions out of a matrix with one column for each pixel of
// the grid: [filters, images*rows*columns] -> [filters, batch, high, wide].
func (g grid) image(m *graph.Node) *graph.Node {
	x := graph.Reshape(m, m.Shape().Dim(0), g.images, g.rows, g.columns)
	if g.batch == g.images && g.high == g.rows && g.wide == g.columns {
		return x
	}
	return graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, g.batch), graph.AxisRange(0, g.high), graph.AxisRange(0, g.wide))
}

// flat is the transpose of image: it puts zeros where there is no position.
func (g grid) flat(x *graph.Node) *graph.Node {
	x = pad(x, 3, sides{0, g.columns - g.wide})
	x = pad(x, 2, sides{0, g.rows - g.high})
	return Channels(pad(x, 1, sides{0, g.images - g.batch}))
}

// patches returns what a window sees at each of its positions, and where these
// are: [channels, batch, height, width] -> [channels*Pixels(), pixels of the grid].
func patches(x *graph.Node, w Window) (*graph.Node, grid) {
	rows, columns := w.Axes()
	if rows.Stride > 1 || columns.Stride > 1 {
		return patchesBySlices(x, w)
	}
	return patchesByCopies(x, rows.Size, columns.Size, rows.around(), columns.around())
}

// around is the padding.
func (e Extent) around() sides { return sides{e.Padding, e.Padding} }

// patchesByCopies makes the patches of a window of high x wide pixels that moves
// pixel by pixel, with nothing but concatenations, which the Go backend copies in
// blocks, where it takes slices entry by entry.
//
// With enough zeros after each row and each image, the neighbour (u, v) pixels
// away of every pixel is a fixed number of entries away in memory, zero beyond
// the border. So each row of the patch matrix is the padded image, moved by that
// number. To move them, all are laid one after the other with just so many zeros
// between them that the rows of a fixed length, into which the whole is then cut,
// begin at the right entries. For the image a b c and a window of 1 x 3 pixels (here
// the rows are as short as can be; below they are a whole number of images long):
//
//	laid out:  0 a b c 0 a b c 0 a b c 0 0 0
//	cut by 5:  0 a b c 0    what is left of each pixel
//	           a b c 0 a    the pixel; the first three columns are the positions
//	           b c 0 0 0    what is right of it
func patchesByCopies(x *graph.Node, high, wide int, rows, columns sides) (*graph.Node, grid) {
	x, rows = crop(x, 2, rows)
	x, columns = crop(x, 3, columns)
	channels, batch, height, width := x.Shape().Dim(0), x.Shape().Dim(1), x.Shape().Dim(2), x.Shape().Dim(3)
	g := grid{batch: batch, high: height + rows.before + rows.after - high + 1, wide: width + columns.before + columns.after - wide + 1}
	// The zeros after a row are also those before the next one.
	g.rows = max(height+max(rows.before, rows.after), g.high)
	g.columns = max(width+max(columns.before, columns.after), g.wide)
	length := batch * g.rows * g.columns

	var moves []int // by tap: how far on in memory it looks
	for u := range high {
		for v := range wide {
			moves = append(moves, (u-rows.before)*g.columns+v-columns.before)
		}
	}
	spare := max(0, -moves[len(moves)-1])
	for i := 1; i < len(moves); i++ {
		spare = max(spare, moves[i]-moves[i-1])
	}
	pixels := g.rows * g.columns
	g.images = batch + (spare+pixels-1)/pixels
	if high*wide == 1 && g == (grid{images: batch, rows: height, columns: width, batch: batch, high: height, wide: width}) {
		return Channels(x), g
	}

	padded := grid{images: batch, rows: g.rows, columns: g.columns, batch: batch, high: height, wide: width}.flat(x)
	var parts []*graph.Node
	at := 0
	zerosUpTo := func(end int) {
		if end > at {
			parts = append(parts, zerosLike(padded, 1, end-at))
		}
		at = end
	}
	for i, move := range moves {
		zerosUpTo(i*g.images*pixels - move)
		parts = append(parts, padded)
		at += length
	}
	zerosUpTo(len(moves) * g.images * pixels)
	return graph.Reshape(graph.Concatenate(parts, 1), channels*high*wide, g.images*pixels), g
}

// patchesBySlices makes the patches of a window that moves by a stride.
func patchesBySlices(x *graph.Node, w Window) (*graph.Node, grid) {
	rows, columns := w.Axes()
	high, wide := w.Out(x.Shape().Dim(2), x.Shape().Dim(3))
	x = pad(pad(x, 2, rows.around()), 3, columns.around())
	channels, batch := x.Shape().Dim(0), x.Shape().Dim(1)
	var taps []*graph.Node
	for u := range rows.Size {
		for v := range columns.Size {
			tap := every(every(x, 2, u, rows.Stride, high), 3, v, columns.Stride, wide)
			taps = append(taps, graph.Reshape(tap, channels, 1, batch*high*wide))
		}
	}
	all := taps[0]
	if len(taps) > 1 {
		all = graph.Concatenate(taps, 1)
	}
	return graph.Reshape(all, channels*len(taps), batch*high*wide),
		grid{images: batch, rows: high, columns: wide, batch: batch, high: high, wide: wide}
}

// every is every stride-th entry of an axis from first on, count of them.
func every(x *graph.Node, axis, first, stride, count int) *graph.Node {
	if first == 0 && stride == 1 && count == x.Shape().Dim(axis) {
		return x
	}
	end := first + (count-1)*stride + 1
	return graph.SliceAxis(x, axis, graph.AxisRange(first, end).Stride(stride))
}

// crop cuts off what negative sides of an axis ask for, which then are 0.
func crop(x *graph.Node, axis int, s sides) (*graph.Node, sides) {
	first := max(0, -s.before)
	x = every(x, axis, first, 1, x.Shape().Dim(axis)-first-max(0, -s.after))
	return x, sides{max(0, s.before), max(0, s.after)}
}

// pad puts zeros before and after an axis.
func pad(x *graph.Node, axis int, s sides) *graph.Node {
	if s == (sides{}) {
		return x
	}
	around := make([]graph.PadAxis, x.Rank())
	around[axis] = graph.PadAxis{Start: s.before, End: s.after}
	return graph.Pad(x, graph.ScalarZero(x.Graph(), x.DType()), around...)
}

// zerosLike is a block of zeros of x's shape but for one axis.
func zerosLike(x *graph.Node, axis, n int) *graph.Node {
	shape := x.Shape().Clone()
	shape.Dimensions[axis] = n
	return graph.Zeros(x.Graph(), shape)
}

// takeTurns lets the parts' entries along an axis take turns in one axis of n.
func takeTurns(parts []*graph.Node, axis, n int) *graph.Node {
	if len(parts) == 1 {
		return parts[0]
	}
	most := parts[0].Shape().Dim(axis)
	apart := make([]*graph.Node, len(parts))
	for i, part := range parts {
		full := pad(part, axis, sides{0, most - part.Shape().Dim(axis)})
		apart[i] = graph.ExpandAxes(full, axis+1)
	}
	dims := append([]int{}, parts[0].Shape().Dimensions...)
	dims[axis] *= len(parts)
	return every(graph.Reshape(graph.Concatenate(apart, axis+1), dims...), axis, 0, 1, n)
}
