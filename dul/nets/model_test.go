package nets_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
)

// newModel is an untrained model in double precision.
func newModel(t *testing.T, network nets.Network, l likelihood.Likelihood, seed uint64) *nets.Model {
	t.Helper()
	m := must.Get(nets.New(fixtures.Backend(t), network, l, seed))(t)
	m.DType = dtypes.Float64
	return m
}

// Replicas have their noise from the host, as all models on the pure Go backend, and each its own parameters.
func TestNewReplicas(t *testing.T) {
	m := must.Get(nets.NewReplicas(fixtures.Backend(t), nets.MLP{Layers: baselines.VDropout{}}, likelihood.Gaussian{}, 1, 2))(t)
	if m.Host == nil || m.Replicas != 2 || !slices.Equal(m.Seeds(), []uint64{1, 2}) {
		t.Errorf("host %v, %d replicas, seeds %v", m.Host, m.Replicas, m.Seeds())
	}
	if single := newModel(t, m.Network, m.Likelihood, 1); (single.Host != nil) != ops.IsGo(single.Backend) {
		t.Errorf("a single model has the host %v on backend %s", single.Host, single.Backend.Name())
	}
	must.GetErr(m.NoiseVariances())(t) // an untrained model has noise variances
	out := must.Get(model.CallOnce(m.Backend, m.Store, func(root *model.Scope, x *graph.Node) *graph.Node {
		s := m.Scope(root)
		y, logVariance := likelihood.Gaussian{}.Moments(s, m.Apply(s, x))
		return graph.Add(y, graph.ZerosLike(logVariance))
	}, fixtures.Tensor(m.DType, fixtures.Zeros(2, 3, 2).Map(func(float64) float64 { return 1 }))))(t)
	y := fixtures.FromTensor(t, out)
	if !slices.Equal(y.Dims, []int{2, 3, 1}) || y.Values[0] == y.Values[3] {
		t.Errorf("outputs %+v", y)
	}
	if variances := must.Get(m.NoiseVariances())(t); !slices.Equal(variances, []float64{1, 1}) {
		t.Errorf("noise variances %v of untrained replicas, want 1", variances)
	}
}

// Stored results and the page with live trainings have these seeds, of which no two are equal.
func TestSeedOf(t *testing.T) {
	if got := nets.SeedOf(7, 2, 4); got != 2267283393990046362 {
		t.Errorf("the seed is %d", got)
	}
	seen := map[uint64]bool{}
	for seed := range uint64(40) {
		for split := range 20 {
			for member := range 5 {
				seen[nets.SeedOf(seed, split, member)] = true
			}
		}
	}
	if len(seen) != 40*20*5 {
		t.Errorf("%d different seeds", len(seen))
	}
}

func TestBadModels(t *testing.T) {
	network := tiny(baselines.Deterministic{})
	must.GetErr(nets.New(fixtures.Backend(t), nil, likelihood.Gaussian{}, 1))(t, "without a network")
	must.GetErr(nets.New(nil, network, likelihood.Gaussian{}, 1))(t, "without a backend")
	must.GetErr(nets.NewReplicas(fixtures.Backend(t), network, likelihood.Gaussian{}))(t, "no replicas")
}

// broken is a family that cannot be built, and says so by a text.
type broken struct{}

func (broken) Dense(*model.Scope, *graph.Node, int) *graph.Node { panic("no layer") }

func (broken) Conv(*model.Scope, *graph.Node, conv.Spec) *graph.Node { panic("no layer") }

// wider is a family whose layers have a unit too many.
type wider struct{ baselines.Deterministic }

func (l wider) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return l.Deterministic.Dense(s, x, units+1)
}

// Outputs that the likelihood cannot take, and a network without layers, are errors where the network is applied.
func TestNetworksThatCannotBeApplied(t *testing.T) {
	plain := baselines.Deterministic{}
	for want, network := range map[string]nets.Network{
		"outputs of shape (Float64)[2, 2], where the likelihood of type likelihood.Gaussian needs 1": nets.MLP{Layers: wider{}},
		"nets.MLP.Layers is nil":         nets.MLP{Widths: []int{2}},
		"nets.ResidualMLP.Layers is nil": nets.ResidualMLP{Head: plain, Width: 2, Depth: 1},
		"nets.ResidualMLP.Head is nil":   nets.ResidualMLP{Layers: plain, Width: 2, Depth: 1},
		"nets.ResidualSum.Layers is nil": nets.ResidualSum{Width: 2, Depth: 1},
	} {
		t.Run(want, func(t *testing.T) {
			m := newModel(t, network, likelihood.Gaussian{}, 1)
			must.GetErr(model.CallOnce(m.Backend, m.Store, func(root *model.Scope, x *graph.Node) *graph.Node {
				return m.Apply(m.Scope(root), x)
			}, fixtures.Tensor(m.DType, fixtures.Zeros(2, 3))))(t, want)
		})
	}
}

// Inputs of another shape than a network takes are an error before a parameter is made,
// so that the model can be used with others.
func TestInputsOfAnotherShape(t *testing.T) {
	plain := baselines.Deterministic{}
	sum := nets.ResidualSum{Layers: plain, Width: 2, Depth: 1}
	residual := nets.ResidualMLP{Layers: plain, Head: plain, Width: 2, Depth: 1}
	for _, c := range []struct {
		name    string
		network nets.Network
		seeds   []uint64
		input   []int
		want    string // "" for inputs that the network takes
	}{
		{"one axis", nets.MLP{Layers: plain}, nil, []int{4}, "type nets.MLP takes inputs [batch, features], and these are (Float64)[4]: give nets.Rows("},
		{"two axes of features", nets.MLP{Layers: plain}, nil, []int{4, 2, 3}, "and these are (Float64)[4, 2, 3]: give nets.Rows("},
		{"an image", nets.MLP{Layers: plain}, nil, []int{3, 4, 8, 8}, "images are for nets.ResNet"},
		{"a pointer", &nets.MLP{Layers: plain}, nil, []int{4, 2, 3}, "type *nets.MLP takes inputs [batch, features]"},
		{"a residual network", residual, nil, []int{4, 2, 3}, "type nets.ResidualMLP takes inputs [batch, features]"},
		{"sums", sum, nil, []int{4, 2, 3}, "type nets.ResidualSum takes inputs [batch, features]"},
		{"all sums", sum.Sums(), nil, []int{4, 2, 3}, "takes inputs [batch, features]"},
		{"replicas without features", nets.MLP{Layers: plain}, []uint64{1, 2}, []int{2, 4}, "takes inputs [2 replicas, batch, features]"},
		{"replicas with two axes", nets.MLP{Layers: plain}, []uint64{1, 2}, []int{2, 4, 2, 3}, "takes inputs [2 replicas, batch, features]"},
		{"a row for a ResNet", tiny(plain), nil, []int{4, 3}, "takes images [channels, batch, height, width], and these inputs are (Float64)[4, 3]: give nets.Pixels"},

		{"one feature", nets.MLP{Layers: plain}, nil, []int{4, 1}, ""},
		{"replicas", nets.MLP{Layers: plain}, []uint64{1, 2}, []int{2, 4, 1}, ""},
		{"a single replica", residual, []uint64{1}, []int{1, 4, 3}, ""},
		{"images", tiny(plain), nil, []int{3, 4, 8, 8}, ""},
		{"a network of your own", flattening{nets.MLP{Layers: plain}}, nil, []int{4, 2, 3}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newModel(t, c.network, likelihood.Gaussian{}, 1)
			if c.seeds != nil {
				m = must.Get(nets.NewReplicas(fixtures.Backend(t), c.network, likelihood.Gaussian{}, c.seeds...))(t)
			}
			_, err := model.CallOnce(m.Backend, m.Store, func(root *model.Scope, x *graph.Node) *graph.Node {
				root.Store().SetTraining(x.Graph(), true) // for batch normalisation
				return m.Apply(m.Scope(root), x)
			}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(c.input...)))
			switch {
			case c.want == "":
				must.Do(t, err)
			case err == nil || !strings.Contains(err.Error(), c.want):
				t.Errorf("the error is %v, want one with %q", err, c.want)
			default:
				for v := range m.Scope(m.Store.RootScope()).IterVariables() {
					t.Errorf("there is the variable %s", v.Path())
				}
			}
		})
	}
}

// flattening is an MLP of inputs of several axes.
type flattening struct{ nets.MLP }

func (f flattening) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	return f.MLP.Apply(s, graph.Reshape(x, x.Shape().Dim(0), -1), outputs)
}

// What a function panics with is an error, and names the function where it does not say more.
func TestPanicWithError(t *testing.T) {
	known, none := errors.New("known"), []int{}
	for _, c := range []struct {
		name  string
		panic func()
		want  string
		is    error
	}{
		{"nothing", func() {}, "", nil},
		{"a text", func() { panic("no layer") }, "layers of type int: no layer", nil},
		{"a number", func() { panic(3) }, "layers of type int: 3", nil},
		{"an error", func() { panic(known) }, "known", known},
		{"nil", func() { panic(nil) }, "layers of type int: runtime error: panic called with nil argument", nil},
		{"an index", func() { _ = none[len(none)] }, "layers of type int: runtime error: index out of range [0] with length 0", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				got := recover()
				if err, is := got.(error); got == nil && c.want != "" || got != nil && !is || is && !strings.HasPrefix(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("the panic is with %T %v, want an error that begins with %q", got, got, c.want)
				}
			}()
			func() {
				defer nets.PanicWithError("layers of type %T", 1)
				c.panic()
			}()
		})
	}
}

// What a family panics with is an error of the call, dense or convolution, also where
// only its parameters are counted, and the model can be used and freed afterwards.
func TestBrokenFamily(t *testing.T) {
	for _, c := range []struct {
		name    string
		network nets.Network
		input   []int
	}{
		{"dense", nets.MLP{Layers: broken{}}, []int{2, 3}},
		{"residual", nets.ResidualMLP{Layers: baselines.Deterministic{}, Head: broken{}, Width: 2, Depth: 1}, []int{2, 3}},
		{"convolution", tiny(broken{}), []int{3, 2, 8, 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newModel(t, c.network, likelihood.Gaussian{}, 1)
			exec := must.Get(model.NewExec(m.Backend, m.Store, func(root *model.Scope, x *graph.Node) *graph.Node {
				return m.Apply(m.Scope(root), x)
			}))(t)
			for range 2 {
				must.GetErr(exec.Call1(fixtures.Tensor(m.DType, fixtures.Zeros(c.input...))))(t, "no layer")
			}
			exec.Finalize()
		})
	}
	if _, err := nets.Parameters(fixtures.Backend(t), tiny(broken{}), 3, 8, 8, 10); err == nil || err.Error() != "counting parameters: layer /stem of type nets_test.broken, for inputs (Float32)[3, 1, 8, 8]: building it: no layer" {
		t.Errorf("counting: %v", err)
	}
}

// asked is a network that notes how many outputs it was asked for.
type asked struct{ outputs *int }

func (a asked) Apply(_ *model.Scope, x *graph.Node, outputs int) *graph.Node {
	*a.outputs = outputs
	return x
}

// A part of a network is asked for the outputs of the whole.
func TestWithAsksForTheOutputs(t *testing.T) {
	m := must.Get(nets.New(fixtures.Backend(t), nets.MLP{Layers: baselines.Deterministic{}}, likelihood.Categorical{Classes: 3}, 1))(t)
	outputs := 0
	must.Get(predict.Sample(t.Context(), m.With(asked{&outputs}), nets.Rows([]float64{1, 2}, 2), predict.Options{Samples: 1}))(t)
	if outputs != 3 {
		t.Errorf("it was asked for %d outputs, want 3", outputs)
	}
}

// Bytes become standardised values with the channel first.
func TestImages(t *testing.T) {
	// Two images of two channels of 1 x 2 pixels.
	pixels := tensors.FromFlatDataAndDimensions([]uint8{0, 255, 51, 102, 255, 0, 204, 153}, 2, 2, 1, 2)
	p := nets.Standardization{Mean: []float64{0.5, 0.2}, Std: []float64{0.25, 0.1}}
	want := fixtures.Array{Dims: []int{2, 2, 1, 2}, Values: []float64{-2, 2, 2, -2, 0, 2, 6, 4}}
	for dtype, tolerance := range map[dtypes.DType]float64{dtypes.Float64: 1e-15, dtypes.Float32: 1e-6} {
		out := must.Get(graph.CallOnce(fixtures.Backend(t), func(x *graph.Node) *graph.Node { return p.Images(x, dtype) }, pixels))(t)
		if out.DType() != dtype {
			t.Errorf("the images have type %s, want %s", out.DType(), dtype)
		}
		fixtures.Compare(t, "images", fixtures.FromTensor(t, out), want, tolerance)
	}
}

// Floats without the shape of one input are an error, and so are shapes that no input has.
func TestBadFloats(t *testing.T) {
	for want, f := range map[string]nets.Floats{
		"6 input values without the Shape of one input; give nets.Rows(values, features)": {Values: make([]float64, 6)},
		"6 input values are not a positive number of inputs of shape [-2 -3]":             {Values: make([]float64, 6), Shape: []int{-2, -3}},
		"6 input values are not a positive number of inputs of shape [2 0]":               {Values: make([]float64, 6), Shape: []int{2, 0}},
		"6 input values are not a positive number of inputs of shape [4]":                 {Values: make([]float64, 6), Shape: []int{4}},
	} {
		must.Err(t, nets.CheckInputs(f), want)
	}
	for _, shape := range [][]int{{1}, {3}, {2, 3}} {
		if err := nets.CheckInputs(nets.Floats{Values: make([]float64, 6), Shape: shape}); err != nil {
			t.Errorf("shape %v: %v", shape, err)
		}
	}
}

// A single gray pixel is an image; without a channel, row or column there is none.
func TestPixelsCheck(t *testing.T) {
	one := nets.Pixels{Bytes: []byte{7}, Height: 1, Width: 1, Standardization: nets.Standardization{Mean: []float64{0.5}, Std: []float64{0.25}}}
	if err := one.Check(); err != nil || one.Len() != 1 {
		t.Errorf("%d images, error %v", one.Len(), err)
	}
	for name, change := range map[string]func(p *nets.Pixels){
		"0 x 1 pixels":     func(p *nets.Pixels) { p.Height = 0 },
		"1 x 0 pixels":     func(p *nets.Pixels) { p.Width = 0 },
		"0 channel means":  func(p *nets.Pixels) { p.Standardization = nets.Standardization{} },
		"0 bytes":          func(p *nets.Pixels) { p.Bytes = nil },
		"of 2 bytes each":  func(p *nets.Pixels) { p.Width, p.Bytes = 2, []byte{1, 2, 3} },
		"1 means and 0":    func(p *nets.Pixels) { p.Standardization.Std = nil },
		"deviation 0;":     func(p *nets.Pixels) { p.Standardization.Std = []float64{0} },
		"deviation +Inf;":  func(p *nets.Pixels) { p.Standardization.Std = []float64{math.Inf(1)} },
		"channel 0 is NaN": func(p *nets.Pixels) { p.Standardization.Mean = []float64{math.NaN()} },
	} {
		broken := one
		change(&broken)
		must.Err(t, broken.Check(), name)
	}
}
