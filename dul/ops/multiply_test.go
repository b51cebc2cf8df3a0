package ops_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/ops"
)

// parameters starts a graph with one parameter of each shape.
func parameters(t *testing.T, dims ...[]int) (*graph.Graph, []*graph.Node) {
	t.Helper()
	g := graph.NewGraph(fixtures.Backend(t), t.Name())
	nodes := make([]*graph.Node, len(dims))
	for i, d := range dims {
		nodes[i] = graph.Parameter(g, fmt.Sprint(i), shapes.Make(dtypes.Float32, d...))
	}
	return g, nodes
}

// ofType are the nodes of the graph that are of one type.
func ofType(g *graph.Graph, nodeType graph.NodeType) []*graph.Node {
	var found []*graph.Node
	for _, node := range g.Nodes() {
		if node.Type() == nodeType {
			found = append(found, node)
		}
	}
	return found
}

// usedBy are the nodes that outputs are computed from, and the outputs.
func usedBy(outputs []*graph.Node) []*graph.Node {
	var used []*graph.Node
	seen := map[*graph.Node]bool{}
	for ahead := outputs; len(ahead) > 0; {
		node := ahead[0]
		ahead = ahead[1:]
		if !seen[node] {
			seen[node] = true
			used = append(used, node)
			ahead = append(ahead, node.Inputs()...)
		}
	}
	return used
}

// All gradients that need the transpose of x take that of x itself, also where
// a layer has made x a constant for one of them: the backend computes it once.
func TestTransposesHaveOneSource(t *testing.T) {
	g, in := parameters(t, []int{6, 4}, []int{4, 3}, []int{1, 3}, []int{4, 4}, []int{1, 4})
	x, w, b, l, d := in[0], in[1], in[2], in[3], in[4]
	y := ops.Affine(x, w, b)
	energy := ops.QuadraticForm(graph.StopGradient(x), l, d)
	graph.Gradient(graph.Add(graph.ReduceAllSum(y), graph.ReduceAllSum(energy)), w, b, l, d)

	count := 0
	for _, transposed := range ofType(g, graph.NodeTypeTranspose) {
		if !transposed.Shape().EqualDimensions(shapes.Make(dtypes.Float32, 4, 6)) {
			continue
		}
		count++
		if transposed.Inputs()[0] != x {
			t.Errorf("%s is not the transpose of x", transposed)
		}
	}
	if count != 2 {
		t.Errorf("%d transposes of x, want one for each gradient of a matrix", count)
	}
}

// A product by a vector kernel is followed, before it is used, by a copy of 256
// to 2048 bytes, of which Go's copy releases the vector registers. With AVX-512
// up to 16 columns are multiplied without vectors.
func TestProductsReleaseTheRegisters(t *testing.T) {
	fixtures.GoBackend(t)
	for _, c := range []struct {
		processor     string
		columns, want int
	}{{"avx512", 16, 0}, {"avx512", 17, 1}, {"avx2", 1, 1}, {"avx2", 16, 1}} {
		t.Run(fmt.Sprintf("%s, %d columns", c.processor, c.columns), func(t *testing.T) {
			ops.UseProcessor(t, c.processor)
			g, in := parameters(t, []int{6, 4}, []int{4, c.columns})
			ops.Product(in[0], in[1])
			copies := 0
			for _, barrier := range ofType(g, graph.NodeTypeSchedulingBarrier) {
				inputs := barrier.Inputs()
				if inputs[0].Type() != graph.NodeTypeConstant {
					continue
				}
				copies++
				if size := inputs[0].Shape().ByteSize(); size <= 256 || size >= 2048 {
					t.Errorf("a copy of %d bytes does not release the registers on all processors", size)
				}
				if inputs[1].Type() != graph.NodeTypeDotGeneral {
					t.Errorf("the copy comes after %s, want the product", inputs[1])
				}
			}
			if copies != c.want {
				t.Errorf("%d copies after a product of %d columns, want %d", copies, c.columns, c.want)
			}
		})
	}
}

// With AVX2 no product leaves columns over that are multiplied entry by entry: they
// are filled up to 8, or lie in memory as a row.
func TestNoColumnsLeftOver(t *testing.T) {
	fixtures.GoBackend(t)
	ops.UseProcessor(t, "avx2")
	for _, columns := range []int{1, 2, 7, 8, 50} {
		g, in := parameters(t, []int{3, 20, 10}, []int{3, 10, columns})
		x := ops.Affine(in[0], in[1], graph.Zeros(g, shapes.Make(dtypes.Float32, 3, 1, columns)))
		gradients := graph.Gradient(graph.ReduceAllSum(graph.Square(x)), in[0], in[1])
		for _, dot := range usedBy(append(gradients, x)) {
			if dot.Type() != graph.NodeTypeDotGeneral {
				continue
			}
			b := dot.Inputs()[1].Shape()
			if byRow := b.Dim(-2) == 1 && dot.Shape().Dim(-1) == 1; !byRow && b.Dim(-1)%8 != 0 {
				t.Errorf("%d columns: the product %s has a second factor of shape %s", columns, dot, b)
			}
		}
	}
}

func TestScaleRows(t *testing.T) {
	ops.OnEachProcessor(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		for _, dims := range [][2]int{{1, 1}, {3, 5}, {16, 40}, {5, 1}} {
			values := fixtures.Values{"x": fixtures.Random(rng, dims[0], dims[1]), "column": fixtures.Random(rng, dims[0], 1)}
			out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
				return []*graph.Node{ops.ScaleRows(in["x"], in["column"]), graph.Mul(in["x"], in["column"])}
			})
			fixtures.Compare(t, fmt.Sprint(dims), out[0], out[1], 0)
		}
	})
}

// BenchmarkAfterProduct shows what a product leaves behind for the scalar
// operations after it, here twenty square roots: with plain, GoMLX's own product.
func BenchmarkAfterProduct(b *testing.B) {
	for _, c := range []struct {
		name     string
		multiply func(x, y *graph.Node) *graph.Node
	}{{"plain", product}, {"ops", ops.Product}} {
		b.Run(c.name, func(b *testing.B) {
			exec, err := model.NewExec(fixtures.Backend(b), model.NewStore(), func(_ *model.Scope, x, y *graph.Node) *graph.Node {
				z := c.multiply(x, y)
				for range 20 {
					z = graph.Sqrt(z)
				}
				return z
			})
			if err != nil {
				b.Fatal(err)
			}
			ones := tensors.FromShape(shapes.Make(dtypes.Float32, 64, 64))
			if err := tensors.MutableFlatData(ones, func(flat []float32) {
				for i := range flat {
					flat[i] = 1
				}
			}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := exec.Call(ones, ones); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
