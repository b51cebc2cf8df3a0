package ops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/ops"
)

// An operation is one function of the package: how it is called here, the
// shapes of its arguments without replica axis, and what GoMLX's own operations
// and derivatives give for it.
type operation struct {
	name     string
	dims     [][2]int
	positive int // 1 + the argument that must be positive, 0 for none
	ours     func(in []*graph.Node) *graph.Node
	plain    func(in []*graph.Node) *graph.Node
}

// operations lists every function of the package for matrices of n, k and m
// rows and columns.
func operations(n, k, m int) []operation {
	return []operation{
		{
			name: "Product", dims: [][2]int{{n, k}, {k, m}},
			ours:  func(in []*graph.Node) *graph.Node { return ops.Product(in[0], in[1]) },
			plain: func(in []*graph.Node) *graph.Node { return product(in[0], in[1]) },
		},
		{
			name: "Affine", dims: [][2]int{{n, k}, {k, m}, {1, m}},
			ours:  func(in []*graph.Node) *graph.Node { return ops.Affine(in[0], in[1], in[2]) },
			plain: func(in []*graph.Node) *graph.Node { return graph.Add(product(in[0], in[1]), in[2]) },
		},
		{
			name: "TransposedProduct", dims: [][2]int{{k, n}, {k, m}},
			ours: func(in []*graph.Node) *graph.Node { return ops.TransposedProduct(in[0], in[1]) },
			plain: func(in []*graph.Node) *graph.Node {
				return product(graph.Transpose(in[0], -2, -1), in[1])
			},
		},
		{
			name: "ProductTransposed", dims: [][2]int{{n, k}, {m, k}},
			ours: func(in []*graph.Node) *graph.Node { return ops.ProductTransposed(in[0], in[1]) },
			plain: func(in []*graph.Node) *graph.Node {
				return product(in[0], graph.Transpose(in[1], -2, -1))
			},
		},
		{
			name: "WeightedSquares", dims: [][2]int{{n, k}, {1, k}},
			ours: func(in []*graph.Node) *graph.Node { return ops.WeightedSquares(in[0], in[1]) },
			plain: func(in []*graph.Node) *graph.Node {
				return graph.ReduceAndKeep(graph.Mul(graph.Square(in[0]), in[1]), graph.ReduceSum, -1)
			},
		},
		{
			name: "QuadraticForm", dims: [][2]int{{n, k}, {k, m}, {1, m}},
			ours: func(in []*graph.Node) *graph.Node { return ops.QuadraticForm(in[0], in[1], in[2]) },
			plain: func(in []*graph.Node) *graph.Node {
				return graph.ReduceAndKeep(graph.Mul(graph.Square(product(in[0], in[1])), in[2]), graph.ReduceSum, -1)
			},
		},
		{
			name: "SumRows", dims: [][2]int{{n, m}},
			ours:  func(in []*graph.Node) *graph.Node { return ops.SumRows(in[0]) },
			plain: func(in []*graph.Node) *graph.Node { return graph.ReduceAndKeep(in[0], graph.ReduceSum, -2) },
		},
		{
			name: "SumColumns", dims: [][2]int{{n, m}},
			ours:  func(in []*graph.Node) *graph.Node { return ops.SumColumns(in[0]) },
			plain: func(in []*graph.Node) *graph.Node { return graph.ReduceAndKeep(in[0], graph.ReduceSum, -1) },
		},
		{
			name: "AddRow", dims: [][2]int{{n, m}, {1, m}},
			ours:  func(in []*graph.Node) *graph.Node { return ops.AddRow(in[0], in[1]) },
			plain: func(in []*graph.Node) *graph.Node { return graph.Add(in[0], in[1]) },
		},
		{
			name: "MulRow", dims: [][2]int{{n, m}, {1, m}},
			ours:  func(in []*graph.Node) *graph.Node { return ops.MulRow(in[0], in[1]) },
			plain: func(in []*graph.Node) *graph.Node { return graph.Mul(in[0], in[1]) },
		},
		{
			name: "SqrtScaled", dims: [][2]int{{n, m}}, positive: 1,
			ours: func(in []*graph.Node) *graph.Node {
				return ops.SqrtScaled(in[0], ramp(in[0]))
			},
			plain: func(in []*graph.Node) *graph.Node { return graph.Mul(graph.Sqrt(in[0]), ramp(in[0])) },
		},
		{
			name: "ReLU", dims: [][2]int{{n, m}},
			ours:  func(in []*graph.Node) *graph.Node { return ops.ReLU(in[0]) },
			plain: func(in []*graph.Node) *graph.Node { return graph.MaxScalar(in[0], 0) },
		},
		{
			name: "LogSumExp", dims: [][2]int{{n, m}},
			ours: func(in []*graph.Node) *graph.Node { return ops.LogSumExp(in[0]) },
			plain: func(in []*graph.Node) *graph.Node {
				return graph.Log(graph.ReduceAndKeep(graph.Exp(in[0]), graph.ReduceSum, -1))
			},
		},
		{
			name: "UnitLowerTriangular", dims: [][2]int{{m, m}},
			ours: func(in []*graph.Node) *graph.Node { return ops.UnitLowerTriangular(in[0]) },
		},
	}
}

// product is GoMLX's matrix product over the last two axes, with its own derivative.
func product(a, b *graph.Node) *graph.Node {
	batch := []int{}
	for i := range a.Rank() - 2 {
		batch = append(batch, i)
	}
	return graph.DotGeneral(a, []int{a.Rank() - 1}, batch, b, []int{b.Rank() - 2}, batch)
}

// ramp is constant noise of the shape of x: -1, -0.9, ...
func ramp(x *graph.Node) *graph.Node {
	n := x.Shape().Size()
	values := make([]float64, n)
	for i := range values {
		values[i] = 0.1*float64(i%23) - 1
	}
	return graph.ConstTensor(x.Graph(), fixtures.Tensor(x.DType(), fixtures.Array{Values: values, Dims: x.Shape().Dimensions}))
}

// arguments are random values for an operation, under the names "0", "1", ...
func (o operation) arguments(rng *rand.Rand, lead []int) fixtures.Values {
	values := fixtures.Values{}
	for i, d := range o.dims {
		a := fixtures.Random(rng, slices.Concat(lead, d[:])...)
		if o.positive == i+1 {
			a = a.Map(func(v float64) float64 { return 0.1 + v*v })
		}
		// ReLU has no derivative at 0, so its arguments keep away from it.
		if o.name == "ReLU" {
			a = a.Map(func(v float64) float64 { return v + math.Copysign(0.01, v) })
		}
		values[fmt.Sprint(i)] = a
	}
	return values
}

func (o operation) nodes(in fixtures.Nodes) []*graph.Node {
	nodes := make([]*graph.Node, len(o.dims))
	for i := range nodes {
		nodes[i] = in[fmt.Sprint(i)]
	}
	return nodes
}

func TestGradientsAgainstFiniteDifferences(t *testing.T) {
	ops.OnEachProcessor(t, gradientsAgainstFiniteDifferences)
}

func gradientsAgainstFiniteDifferences(t *testing.T) {
	for _, lead := range [][]int{nil, {3}} {
		for _, sizes := range [][3]int{{5, 4, 3}, {1, 3, 2}, {4, 1, 3}, {3, 2, 1}, {1, 1, 1}} {
			for _, o := range operations(sizes[0], sizes[1], sizes[2]) {
				t.Run(fmt.Sprintf("%s/replicas=%v/sizes=%v", o.name, lead, sizes), func(t *testing.T) {
					values := o.arguments(rand.New(rand.NewPCG(1, 2)), lead)
					fixtures.CheckGradient(t, values, nil, func(_ *model.Scope, in fixtures.Nodes) *graph.Node {
						return o.ours(o.nodes(in))
					})
				})
			}
		}
	}
}

// At sizes where products are padded, finite differences would take too long:
// values and gradients are compared with GoMLX's own operations. The sizes are
// below the padding's threshold, above it with columns that are and are not a
// multiple of 32, with a single column, with sums too short for padding, and above
// the limit from which nothing is padded.
func TestAgainstPlainOperations(t *testing.T) {
	ops.OnEachProcessor(t, againstPlainOperations)
}

func againstPlainOperations(t *testing.T) {
	for _, lead := range [][]int{nil, {2}} {
		for _, sizes := range [][3]int{{7, 6, 5}, {64, 50, 50}, {64, 50, 32}, {64, 50, 17}, {64, 50, 16}, {64, 50, 1}, {128, 13, 13}, {512, 7, 13}, {130, 200, 170}} {
			for _, o := range operations(sizes[0], sizes[1], sizes[2]) {
				if o.plain == nil {
					continue
				}
				t.Run(fmt.Sprintf("%s/replicas=%v/sizes=%v", o.name, lead, sizes), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(3, 4))
					values := o.arguments(rng, lead)
					evaluate := func(f func([]*graph.Node) *graph.Node) []fixtures.Array {
						return fixtures.Evaluate(t, dtypes.Float64, values, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
							y := f(o.nodes(in))
							return append([]*graph.Node{y}, graph.Gradient(graph.ReduceAllSum(graph.Mul(y, ramp(y))), o.nodes(in)...)...)
						})
					}
					ours, plain := evaluate(o.ours), evaluate(o.plain)
					for i := range ours {
						fixtures.Compare(t, fmt.Sprintf("output %d", i), ours[i], plain[i], 1e-12)
					}
				})
			}
		}
	}
}

// A gradient of a gradient is that of GoMLX's own operations, or is refused: it is never wrong.
func TestSecondDerivatives(t *testing.T) {
	refusing := []string{"QuadraticForm", "SqrtScaled"}
	for _, o := range operations(5, 4, 3) {
		if o.plain == nil {
			continue
		}
		t.Run(o.name, func(t *testing.T) {
			values := o.arguments(rand.New(rand.NewPCG(5, 6)), nil)
			refused := false
			evaluate := func(f func([]*graph.Node) *graph.Node) []fixtures.Array {
				return fixtures.Evaluate(t, dtypes.Float64, values, nil, func(_ *model.Scope, in fixtures.Nodes) (second []*graph.Node) {
					y := f(o.nodes(in))
					penalty := graph.ReduceAllSum(graph.Mul(y, ramp(y)))
					for _, first := range graph.Gradient(penalty, o.nodes(in)...) {
						penalty = graph.Add(penalty, graph.ReduceAllSum(graph.Mul(graph.Mul(first, first), ramp(first))))
					}
					defer func() {
						if err, failed := recover().(error); failed {
							if !strings.Contains(err.Error(), "second derivative") {
								t.Error(err)
							}
							refused, second = true, []*graph.Node{y}
						}
					}()
					return graph.Gradient(penalty, o.nodes(in)...)
				})
			}
			ours := evaluate(o.ours)
			if want := slices.Contains(refusing, o.name); refused != want {
				t.Errorf("refused: %v, want %v", refused, want)
			}
			if refused {
				return
			}
			for i, plain := range evaluate(o.plain) {
				fixtures.Compare(t, fmt.Sprintf("second gradient %d", i), ours[i], plain, 1e-12)
			}
		})
	}
}

// A sweep that meets the inside of an operation without its output is refused, too.
func TestSecondDerivativeOfAnInside(t *testing.T) {
	x := fixtures.Matrix(1, 2, 1.5, 2)
	fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"x": x}, nil, func(_ *model.Scope, in fixtures.Nodes) (second []*graph.Node) {
		var doubled *graph.Node
		y := ops.WithGradient([]*graph.Node{in["x"]},
			func(in []*graph.Node) *graph.Node {
				doubled = graph.MulScalar(in[0], 2)
				return graph.Mul(in[0], in[0])
			},
			func(_, dy *graph.Node) []*graph.Node { return []*graph.Node{graph.Mul(dy, doubled)} })
		first := graph.Gradient(graph.ReduceAllSum(y), in["x"])[0]
		defer func() {
			if err, failed := recover().(error); !failed || !strings.Contains(err.Error(), "second derivative") {
				t.Errorf("the error is %v", err)
			}
			second = []*graph.Node{first}
		}()
		return graph.Gradient(graph.ReduceAllSum(first), in["x"])
	})
}

func TestUnitLowerTriangular(t *testing.T) {
	l := fixtures.Matrix(3, 3, 9, 9, 9, 1, 9, 9, 2, 3, 9)
	out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"l": l}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{ops.UnitLowerTriangular(in["l"])}
	})[0]
	fixtures.Compare(t, "L", out, fixtures.Matrix(3, 3, 1, 0, 0, 1, 1, 0, 2, 3, 1), 0)
}

func TestReLUOfExtremeValues(t *testing.T) {
	x := fixtures.Matrix(1, 8, 0, math.Copysign(0, -1), -1e30, 1e30, 3e38, 1e-30, -1e-30, math.Inf(1))
	out := fixtures.Evaluate(t, dtypes.Float32, fixtures.Values{"x": x}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		y := ops.ReLU(in["x"])
		return []*graph.Node{y, graph.Gradient(graph.ReduceAllSum(y), in["x"])[0]}
	})
	for i, want := range []float64{0, 0, 0, 1, 1, 1, 0, 1} {
		if got := out[1].Values[i]; got != want {
			t.Errorf("derivative of ReLU at %g is %g, want %g", x.Values[i], got, want)
		}
		if got, want := out[0].Values[i], float64(float32(max(x.Values[i], 0))); got != want {
			t.Errorf("ReLU(%g) is %g, want %g", x.Values[i], got, want)
		}
	}
}

func TestLogSumExpDoesNotOverflow(t *testing.T) {
	for _, offset := range []float64{0, 1e4, -1e4} {
		x := fixtures.Matrix(1, 2, offset, offset+math.Log(3))
		out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"x": x}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
			y := ops.LogSumExp(in["x"])
			return []*graph.Node{y, graph.Gradient(graph.ReduceAllSum(y), in["x"])[0]}
		})
		if got, want := out[0].Values[0], offset+math.Log(4); math.Abs(got-want) > 1e-9 {
			t.Errorf("log-sum-exp at offset %g is %g, want %g", offset, got, want)
		}
		fixtures.Compare(t, "softmax", out[1], fixtures.Matrix(1, 2, 0.25, 0.75), 1e-11)
	}
}

func TestFullRow(t *testing.T) {
	out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"x": fixtures.Zeros(2, 3, 4)}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{ops.FullRow(in["x"], 2.5, 2)}
	})[0]
	if !slices.Equal(out.Dims, []int{2, 1, 2}) || !slices.Equal(out.Values, []float64{2.5, 2.5, 2.5, 2.5}) {
		t.Errorf("FullRow is %v of shape %v", out.Values, out.Dims)
	}
}

// A value that is used twice gets the sum of both gradients, and two losses of
// one graph get gradients of their own.
func TestWithGradientIsUsedTwice(t *testing.T) {
	x := fixtures.Matrix(1, 2, 1.5, 2)
	out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"x": x}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		square := ops.MulRow(in["x"], in["x"])
		cube := ops.MulRow(square, in["x"])
		both := graph.Add(square, cube)
		return append(
			graph.Gradient(graph.ReduceAllSum(both), in["x"]),
			graph.Gradient(graph.ReduceAllSum(square), in["x"])...)
	})
	fixtures.Compare(t, "2x + 3x^2", out[0], fixtures.Matrix(1, 2, 2*1.5+3*1.5*1.5, 2*2+3*2*2), 1e-14)
	fixtures.Compare(t, "2x", out[1], fixtures.Matrix(1, 2, 3, 4), 1e-14)
}

// An input whose gradient is left out is a constant.
func TestWithGradientOfAConstant(t *testing.T) {
	values := fixtures.Values{"a": fixtures.Matrix(1, 1, 2), "b": fixtures.Matrix(1, 1, 3)}
	out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		y := ops.WithGradient([]*graph.Node{in["a"], in["b"]},
			func(in []*graph.Node) *graph.Node { return graph.Mul(in[0], in[1]) },
			func(_, dy *graph.Node) []*graph.Node { return []*graph.Node{graph.Mul(dy, in["b"]), nil} })
		return graph.Gradient(graph.ReduceAllSum(y), in["a"], in["b"])
	})
	if a, b := out[0].Values[0], out[1].Values[0]; a != 3 || b != 0 {
		t.Errorf("gradients are %g and %g, want 3 and 0", a, b)
	}
}
