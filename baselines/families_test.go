package baselines_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// A family has layers of vectors and of images.
type family interface {
	Dense(s *model.Scope, x *graph.Node, units int) *graph.Node
	Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node
}

// A variant is a family with one choice of its settings, and what it has.
type variant struct {
	name   string
	layers family
	checks layertest.Checks
	// hasKL says whether the layers add a divergence to the objective.
	hasKL bool
	// moments of the output, for vectors and for images alike; nil states none.
	moments func(l linear, i int) (mean, variance float64)
}

// checkFamilies runs all checks of package layertest for vectors and images.
func checkFamilies(t *testing.T, variants []variant) {
	for i, v := range variants {
		for _, k := range []struct {
			name string
			run  func(t testing.TB, checks layertest.Checks)
			x    fixtures.Array
			of   func(s *model.Scope, x *graph.Node) *graph.Node
		}{
			{
				"Dense", func(t testing.TB, checks layertest.Checks) { checks.Dense(t, v.layers) }, fixtures.Zeros(2, 3),
				func(s *model.Scope, x *graph.Node) *graph.Node { return v.layers.Dense(s, x, 2) },
			},
			{
				"Conv", func(t testing.TB, checks layertest.Checks) { checks.Conv(t, v.layers) }, fixtures.Zeros(2, 1, 3, 3),
				func(s *model.Scope, x *graph.Node) *graph.Node { return v.layers.Conv(s, x, layertest.MomentsSpec) },
			},
		} {
			t.Run(v.name+"/"+k.name, func(t *testing.T) {
				if i > 0 {
					fixtures.SkipShortOffGo(t)
				}
				checks := v.checks
				if v.moments != nil {
					checks.Moments = v.statedMoments
				}
				k.run(t, checks)
				must.Get(model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
					y := k.of(s, x)
					if has := stochastic.LayerLossesOf(x.Graph()).KL != nil; has != v.hasKL {
						t.Errorf("the layer has a KL: %t, want %t", has, v.hasKL)
					}
					return y
				}, fixtures.Tensor(dtypes.Float32, k.x)))(t)
			})
		}
	}
}

// A layer that cannot be built is refused while its graph is built.
func TestRefusedShapes(t *testing.T) {
	spec := func(filters int) conv.Spec { return conv.Spec{Filters: filters, Window: conv.Same(3, 1)} }
	for name, layers := range map[string]family{
		"dul.Density": dul.Density{}, "baselines.Deterministic": baselines.Deterministic{}, "baselines.MFVI": baselines.MFVI{},
		"baselines.Rank1": baselines.Rank1{}, "baselines.VDropout": baselines.VDropout{}, "baselines.MCDropout": baselines.MCDropout{},
		"baselines.SpectralNormed": baselines.SpectralNormed{}, "baselines.SNGP": baselines.SNGP{Examples: 2},
		"baselines.DUE": baselines.DUE{Start: []baselines.Inducing{{Points: []float64{0, 1}, LengthScale: 1}}},
	} {
		dense := func(units int) func(s *model.Scope, x *graph.Node) *graph.Node {
			return func(s *model.Scope, x *graph.Node) *graph.Node { return layers.Dense(s, x, units) }
		}
		convolution := func(filters int) func(s *model.Scope, x *graph.Node) *graph.Node {
			return func(s *model.Scope, x *graph.Node) *graph.Node { return layers.Conv(s, x, spec(filters)) }
		}
		for _, c := range []struct {
			of    func(s *model.Scope, x *graph.Node) *graph.Node
			shape shapes.Shape
			want  string
		}{
			{dense(0), shapes.Make(dtypes.Float32, 5, 2), ""},
			{dense(-1), shapes.Make(dtypes.Float64, 5, 2), "shape"},
			{dense(3), shapes.Make(dtypes.Float32, 5, 0), ""},
			{dense(3), shapes.Make(dtypes.Float32, 5), ""},
			{dense(3), shapes.Make(dtypes.Float16, 5, 2), "Float16"},
			{dense(3), shapes.Make(dtypes.Int32, 5, 2), "Int32"},
			{convolution(0), shapes.Make(dtypes.Float32, 2, 5, 4, 4), "at least one unit or filter"},
			{convolution(3), shapes.Make(dtypes.Float32, 5, 4, 4), ""},
			{convolution(3), shapes.Make(dtypes.Float32, 2, 5, 4, 0), ""},
			{convolution(3), shapes.Make(dtypes.BFloat16, 2, 5, 4, 4), "BFloat16"},
		} {
			t.Run(fmt.Sprintf("%s of %s", name, c.shape), func(t *testing.T) {
				_, err := model.CallOnce(fixtures.Backend(t), newStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
					return c.of(s.In("layer"), x)
				}, tensors.FromShape(c.shape))
				if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), ", ", " "), c.want) {
					t.Errorf("error %v lacks %q", err, c.want)
				}
			})
		}
	}
}

// Settings that cannot be are errors that name the field, for vectors and for images.
func TestRefusedSettings(t *testing.T) {
	start := []baselines.Inducing{{Points: []float64{0, 1, 2}, LengthScale: 1}}
	for _, c := range []struct {
		want   string
		layers family
	}{
		{"baselines.MFVI.InitStd is -1", baselines.MFVI{InitStd: -1}},
		{"baselines.MFVI.PriorStd is -1", baselines.MFVI{PriorStd: -1}},
		{"baselines.MFVI.PriorStd is +Inf", baselines.MFVI{PriorStd: math.Inf(1)}},
		{"baselines.Rank1.InitStd is NaN", baselines.Rank1{InitStd: math.NaN()}},
		{"baselines.Rank1.PriorStd is -1", baselines.Rank1{PriorStd: -1}},
		{"baselines.VDropout.Alpha is -1", baselines.VDropout{Alpha: -1}},
		{"dropout rate is -1", baselines.MCDropout{Rate: -1}},
		{"baselines.SpectralNormed.Bound is -1", baselines.SpectralNormed{Bound: -1}},
		{"baselines.SNGP.LengthScale is -1", baselines.SNGP{Examples: 2, LengthScale: -1}},
		{"baselines.SNGP.FeatureScale is NaN", baselines.SNGP{Examples: 2, FeatureScale: math.NaN()}},
		{"baselines.SNGP.RandomFeatures is -1", baselines.SNGP{Examples: 2, RandomFeatures: -1}},
		{"baselines.DUE.Jitter is -1", baselines.DUE{Start: start, Jitter: -1}},
		{"DUE.Start has 2 starts for 1 replicas", baselines.DUE{Start: slices.Repeat(start, 2)}},
	} {
		refused := func(of func(s *model.Scope, x *graph.Node) *graph.Node, x fixtures.Array) {
			t.Helper()
			store := model.NewStore()
			_, err := model.CallOnce(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
				store.SetTraining(x.Graph(), true)
				return of(s, x)
			}, fixtures.Tensor(dtypes.Float32, x))
			must.Err(t, err, c.want)
		}
		refused(func(s *model.Scope, x *graph.Node) *graph.Node { return c.layers.Dense(s, x, 2) }, fixtures.Zeros(2, 3))
		switch c.layers.(type) {
		case baselines.SNGP, baselines.DUE: // whose settings are those of the head
		default:
			refused(func(s *model.Scope, x *graph.Node) *graph.Node { return c.layers.Conv(s, x, layertest.MomentsSpec) }, fixtures.Zeros(2, 1, 3, 3))
		}
	}
}

func (v variant) statedMoments(_ testing.TB, at fixtures.Values) (mean, variance []float64) {
	l := linear{at}
	for i := range l.apply(at["x"], l.weights()) {
		m, s := v.moments(l, i)
		mean, variance = append(mean, m), append(variance, s)
	}
	return mean, variance
}

// linear is the linear map of a layer at given values, a product of matrices for
// x [1, in] and a convolution for x [channels, 1, height, width], for closed forms.
type linear struct{ at fixtures.Values }

func (l linear) get(name string) fixtures.Array { return l.at["/layer/"+name] }

func (l linear) weights() fixtures.Array {
	if w, has := l.at["/layer/weights"]; has {
		return w
	}
	return l.get("weights_mean")
}

// apply is computed here, and not by a graph, so that it knows nothing of ops and conv.
func (l linear) apply(x, w fixtures.Array) []float64 {
	if len(x.Dims) == 2 {
		y := make([]float64, w.Dims[1])
		for k, v := range w.Values {
			y[k%w.Dims[1]] += x.Values[k/w.Dims[1]] * v
		}
		return y
	}
	window := layertest.MomentsSpec.Window
	height, width := x.Dims[2], x.Dims[3]
	high, wide := window.Out(height, width)
	y := make([]float64, w.Dims[0]*high*wide)
	for k := range y {
		filter, top, left := k/(high*wide), k/wide%high*window.Stride-window.Padding, k%wide*window.Stride-window.Padding
		for p := range w.Dims[1] { // channel, row, column of the window
			channel, i, j := p/(window.Size*window.Size), top+p/window.Size%window.Size, left+p%window.Size
			if i >= 0 && i < height && j >= 0 && j < width {
				y[k] += w.Values[filter*w.Dims[1]+p] * x.Values[(channel*height+i)*width+j]
			}
		}
	}
	return y
}

// unit is the unit or filter of entry i of the output.
func (l linear) unit(i int) int {
	if len(l.at["x"].Dims) == 2 {
		return i
	}
	window := layertest.MomentsSpec.Window
	high, wide := window.Out(l.at["x"].Dims[2], l.at["x"].Dims[3])
	return i / (high * wide)
}

// scaled multiplies each feature, or channel, of the input by a factor.
func (l linear) scaled(factor func(channel int) float64) fixtures.Array {
	x := l.at["x"]
	channels := x.Dims[0]
	if len(x.Dims) == 2 {
		channels = x.Dims[1]
	}
	y := fixtures.Zeros(x.Dims...)
	for i, v := range x.Values {
		y.Values[i] = v * factor(i/(len(x.Values)/channels))
	}
	return y
}

// mean is x W + b.
func (l linear) mean(i int) float64 {
	return l.apply(l.at["x"], l.weights())[i] + l.get("bias").Values[l.unit(i)]
}

// squares is x^2 W^2.
func (l linear) squares(i int) float64 {
	return l.apply(l.at["x"].Map(square), l.weights().Map(square))[i]
}

func square(v float64) float64 { return v * v }

// start returns the KL of a new convolution, and its store.
func start(t *testing.T, layers family, spec conv.Spec, x fixtures.Array) (float64, *model.Store) {
	t.Helper()
	store := model.NewStore()
	params.SetSeeds(store, 1)
	out := must.Get(model.CallOnceN(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) []*graph.Node {
		y := layers.Conv(s.In("layer"), x, spec)
		// The Go backend fails on graphs whose last node is not an output.
		return []*graph.Node{stochastic.LayerLossesOf(y.Graph()).KL, y}
	}, fixtures.Tensor(dtypes.Float64, x)))(t)
	return fixtures.FromTensor(t, out[0]).Values[0], store
}

// A startKL is the KL with which a convolution of 2 channels and 4 filters starts.
type startKL struct {
	name   string
	layers family
	want   float64
}

// checkStartKL checks that the KL counts each variable once, whatever the size of the image.
func checkStartKL(t *testing.T, cases []startKL) {
	spec := conv.Spec{Filters: 4, Window: conv.Same(3, 1)}
	x := fixtures.Random(rand.New(rand.NewPCG(3, 7)), 2, 2, 4, 3)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got, _ := start(t, c.layers, spec, x); math.Abs(got-c.want) > 1e-12*max(1, math.Abs(c.want)) {
				t.Errorf("the KL is %g, want %g", got, c.want)
			}
		})
	}
}
