package conv_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
)

// geometries are the windows and image sizes of the tests: strides, paddings and
// sizes beyond those of the networks, and images that the stride does not divide.
var geometries = []struct {
	window        conv.Window
	height, width int
}{
	{conv.Same(1, 1), 4, 5}, {conv.Same(1, 2), 4, 5}, {conv.Same(1, 2), 5, 4},
	{conv.Same(3, 1), 4, 4}, {conv.Same(3, 1), 1, 1}, {conv.Same(3, 1), 3, 7}, {conv.Same(3, 1), 2, 1},
	{conv.Same(3, 2), 4, 4}, {conv.Same(3, 2), 5, 7}, {conv.Same(3, 2), 6, 5},
	{conv.Window{Size: 3, Stride: 1, Padding: 0}, 5, 4}, {conv.Window{Size: 3, Stride: 2, Padding: 0}, 6, 7}, {conv.Window{Size: 3, Stride: 3, Padding: 1}, 7, 8},
	{conv.Same(5, 1), 5, 6}, {conv.Same(5, 2), 6, 7}, {conv.Window{Size: 2, Stride: 1, Padding: 0}, 4, 3}, {conv.Window{Size: 2, Stride: 2, Padding: 1}, 5, 4},
	{conv.Window{Size: 1, Stride: 1, Padding: 1}, 3, 3}, {conv.Window{Size: 2, Stride: 3, Padding: 2}, 5, 6}, {conv.Window{Size: 4, Stride: 2, Padding: 1}, 8, 7},
	{conv.Same(3, 1), 1, 6}, {conv.Same(5, 2), 1, 7},
}

// byDefinition is the sum of Convolve's doc comment.
func byDefinition(x, kernel fixtures.Array, w conv.Window) fixtures.Array {
	channels, batch, height, width := x.Dims[0], x.Dims[1], x.Dims[2], x.Dims[3]
	filters := kernel.Dims[0]
	high, wide := w.Out(height, width)
	y := fixtures.Zeros(filters, batch, high, wide)
	at := 0
	for f := range filters {
		for n := range batch {
			for i := range high {
				for j := range wide {
					for k := range channels * w.Pixels() {
						c, u, v := k/w.Pixels(), k/w.Size%w.Size, k%w.Size
						row, column := i*w.Stride+u-w.Padding, j*w.Stride+v-w.Padding
						if row >= 0 && row < height && column >= 0 && column < width {
							y.Values[at] += kernel.Values[f*kernel.Dims[1]+k] * x.Values[((c*batch+n)*height+row)*width+column]
						}
					}
					at++
				}
			}
		}
	}
	return y
}

// Both forms, and their gradients, agree with each other and with the definition.
func TestConvolve(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	const channels, filters, batch = 3, 4, 35 // more images than imagesAtOnce
	for _, g := range geometries {
		t.Run(fmt.Sprintf("%+v on %dx%d", g.window, g.height, g.width), func(t *testing.T) {
			w := g.window
			x := fixtures.Random(rng, channels, batch, g.height, g.width)
			kernel := fixtures.Random(rng, filters, channels*w.Pixels())
			want := byDefinition(x, kernel, w)
			values := fixtures.Values{"x": x, "kernel": kernel, "ct": fixtures.Random(rng, want.Dims...)}
			both := func(_ *model.Scope, in fixtures.Nodes) (outputs []*graph.Node) {
				for _, form := range []func(x, kernel *graph.Node, w conv.Window) *graph.Node{conv.ByProducts, conv.Native} {
					y := form(in["x"], in["kernel"], w)
					loss := graph.ReduceAllSum(graph.Mul(y, in["ct"]))
					outputs = append(append(outputs, y), graph.Gradient(loss, in["x"], in["kernel"])...)
				}
				return outputs
			}
			for _, precision := range []struct {
				dtype     dtypes.DType
				tolerance float64
			}{{dtypes.Float64, 1e-13}, {dtypes.Float32, 1e-5}} {
				results := fixtures.Evaluate(t, precision.dtype, values, nil, both)
				products, natives := results[:3], results[3:]
				fixtures.Compare(t, "products", products[0], want, precision.tolerance)
				for i, what := range []string{"output", "gradient of x", "gradient of the kernel"} {
					fixtures.Compare(t, what, products[i], natives[i], precision.tolerance)
				}
			}
		})
	}
}

// In bfloat16 output and gradients are those of single precision to about the
// rounding 2^-9 of their factors; in full precision they are the same.
func TestBFloat16(t *testing.T) {
	third := fixtures.Values{"x": fixtures.Matrix(1, 1, 1.0/3)}
	rounded := fixtures.Evaluate(t, dtypes.Float32, third, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{graph.ConvertDType(graph.ConvertDType(in["x"], dtypes.BFloat16), dtypes.Float32)}
	})
	if fixtures.RelativeError(t, "a third", rounded[0], third["x"]) < 1e-5 {
		t.Skip("this backend takes roundings to bfloat16 out")
	}
	rng := rand.New(rand.NewPCG(7, 11))
	w := conv.Same(3, 2)
	values := fixtures.Values{
		"x": fixtures.Random(rng, 8, 4, 6, 6), "kernel": fixtures.Random(rng, 5, 8*9), "ct": fixtures.Random(rng, 5, 4, 3, 3),
	}
	evaluate := func(narrow bool, convolve func(x, kernel *graph.Node, w conv.Window) *graph.Node) []fixtures.Array {
		return fixtures.Evaluate(t, dtypes.Float32, values, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
			if narrow {
				params.FactsOf(in["x"].Graph()).BFloat16 = true
			}
			y := convolve(in["x"], in["kernel"], w)
			return append(graph.Gradient(graph.ReduceAllSum(graph.Mul(y, in["ct"])), in["x"], in["kernel"]), y)
		})
	}
	full, narrow, asked := evaluate(false, conv.Native), evaluate(true, conv.Native), evaluate(true, conv.NativeInFullPrecision)
	for i := range full {
		fixtures.Compare(t, "full precision", asked[i], full[i], 0)
		fixtures.Compare(t, "bfloat16", narrow[i], full[i], 1.0/100)
		if fixtures.RelativeError(t, "bfloat16", narrow[i], full[i]) < 1e-5 {
			t.Error("the product was not rounded to bfloat16")
		}
	}
}

// The energy of a rank-1 Gaussian, 1/2 (x^T D^-1 x - (v^T D^-1 x)^2 / (1 + v^T D^-1 v)), is the difference of two large
// sums. On a GPU that keeps 11 binary digits of each factor it is that of float64 to 1e-4 in full precision, and not to
// 2e-3 without it.
func TestFullPrecisionOnGPUs(t *testing.T) {
	const n, d, variance = 500, 144, 0.2 // D = variance I
	rng := rand.New(rand.NewPCG(1, 2))
	single := func(entry float64) float64 { return float64(float32(entry)) }
	x, want := fixtures.Zeros(d, n, 1, 1), fixtures.Zeros(1, n)
	scaled := fixtures.Random(rng, 1, d).Map(func(v float64) float64 { return single(v / variance) })
	capacity := 1.0
	for _, entry := range scaled.Values {
		capacity += entry * entry * variance
	}
	for i := range n {
		common, along := rng.NormFloat64(), 0.0
		for c := range d {
			entry := single(common*scaled.Values[c]*variance + math.Sqrt(variance)*rng.NormFloat64())
			x.Values[c*n+i] = entry
			want.Values[i] += entry * entry / variance / 2
			along += entry * scaled.Values[c]
		}
		want.Values[i] -= along * along / capacity / 2
	}
	energy := func(full bool) fixtures.Array {
		precision := fixtures.Zeros(1, d).Map(func(float64) float64 { return 1 / variance })
		return fixtures.Evaluate(t, dtypes.Float32, fixtures.Values{"x": x, "precision": precision, "scaled": scaled}, nil,
			func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
				pixel := conv.Same(1, 1)
				diagonal := conv.TF32(graph.Mul(in["x"], in["x"]), in["precision"], pixel, full)
				along := conv.TF32(in["x"], in["scaled"], pixel, full)
				double := func(y *graph.Node) *graph.Node { return graph.Reshape(graph.ConvertDType(y, dtypes.Float64), 1, n) }
				return []*graph.Node{graph.MulScalar(graph.Sub(double(diagonal), graph.DivScalar(graph.Square(double(along)), capacity)), 0.5)}
			})[0]
	}
	fixtures.Compare(t, "in full precision", energy(true), want, 1e-4)
	if off := fixtures.RelativeError(t, "in TF32", energy(false), want); off < 2e-3 {
		t.Errorf("in TF32 only %g off: the test emulates nothing", off)
	}
}
