package conv_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest/fixtures"
)

// Each operation by channel has the values of its formula, entry by entry, and
// the gradient of finite differences.
func TestChannelOperations(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	matrix, column := fixtures.Random(rng, 3, 5), fixtures.Random(rng, 3, 1)
	row, offset := fixtures.Random(rng, 1, 5), fixtures.Random(rng, 3, 1)
	images, gray := fixtures.Random(rng, 3, 2, 8, 1), fixtures.Random(rng, 1, 2, 3, 2)
	other, moreImages := fixtures.Random(rng, 3, 5), fixtures.Random(rng, 3, 2, 8, 1)
	entries := func(rows, columns int, f func(i, j int) float64) fixtures.Array {
		y := fixtures.Zeros(rows, columns)
		for k := range y.Values {
			y.Values[k] = f(k/columns, k%columns)
		}
		return y
	}
	for _, c := range []struct {
		name  string
		in    fixtures.Values
		apply func(in fixtures.Nodes) *graph.Node
		want  fixtures.Array
	}{
		{"AddColumn", fixtures.Values{"x": matrix, "c": column},
			func(in fixtures.Nodes) *graph.Node { return conv.AddColumn(in["x"], in["c"]) },
			entries(3, 5, func(i, j int) float64 { return matrix.Values[5*i+j] + column.Values[i] })},
		{"MulColumn", fixtures.Values{"x": matrix, "c": column},
			func(in fixtures.Nodes) *graph.Node { return conv.MulColumn(in["x"], in["c"]) },
			entries(3, 5, func(i, j int) float64 { return matrix.Values[5*i+j] * column.Values[i] })},
		{"Outer", fixtures.Values{"c": column, "r": row, "o": offset},
			func(in fixtures.Nodes) *graph.Node { return conv.Outer(in["c"], in["r"], in["o"]) },
			entries(3, 5, func(i, j int) float64 { return column.Values[i]*row.Values[j] + offset.Values[i] })},
		{"WeightedSquares", fixtures.Values{"z": matrix, "w": column},
			func(in fixtures.Nodes) *graph.Node { return conv.WeightedSquares(in["z"], in["w"]) },
			entries(1, 5, func(_, j int) float64 {
				sum := 0.0
				for i, weight := range column.Values {
					sum += weight * matrix.Values[5*i+j] * matrix.Values[5*i+j]
				}
				return sum
			})},
		{"Entrywise on matrices", fixtures.Values{"x": matrix, "y": other},
			func(in fixtures.Nodes) *graph.Node {
				return conv.Entrywise(func(in []*graph.Node) *graph.Node { return graph.Sub(in[0], in[1]) }, in["x"], in["y"])
			},
			entries(3, 5, func(i, j int) float64 { return matrix.Values[5*i+j] - other.Values[5*i+j] })},
		{"ReLU and Add", fixtures.Values{"x": images, "y": moreImages},
			func(in fixtures.Nodes) *graph.Node { return conv.Add(conv.ReLU(in["x"]), in["y"]) },
			fixtures.Array{Dims: images.Dims, Values: entries(3, 16, func(i, j int) float64 {
				return max(images.Values[16*i+j], 0) + moreImages.Values[16*i+j]
			}).Values}},
		{"Channels and LikeImage", fixtures.Values{"x": images, "c": column},
			func(in fixtures.Nodes) *graph.Node {
				return conv.LikeImage(conv.MulColumn(conv.Channels(in["x"]), in["c"]), in["x"])
			},
			fixtures.Array{Dims: images.Dims, Values: entries(3, 16, func(i, j int) float64 { return images.Values[16*i+j] * column.Values[i] }).Values}},
		{"ExampleMeans", fixtures.Values{"x": gray},
			func(in fixtures.Nodes) *graph.Node { return conv.ExampleMeans(in["x"]) },
			entries(2, 1, func(n, _ int) float64 { return stat.Mean(gray.Values[6*n:6*n+6], nil) })},
		{"GlobalMeans", fixtures.Values{"x": images},
			func(in fixtures.Nodes) *graph.Node { return conv.GlobalMeans(in["x"]) },
			entries(2, 3, func(n, c int) float64 { return stat.Mean(images.Values[(2*c+n)*8:(2*c+n+1)*8], nil) })},
	} {
		t.Run(c.name, func(t *testing.T) {
			for dtype, tolerance := range map[dtypes.DType]float64{dtypes.Float64: 1e-14, dtypes.Float32: 1e-6} {
				out := fixtures.Evaluate(t, dtype, c.in, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
					return []*graph.Node{c.apply(in)}
				})
				if !slices.Equal(out[0].Dims, c.want.Dims) {
					t.Fatalf("the shape is %v, want %v", out[0].Dims, c.want.Dims)
				}
				fixtures.Compare(t, c.name, out[0], c.want, tolerance)
			}
			fixtures.CheckGradient(t, c.in, nil, func(_ *model.Scope, in fixtures.Nodes) *graph.Node { return c.apply(in) })
		})
	}
}

// On the Go backend a convolution is a product of matrices.
func TestConvolveOnTheGoBackend(t *testing.T) {
	fixtures.GoBackend(t)
	in := fixtures.Values{"x": fixtures.Zeros(2, 1, 4, 4), "kernel": fixtures.Zeros(3, 18)}
	fixtures.Evaluate(t, dtypes.Float32, in, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		y := conv.Convolve(in["x"], in["kernel"], conv.Same(3, 1))
		for _, node := range y.Graph().Nodes() {
			if node.Type() == graph.NodeTypeConvGeneral {
				t.Errorf("the graph has the node %s", node)
			}
		}
		return []*graph.Node{y}
	})
}
