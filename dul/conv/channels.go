package conv

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/stochastic"
)

// Channels returns images as a matrix with one row for each channel: [channels, batch, height, width] -> [channels,
// batch*height*width].
func Channels(x *graph.Node) *graph.Node {
	c := x.Shape().Dim(0)
	pixels := x.Shape().Size() / c
	if ops.OnGo(x) {
		return graph.Reshape(x, c, pixels)
	}
	return flipped(graph.Reshape(channelsLast(x), pixels, c))
}

// LikeImage is the inverse of Channels: it gives m, [rows, batch*height*width], the batch, height and width of x.
func LikeImage(m, x *graph.Node) *graph.Node {
	rows, d := m.Shape().Dim(0), x.Shape().Dimensions
	if ops.OnGo(x) {
		return graph.Reshape(m, rows, d[1], d[2], d[3])
	}
	return channelsFirst(graph.Reshape(flipped(m), d[1], d[2], d[3], rows))
}

// channelsLast is [channels, batch, height, width] -> [batch, height, width, channels].
func channelsLast(x *graph.Node) *graph.Node { return graph.TransposeAllAxes(x, 1, 2, 3, 0) }

// channelsFirst is the inverse of channelsLast.
func channelsFirst(x *graph.Node) *graph.Node { return graph.TransposeAllAxes(x, 3, 0, 1, 2) }

// flipped is the transpose of a matrix: with the channels last, if they were first.
func flipped(m *graph.Node) *graph.Node { return graph.TransposeAllAxes(m, 1, 0) }

// row is a column as a row.
func row(column *graph.Node) *graph.Node { return graph.Reshape(column, 1, column.Shape().Dim(0)) }

// Entrywise returns f(inputs), for images or matrices of channels of one shape. Every entry of f must depend only on
// the same entry of each input.
func Entrywise(f func(in []*graph.Node) *graph.Node, inputs ...*graph.Node) *graph.Node {
	if ops.OnGo(inputs[0]) {
		return f(inputs)
	}
	to, from := channelsLast, channelsFirst
	if inputs[0].Rank() == 2 {
		to, from = flipped, flipped
	}
	in := make([]*graph.Node, len(inputs))
	for i, x := range inputs {
		in[i] = to(x)
	}
	return from(f(in))
}

// ReLU returns max(x, 0) for images; its derivative at 0 is 0.
func ReLU(x *graph.Node) *graph.Node {
	return Entrywise(func(in []*graph.Node) *graph.Node { return ops.ReLU(in[0]) }, x)
}

// Add returns the sum of two images.
func Add(x, y *graph.Node) *graph.Node {
	return Entrywise(func(in []*graph.Node) *graph.Node { return graph.Add(in[0], in[1]) }, x, y)
}

// Noise returns a draw from d for every entry of a matrix of channels.
func Noise(s *model.Scope, m *graph.Node, d stochastic.Distribution) *graph.Node {
	channels, pixels := m.Shape().Dim(0), m.Shape().Dim(1)
	if ops.OnGo(m) {
		return stochastic.Draw(s, m, d, channels, pixels)
	}
	return stochastic.DrawByColumns(s, m, d, channels, pixels)
}

// AddColumn adds the column's entry to each row of a matrix: [n, m] + [n, 1].
func AddColumn(x, column *graph.Node) *graph.Node { return withColumn(graph.Add, x, column) }

// MulColumn multiplies each row of a matrix by the column's entry: [n, m] * [n, 1].
func MulColumn(x, column *graph.Node) *graph.Node { return withColumn(graph.Mul, x, column) }

// withColumn is the operation of each entry of a row and the row's entry of the column.
func withColumn(operation func(a, b *graph.Node) *graph.Node, x, column *graph.Node) *graph.Node {
	if ops.OnGo(x) {
		return operation(x, column)
	}
	return flipped(operation(flipped(x), row(column)))
}

// Outer returns column line + offset: [n, 1] x [1, m] + [n, 1] -> [n, m].
func Outer(column, line, offset *graph.Node) *graph.Node {
	if ops.OnGo(line) {
		return graph.Add(graph.Mul(column, line), offset)
	}
	return flipped(graph.Add(graph.Mul(flipped(line), row(column)), row(offset)))
}

// WeightedSquares returns sum_i weight_i z_ij^2: [n, m] and [n, 1] -> [1, m].
func WeightedSquares(z, weights *graph.Node) *graph.Node {
	if ops.OnGo(z) {
		return ops.TransposedProduct(weights, graph.Mul(z, z))
	}
	last := flipped(z)
	return flipped(graph.ReduceAndKeep(graph.Mul(graph.Mul(last, last), row(weights)), graph.ReduceSum, 1))
}

// ExampleMeans returns the mean over positions of images with one channel, [1, batch, height, width] -> [batch, 1].
func ExampleMeans(x *graph.Node) *graph.Node {
	batch, positions := x.Shape().Dim(1), x.Shape().Dim(2)*x.Shape().Dim(3)
	sums := ops.SumColumns(graph.Reshape(x, batch, positions))
	return graph.MulScalar(sums, 1/float64(positions))
}

// GlobalMeans returns the mean over positions of each channel, as input of a dense layer: [channels, batch, height,
// width] -> [batch, channels].
func GlobalMeans(x *graph.Node) *graph.Node {
	channels, batch, positions := x.Shape().Dim(0), x.Shape().Dim(1), x.Shape().Dim(2)*x.Shape().Dim(3)
	if !ops.OnGo(x) {
		return graph.MulScalar(graph.ReduceSum(channelsLast(x), 1, 2), 1/float64(positions))
	}
	sums := ops.SumColumns(graph.Reshape(x, channels*batch, positions))
	return graph.MulScalar(graph.Transpose(graph.Reshape(sums, channels, batch), 0, 1), 1/float64(positions))
}

// rowMeans is the mean of each row, [n, m] -> [n, 1].
func rowMeans(x *graph.Node) *graph.Node {
	if ops.OnGo(x) {
		return graph.ReduceAndKeep(x, graph.ReduceMean, 1)
	}
	return flipped(graph.ReduceAndKeep(flipped(x), graph.ReduceMean, 0))
}
