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
	"gonum.org/v1/gonum/floats/scalar"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/ops"
	"densityuncertainty/environment/must"
)

// An operation is one function of the package: how it is called here, the
// shapes of its arguments without replica axis, and what GoMLX's own operations
// and derivatives give for it.
type operation struct {
	name        string
	dims        [][2]int
	ours, plain combined
}

// A combined function takes its arguments as a list.
type combined func(in []*graph.Node) *graph.Node

func one(f func(a *graph.Node) *graph.Node) combined {
	return func(in []*graph.Node) *graph.Node { return f(in[0]) }
}

func two(f func(a, b *graph.Node) *graph.Node) combined {
	return func(in []*graph.Node) *graph.Node { return f(in[0], in[1]) }
}

func three(f func(a, b, c *graph.Node) *graph.Node) combined {
	return func(in []*graph.Node) *graph.Node { return f(in[0], in[1], in[2]) }
}

// operations lists every function of the package for matrices of n, k and m
// rows and columns.
func operations(n, k, m int) []operation {
	transposed := func(a *graph.Node) *graph.Node { return graph.Transpose(a, -2, -1) }
	columns := func(a *graph.Node) *graph.Node { return graph.ReduceAndKeep(a, graph.ReduceSum, -1) }
	return []operation{
		{"Product", [][2]int{{n, k}, {k, m}}, two(ops.Product), two(product)},
		{"Affine", [][2]int{{n, k}, {k, m}, {1, m}}, three(ops.Affine), three(func(a, b, c *graph.Node) *graph.Node { return graph.Add(product(a, b), c) })},
		{"TransposedProduct", [][2]int{{k, n}, {k, m}}, two(ops.TransposedProduct), two(func(a, b *graph.Node) *graph.Node { return product(transposed(a), b) })},
		{"ProductTransposed", [][2]int{{n, k}, {m, k}}, two(ops.ProductTransposed), two(func(a, b *graph.Node) *graph.Node { return product(a, transposed(b)) })},
		{"WeightedSquares", [][2]int{{n, k}, {1, k}}, two(ops.WeightedSquares), two(func(a, b *graph.Node) *graph.Node { return columns(graph.Mul(graph.Square(a), b)) })},
		{"QuadraticForm", [][2]int{{n, k}, {k, m}, {1, m}}, three(ops.QuadraticForm), three(func(a, b, c *graph.Node) *graph.Node {
			return columns(graph.Mul(graph.Square(product(a, b)), c))
		})},
		{"SumRows", [][2]int{{n, m}}, one(ops.SumRows), one(func(a *graph.Node) *graph.Node { return graph.ReduceAndKeep(a, graph.ReduceSum, -2) })},
		{"SumColumns", [][2]int{{n, m}}, one(ops.SumColumns), one(columns)},
		{"ReLU", [][2]int{{n, m}}, one(ops.ReLU), one(func(a *graph.Node) *graph.Node { return graph.MaxScalar(a, 0) })},
		{"LogSumExp", [][2]int{{n, m}}, one(ops.LogSumExp), one(func(a *graph.Node) *graph.Node { return graph.Log(columns(graph.Exp(a))) })},
		{"Exp", [][2]int{{n, m}}, one(ops.Exp), one(graph.Exp)},
		{"Sigmoid", [][2]int{{n, m}}, one(ops.Sigmoid), one(graph.Sigmoid)},
		{"Softmax", [][2]int{{n, m}}, one(ops.Softmax), one(func(a *graph.Node) *graph.Node { return graph.Softmax(a, -1) })},
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
	fixtures.SkipShortOffGo(t)
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

// At sizes for which finite differences would take too long, and at which the Go
// backend has other kernels, values and gradients are those of GoMLX's own operations.
func TestAgainstPlainOperations(t *testing.T) {
	for _, lead := range [][]int{nil, {2}} {
		for _, sizes := range [][3]int{{7, 6, 5}, {64, 50, 17}, {64, 50, 1}, {130, 200, 170}} {
			for _, o := range operations(sizes[0], sizes[1], sizes[2]) {
				t.Run(fmt.Sprintf("%s/replicas=%v/sizes=%v", o.name, lead, sizes), func(t *testing.T) {
					if sizes[0] != 7 {
						fixtures.SkipShortOffGo(t)
					}
					rng := rand.New(rand.NewPCG(3, 4))
					values := o.arguments(rng, lead)
					evaluate := func(f combined) []fixtures.Array {
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

// A gradient of a gradient is that of GoMLX's own operations.
func TestSecondDerivatives(t *testing.T) {
	for _, o := range operations(5, 4, 3) {
		t.Run(o.name, func(t *testing.T) {
			values := o.arguments(rand.New(rand.NewPCG(5, 6)), nil)
			evaluate := func(f combined) []fixtures.Array {
				return fixtures.Evaluate(t, dtypes.Float64, values, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
					y := f(o.nodes(in))
					penalty := graph.ReduceAllSum(graph.Mul(y, ramp(y)))
					for _, first := range graph.Gradient(penalty, o.nodes(in)...) {
						penalty = graph.Add(penalty, graph.ReduceAllSum(graph.Mul(graph.Mul(first, first), ramp(first))))
					}
					return graph.Gradient(penalty, o.nodes(in)...)
				})
			}
			ours := evaluate(o.ours)
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

// Nothing that is computed from exponentials makes a number of what is none, or
// is finite where it overflows: a training that diverged could not be told.
func TestExponentialsAtTheEdges(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
		limit := map[dtypes.DType]float64{dtypes.Float32: 88, dtypes.Float64: 709}[dtype]
		// The lengths take all of the backend's loops: whole vectors and what is left over.
		x := fixtures.Matrix(1, 99, slices.Repeat([]float64{nan, inf, -inf, limit + 3, -limit - 40, limit, 1, -1, 0}, 11)...)
		out := fixtures.Evaluate(t, dtype, fixtures.Values{"x": x}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
			x := in["x"]
			return []*graph.Node{ops.Exp(x), graph.Gradient(graph.ReduceAllSum(ops.Exp(x)), x)[0], ops.Sigmoid(x), ops.ReLU(x)}
		})
		sigmoid := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
		for k, f := range []func(float64) float64{math.Exp, math.Exp, sigmoid, func(v float64) float64 { return max(v, 0) }} {
			for i, v := range x.Values {
				want, got := f(v), out[k].Values[i]
				if v == limit+3 && k < 2 {
					want = inf
				}
				// What underflows may be any number below the least normal one.
				if !scalar.Same(got, want) && (math.IsInf(want, 0) || !scalar.EqualWithinAbs(got, want, 1e-5*math.Abs(want)+1e-30)) {
					t.Errorf("%s, function %d: f(%g) is %g, want %g", dtype, k, v, got, want)
				}
			}
		}
		rows := fixtures.Evaluate(t, dtype, fixtures.Values{"x": fixtures.Matrix(2, 3, 1, nan, 2, 1, -inf, 2)}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{ops.LogSumExp(in["x"]), ops.Softmax(in["x"])}
		})
		if !math.IsNaN(rows[0].Values[0]) || !math.IsNaN(rows[1].Values[0]) || !math.IsNaN(rows[1].Values[2]) {
			t.Errorf("%s: with a NaN among its entries a row has the log-sum-exp %g and the softmax %v", dtype, rows[0].Values[0], rows[1].Values[:3])
		}
		must.Near(t, rows[0].Values[1], math.Log(math.E+math.Exp(2)), 1e-6, "%s: log-sum-exp of 1, -Inf and 2", dtype)
		must.Near(t, rows[1].Values[4], 0, 1e-300, "%s: softmax of -Inf", dtype)
	}
}

// NaN stays NaN, and alone, wherever it stands in arrays of all lengths that the backends' loops tell apart.
func TestNaNStays(t *testing.T) {
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
		for n := 1; n <= 40; n++ {
			x := fixtures.Matrix(1, n, slices.Repeat([]float64{0.25}, n)...)
			f := fixtures.Compile(t, dtype, fixtures.Values{"x": x}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
				x := in["x"]
				return []*graph.Node{ops.ReLU(x), ops.AtLeast(x, 0.125), ops.AtMost(x, 0.5), ops.Sigmoid(x), ops.Exp(x), ops.Softmax(x)}
			})
			for place := range n {
				x.Values[place] = math.NaN()
				for k, y := range f.Call(fixtures.Values{"x": x}) {
					for i, got := range y.Values {
						want := []float64{0.25, 0.25, 0.25, 1 / (1 + math.Exp(-0.25)), math.Exp(0.25)}[min(k, 4)]
						if nan := i == place || k == 5; nan != math.IsNaN(got) || !nan && !scalar.EqualWithinAbs(got, want, 1e-6) {
							t.Fatalf("%s: function %d of %d numbers with NaN in place %d is %v", dtype, k, n, place, y.Values)
						}
					}
				}
				x.Values[place] = 0.25
			}
		}
	}
}

// Sums over very many rows keep their digits in float32, also in gradients of weights and biases.
func TestLongSums(t *testing.T) {
	const n = 400_001
	x := fixtures.Matrix(n, 2, slices.Repeat([]float64{0.1, 0.3}, n)...)
	out := fixtures.Evaluate(t, dtypes.Float32, fixtures.Values{"x": x, "w": fixtures.Matrix(2, 1, 1, 1), "b": fixtures.Matrix(1, 1, 0)}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		x := in["x"]
		y := graph.ReduceAllSum(ops.Affine(x, in["w"], in["b"]))
		return append(graph.Gradient(y, in["w"], in["b"]), ops.SumRows(x), ops.MeanRows(x), ops.Mean(x), ops.TransposedProduct(x, x))
	})
	for i, want := range [][]float64{{0.1 * n, 0.3 * n}, {n}, {0.1 * n, 0.3 * n}, {0.1, 0.3}, {0.2}, {0.01 * n, 0.03 * n, 0.03 * n, 0.09 * n}} {
		for j, got := range out[i].Values {
			must.Near(t, got, want[j], 5e-5*want[j], "number %d of sum %d", j, i)
		}
	}
}

// A value that is used twice gets the sum of both gradients, and two losses of
// one graph get gradients of their own.
func TestWithGradientIsUsedTwice(t *testing.T) {
	x := fixtures.Matrix(1, 2, 1.5, 2)
	times := func(a, b *graph.Node) *graph.Node {
		return ops.WithGradient([]*graph.Node{a, b},
			func(in []*graph.Node) *graph.Node { return graph.Mul(in[0], in[1]) },
			func(_, dy *graph.Node) []*graph.Node { return []*graph.Node{graph.Mul(dy, b), graph.Mul(dy, a)} })
	}
	out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"x": x}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		square := times(in["x"], in["x"])
		cube := times(square, in["x"])
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
