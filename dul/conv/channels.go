package conv

import (
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/ops"
)

// Channels is an image batch as a matrix with one row for each channel:
// [channels, batch, height, width] -> [channels, batch*height*width].
func Channels(x *graph.Node) *graph.Node {
	c := x.Shape().Dim(0)
	return graph.Reshape(x, c, x.Shape().Size()/c)
}

// LikeImage is the inverse of Channels: m, [rows, batch*height*width], takes the
// batch, height and width of x.
func LikeImage(m, x *graph.Node) *graph.Node {
	d := x.Shape().Dimensions
	return graph.Reshape(m, m.Shape().Dim(0), d[1], d[2], d[3])
}

// AddColumn adds an entry to each row of a matrix: [n, m] + [n, 1].
func AddColumn(x, column *graph.Node) *graph.Node {
	return ops.WithGradient([]*graph.Node{x, column},
		func(in []*graph.Node) *graph.Node { return graph.Add(in[0], in[1]) },
		func(_, dy *graph.Node) []*graph.Node { return []*graph.Node{dy, ops.SumColumns(dy)} })
}

// MulColumn multiplies each row of a matrix by an entry: [n, m] * [n, 1].
func MulColumn(x, column *graph.Node) *graph.Node {
	return ops.WithGradient([]*graph.Node{x, column},
		func(in []*graph.Node) *graph.Node { return scaleRows(in[0], in[1]) },
		func(_, dy *graph.Node) []*graph.Node {
			return []*graph.Node{scaleRows(dy, column), rowDots(dy, x)}
		})
}

// Outer is column x row, [n, 1] x [1, m] -> [n, m], plus an entry for each row, [n, 1].
func Outer(column, row, offset *graph.Node) *graph.Node {
	return ops.WithGradient([]*graph.Node{column, row, offset},
		func(in []*graph.Node) *graph.Node {
			left := graph.Concatenate([]*graph.Node{in[0], in[2]}, 1)
			right := graph.Concatenate([]*graph.Node{in[1], graph.OnesLike(in[1])}, 0)
			return product(left, right)
		},
		func(_, dy *graph.Node) []*graph.Node {
			return []*graph.Node{
				product(dy, graph.Reshape(row, row.Shape().Dim(1), 1)),
				product(graph.Reshape(column, 1, column.Shape().Dim(0)), dy),
				ops.SumColumns(dy),
			}
		})
}

// ExampleMeans is the mean over the positions of one-channel images,
// [1, batch, height, width] -> [batch, 1].
func ExampleMeans(x *graph.Node) *graph.Node {
	batch, positions := x.Shape().Dim(1), x.Shape().Dim(2)*x.Shape().Dim(3)
	sums := ops.SumColumns(graph.Reshape(x, batch, positions))
	return graph.MulScalar(sums, 1/float64(positions))
}

// GlobalMeans is the mean over the positions of each channel, as the input of a
// dense layer: [channels, batch, height, width] -> [batch, channels].
func GlobalMeans(x *graph.Node) *graph.Node {
	channels, batch, positions := x.Shape().Dim(0), x.Shape().Dim(1), x.Shape().Dim(2)*x.Shape().Dim(3)
	sums := ops.SumColumns(graph.Reshape(x, channels*batch, positions))
	return graph.MulScalar(graph.Transpose(graph.Reshape(sums, channels, batch), 0, 1), 1/float64(positions))
}

// scaleRows is the product with a column, as a batch of products of a 1 x 1
// matrix and a row: on the pure Go backend a quarter of the time that the
// broadcast of the column takes.
func scaleRows(x, column *graph.Node) *graph.Node {
	n, m := x.Shape().Dim(0), x.Shape().Dim(1)
	scaled := graph.DotGeneral(graph.Reshape(column, n, 1, 1), []int{2}, []int{0}, graph.Reshape(x, n, 1, m), []int{1}, []int{0})
	return graph.Reshape(scaled, n, m)
}

// rowDots is sum_j x_ij y_ij for each row, [n, m] and [n, m] -> [n, 1].
func rowDots(x, y *graph.Node) *graph.Node {
	n := x.Shape().Dim(0)
	return graph.Reshape(graph.DotGeneral(x, []int{1}, []int{0}, y, []int{1}, []int{0}), n, 1)
}
