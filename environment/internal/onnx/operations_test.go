//go:build onnx && cgo && linux && amd64

package onnx

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/images"
)

func TestCosInDoublePrecision(t *testing.T) {
	cos := graph.MustNewExec(open(t), graph.Cos)
	for x := -7.0; x < 7; x += 0.1 {
		if got := cos.MustCall1(x).Value().(float64); math.Abs(got-math.Cos(x)) > 1e-15 {
			t.Errorf("cos %g = %g, want %g", x, got, math.Cos(x))
		}
	}
}

func TestReduceWindowRefusesWrongSums(t *testing.T) {
	backend := open(t)
	x := tensors.FromFlatDataAndDimensions([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 1, 3, 3)
	pool := func(padded bool) (*tensors.Tensor, error) {
		return graph.CallOnce(backend, func(x *graph.Node) *graph.Node {
			p := graph.SumPool(x).ChannelsAxis(images.ChannelsFirst).Window(2).Strides(1).NoPadding()
			if padded {
				p = p.PadSame()
			}
			return p.Done()
		}, x)
	}
	sum, err := pool(false)
	if err != nil {
		t.Fatal(err)
	}
	if got := tensors.MustCopyFlatData[float32](sum); !slices.Equal(got, []float32{12, 16, 24, 28}) {
		t.Errorf("sums over windows are %v", got)
	}
	if _, err := pool(true); !errors.Is(err, compute.ErrNotImplemented) {
		t.Errorf("padded sum: error %v, want ErrNotImplemented", err)
	}
}

// random is a tensor of normal noise.
func random(rng *rand.Rand, dims ...int) *tensors.Tensor {
	size := 1
	for _, d := range dims {
		size *= d
	}
	values := make([]float32, size)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	return tensors.FromFlatDataAndDimensions(values, dims...)
}

// compareWithGo evaluates f on both backends and compares every output.
func compareWithGo(t *testing.T, f func(in []*graph.Node) []*graph.Node, inputs ...*tensors.Tensor) {
	t.Helper()
	outputs := func(backend compute.Backend) []*tensors.Tensor {
		var args []any
		for _, in := range inputs {
			args = append(args, must(t, in.LocalClone))
		}
		return must(t, func() ([]*tensors.Tensor, error) { return graph.CallOnceN(backend, f, args...) })
	}
	want := outputs(pureGo(t))
	for k, got := range outputs(open(t)) {
		if !got.Shape().Equal(want[k].Shape()) {
			t.Errorf("output %d has shape %s, on the pure Go backend %s", k, got.Shape(), want[k].Shape())
			continue
		}
		exact := tensors.MustCopyFlatData[float32](want[k])
		largest := max(slices.Max(exact), -slices.Min(exact))
		for i, v := range tensors.MustCopyFlatData[float32](got) {
			if !(math.Abs(float64(v-exact[i])) <= 2e-5*float64(largest)) {
				t.Errorf("output %d, entry %d is %g, on the pure Go backend %g", k, i, v, exact[i])
				break
			}
		}
	}
}

func must[T any](t *testing.T, f func() (T, error)) T {
	t.Helper()
	value, err := f()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestPad(t *testing.T) {
	backend := open(t)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, p := range []graph.PadAxis{
		{}, {Start: 1}, {End: 2}, {Interior: 2}, {Start: 2, End: 1, Interior: 1}, {Start: 1, End: 3}, {Start: -1},
		{End: -2, Interior: 1}, {Start: -1, End: -1, Interior: 3}, {Start: -2, End: 3, Interior: 1},
	} {
		for _, n := range []int{1, 3, 4} {
			size := n + (n-1)*p.Interior + p.Start + p.End
			if size < 1 {
				continue
			}
			x := random(rng, 2, n, 3)
			padded := must(t, func() (*tensors.Tensor, error) {
				return graph.CallOnce(backend, func(x *graph.Node) *graph.Node {
					return graph.Pad(x, graph.Scalar(x.Graph(), x.DType(), 7), graph.PadAxis{}, p)
				}, must(t, x.LocalClone))
			})
			values, got := tensors.MustCopyFlatData[float32](x), tensors.MustCopyFlatData[float32](padded)
			for i := range got {
				want := float32(7)
				if from := i/3%size - p.Start; from >= 0 && from%(1+p.Interior) == 0 && from/(1+p.Interior) < n {
					want = values[(i/3/size*n+from/(1+p.Interior))*3+i%3]
				}
				if len(got) != 2*size*3 || got[i] != want {
					t.Fatalf("axis of %d, padding %+v: entry %d of %d is %g, want %g of %d", n, p, i, len(got), got[i], want, 2*size*3)
				}
			}
		}
	}
}

// The gradient of a strided convolution is one over a dilated input, of one
// that does not fit the stride one with negative padding.
func TestConvolutionsAndTheirGradients(t *testing.T) {
	open(t)
	rng := rand.New(rand.NewPCG(5, 6))
	first := graph.ConvolveAxesConfig{
		InputBatch: 1, InputChannels: 0, InputSpatial: []int{2, 3},
		KernelOutputChannels: 0, KernelInputChannels: 1, KernelSpatial: []int{2, 3},
		OutputBatch: 1, OutputChannels: 0, OutputSpatial: []int{2, 3},
	}
	second := first
	second.InputBatch, second.InputChannels, second.OutputBatch, second.OutputChannels = 0, 1, 0, 1
	for _, c := range []struct{ size, stride, padding, height, width int }{
		{1, 1, 0, 4, 5}, {1, 2, 0, 5, 4}, {3, 1, 1, 4, 4}, {3, 1, 0, 5, 4}, {3, 2, 1, 4, 4},
		{3, 2, 1, 5, 7}, {3, 3, 1, 7, 8}, {5, 2, 2, 6, 7}, {2, 3, 0, 6, 7},
	} {
		for _, axes := range []graph.ConvolveAxesConfig{first, second} {
			dims := []int{0, 0, c.height, c.width}
			dims[axes.InputBatch], dims[axes.InputChannels] = 2, 3
			compareWithGo(t, func(in []*graph.Node) []*graph.Node {
				x, kernel := in[0], in[1]
				pad := [][2]int{{c.padding, c.padding}, {c.padding, c.padding}}
				y := graph.Convolve(x, kernel).AxesConfig(axes).Strides(c.stride).PaddingPerDim(pad).Done()
				return append(graph.Gradient(graph.ReduceAllSum(graph.Square(y)), x, kernel), y)
			}, random(rng, dims...), random(rng, 4, 3, c.size, c.size))
			if t.Failed() {
				t.Fatalf("%+v over axes %v", c, dims)
			}
		}
	}
}

// The library takes no time for what no output needs.
func TestUnneededOperationsAreLeftOut(t *testing.T) {
	f := open(t).Builder("test").Main()
	x, err := f.Parameter("x", shapes.Make(dtypes.Float32, 2, 3), nil)
	if err != nil {
		t.Fatal(err)
	}
	y, err := f.Cos(x)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Exp(y); err != nil {
		t.Fatal(err)
	}
	if err := f.Return([]compute.Value{y}, nil); err != nil {
		t.Fatal(err)
	}
	nodes := reflect.ValueOf(f.(*function).Function).Elem().FieldByName("nodes")
	var kept []string
	for i := range nodes.Len() {
		kept = append(kept, nodes.Index(i).Elem().FieldByName("opType").String())
	}
	if !slices.Equal(kept, []string{"Parameter", "Cos"}) {
		t.Errorf("the operations of cos x are %v", kept)
	}
}

// The gradient of a maximum uses the second of the two outputs of an operation.
func TestGradientOfMaximum(t *testing.T) {
	x := tensors.FromFlatDataAndDimensions([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 1, 1, 2, 4)
	gradient := must(t, func() (*tensors.Tensor, error) {
		return graph.CallOnce(open(t), func(x *graph.Node) *graph.Node {
			y := graph.MaxPool(x).ChannelsAxis(images.ChannelsFirst).Window(2).Done()
			return graph.Gradient(graph.ReduceAllSum(graph.Square(y)), x)[0]
		}, x)
	})
	if got := tensors.MustCopyFlatData[float32](gradient); !slices.Equal(got, []float32{0, 0, 0, 0, 0, 12, 0, 16}) {
		t.Errorf("the gradient of 6^2 + 8^2 is %v", got)
	}
}

func TestWhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	compareWithGo(t, func(in []*graph.Node) []*graph.Node {
		x, y := in[0], in[1]
		no, yes := graph.Const(x.Graph(), false), graph.Const(x.Graph(), true)
		return []*graph.Node{
			graph.Where(no, x, graph.Exp(y)), graph.Where(yes, x, y), graph.Where(graph.GreaterThan(x, y), x, y),
			graph.Where(no, x, graph.ScalarOne(x.Graph(), x.DType())),
		}
	}, random(rng, 2, 3), random(rng, 2, 3))
}

func TestGatherSlices(t *testing.T) {
	compareWithGo(t, func(in []*graph.Node) []*graph.Node {
		x := in[0]
		start := func(rows [][]int32) *graph.Node { return graph.Const(x.Graph(), rows) }
		return []*graph.Node{
			graph.GatherSlices(x, []int{1, 3}, start([][]int32{{0, 2}, {3, 0}, {1, 1}}), []int{2, 3}, false),
			graph.GatherSlices(x, []int{0, 3}, start([][]int32{{0, 4}, {1, 0}}), []int{1, 2}, false),
			graph.GatherSlices(x, []int{2}, start([][]int32{{1}}), []int{2}, true),
			graph.Gather(x, start([][]int32{{1, 2}, {0, 4}})),
		}
	}, random(rand.New(rand.NewPCG(11, 12)), 2, 5, 3, 6))
}
