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
// are: [channels, batch, height, width] -> [channels*size*size, pixels of the grid].
func patches(x *graph.Node, size, stride int, rows, columns sides) (*graph.Node, grid) {
	if stride == 1 {
		x, rows = crop(x, 2, rows)
		x, columns = crop(x, 3, columns)
		return patchesByCopies(x, size, rows, columns)
	}
	return patchesBySlices(x, size, stride, rows, columns)
}

// patchesByCopies makes the patches of a window that moves pixel by pixel, with
// nothing but concatenations, which the Go backend copies in blocks, where it
// takes slices entry by entry.
//
// With enough zeros after each row and each image, the neighbour (u, v) pixels
// away of every pixel is a fixed number of entries away in memory, zero beyond
// the border. So each row of the patch matrix is the padded image, moved by that
// number. To move them, all are laid one after the other with just so many zeros
// between them that the rows of a fixed length, into which the whole is then cut,
// begin at the right entries.
func patchesByCopies(x *graph.Node, size int, rows, columns sides) (*graph.Node, grid) {
	channels, batch, height, width := x.Shape().Dim(0), x.Shape().Dim(1), x.Shape().Dim(2), x.Shape().Dim(3)
	g := grid{batch: batch, high: height + rows.before + rows.after - size + 1, wide: width + columns.before + columns.after - size + 1}
	// The zeros after a row are also those before the next one.
	g.rows = max(height+max(rows.before, rows.after), g.high)
	g.columns = max(width+max(columns.before, columns.after), g.wide)
	length := batch * g.rows * g.columns

	var moves []int // by tap: how far on in memory it looks
	for u := range size {
		for v := range size {
			moves = append(moves, (u-rows.before)*g.columns+v-columns.before)
		}
	}
	spare := max(0, -moves[len(moves)-1])
	for i := 1; i < len(moves); i++ {
		spare = max(spare, moves[i]-moves[i-1])
	}
	pixels := g.rows * g.columns
	g.images = batch + (spare+pixels-1)/pixels
	if size == 1 && g == (grid{images: batch, rows: height, columns: width, batch: batch, high: height, wide: width}) {
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
	return graph.Reshape(graph.Concatenate(parts, 1), channels*size*size, g.images*pixels), g
}

// patchesBySlices makes the patches of a window that moves by a stride.
func patchesBySlices(x *graph.Node, size, stride int, rows, columns sides) (*graph.Node, grid) {
	x = pad(pad(x, 2, rows), 3, columns)
	channels, batch := x.Shape().Dim(0), x.Shape().Dim(1)
	high, wide := (x.Shape().Dim(2)-size)/stride+1, (x.Shape().Dim(3)-size)/stride+1
	var taps []*graph.Node
	for u := range size {
		for v := range size {
			tap := every(every(x, 2, u, stride, high), 3, v, stride, wide)
			taps = append(taps, graph.Reshape(tap, channels, 1, batch*high*wide))
		}
	}
	all := taps[0]
	if len(taps) > 1 {
		all = graph.Concatenate(taps, 1)
	}
	return graph.Reshape(all, channels*size*size, batch*high*wide),
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
	parts := []*graph.Node{x}
	if s.before > 0 {
		parts = append([]*graph.Node{zerosLike(x, axis, s.before)}, parts...)
	}
	if s.after > 0 {
		parts = append(parts, zerosLike(x, axis, s.after))
	}
	if len(parts) == 1 {
		return x
	}
	return graph.Concatenate(parts, axis)
}

// zerosLike is a block of zeros of x's shape but for one axis.
func zerosLike(x *graph.Node, axis, n int) *graph.Node {
	shape := x.Shape().Clone()
	shape.Dimensions[axis] = n
	return graph.Zeros(x.Graph(), shape)
}

// dilate puts stride-1 zeros between neighbours along an axis.
func dilate(x *graph.Node, axis, stride int) *graph.Node {
	if stride == 1 {
		return x
	}
	dims := x.Shape().Dimensions
	single := append(append(append([]int{}, dims[:axis+1]...), 1), dims[axis+1:]...)
	spread := pad(graph.Reshape(x, single...), axis+1, sides{0, stride - 1})
	joined := append([]int{}, dims...)
	joined[axis] *= stride
	return every(graph.Reshape(spread, joined...), axis, 0, 1, joined[axis]-(stride-1))
}
