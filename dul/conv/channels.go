package conv

import (
	"github.com/gomlx/compute/shapes"
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
		func(in []*graph.Node) *graph.Node {
			return affineRows(in[1], term{graph.OnesLike(in[1]), in[0]})
		},
		func(_, dy *graph.Node) []*graph.Node { return []*graph.Node{dy, rowSums(dy)} })
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
			if !ops.OnGo(row) {
				return graph.Add(graph.Mul(in[0], in[1]), in[2])
			}
			left := graph.Concatenate([]*graph.Node{in[0], in[2]}, 1)
			right := graph.Concatenate([]*graph.Node{in[1], graph.OnesLike(in[1])}, 0)
			return product(left, right)
		},
		func(_, dy *graph.Node) []*graph.Node {
			return []*graph.Node{
				product(dy, graph.Reshape(row, row.Shape().Dim(1), 1)),
				product(graph.Reshape(column, 1, column.Shape().Dim(0)), dy),
				rowSums(dy),
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

// scaleRows multiplies each row by an entry, [n, m] * [n, 1]; on the Go backend,
// which broadcasts and sums several times slower than it multiplies matrices,
// as a batch of products of a 1 x 1 matrix and a row.
func scaleRows(x, column *graph.Node) *graph.Node {
	if !ops.OnGo(x) {
		return graph.Mul(x, column)
	}
	n, m := x.Shape().Dim(0), x.Shape().Dim(1)
	scaled := graph.DotGeneral(graph.Reshape(column, n, 1, 1), []int{2}, []int{0}, graph.Reshape(x, n, 1, m), []int{1}, []int{0})
	return graph.Reshape(scaled, n, m)
}

// rowDots is sum_j x_ij y_ij for each row, [n, m] and [n, m] -> [n, 1].
func rowDots(x, y *graph.Node) *graph.Node {
	if !ops.OnGo(x) {
		return graph.ReduceAndKeep(graph.Mul(x, y), graph.ReduceSum, 1)
	}
	n := x.Shape().Dim(0)
	return graph.Reshape(graph.DotGeneral(x, []int{1}, []int{0}, y, []int{1}, []int{0}), n, 1)
}

// rowSums is sum_j x_ij, [n, m] -> [n, 1].
func rowSums(x *graph.Node) *graph.Node {
	if !ops.OnGo(x) {
		return graph.ReduceAndKeep(x, graph.ReduceSum, 1)
	}
	return ops.SumColumns(x)
}

// A term is a matrix, [n, m], with a factor for each of its rows, [n, 1].
type term struct{ factor, x *graph.Node }

// affineRows is sum_k factor_k x_k + offset, row by row. On the Go backend it is
// the product of [diag(factor_1) | diag(factor_2) ... | offset] with the terms
// and a row of ones below each other, though most of its factors are zero.
func affineRows(offset *graph.Node, terms ...term) *graph.Node {
	x := terms[0].x
	n, m := x.Shape().Dim(0), x.Shape().Dim(1)
	if !ops.OnGo(x) {
		sum := offset
		for _, t := range terms {
			sum = graph.Add(graph.Mul(t.x, t.factor), sum)
		}
		return sum
	}
	identity := graph.DiagonalWithValue(graph.ScalarOne(x.Graph(), x.DType()), n)
	var left, right []*graph.Node
	for _, t := range terms {
		left, right = append(left, graph.Mul(identity, t.factor)), append(right, t.x)
	}
	left, right = append(left, offset), append(right, graph.Ones(x.Graph(), shapes.Make(x.DType(), 1, m)))
	return product(graph.Concatenate(left, 1), graph.Concatenate(right, 0))
}
