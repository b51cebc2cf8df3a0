package baselines_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
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
		"baselines.SpectralNormed": baselines.SpectralNormed{}, "baselines.SNGP": baselines.SNGP{},
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
		{"baselines.SNGP.LengthScale is -1", baselines.SNGP{LengthScale: -1}},
		{"baselines.SNGP.FeatureScale is NaN", baselines.SNGP{FeatureScale: math.NaN()}},
		{"baselines.SNGP.RandomFeatures is -1", baselines.SNGP{RandomFeatures: -1}},
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
		if process, is := c.layers.(nets.Process); is { // its Head checks the settings
			refused(func(s *model.Scope, x *graph.Node) *graph.Node { return process.Head(s, x, 2) }, fixtures.Zeros(2, 3))
		} else {
			refused(func(s *model.Scope, x *graph.Node) *graph.Node { return c.layers.Dense(s, x, 2) }, fixtures.Zeros(2, 3))
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

// The KL with which a convolution of 2 channels and 4 filters starts counts each variable once, whatever the size of the image.
func TestStartKL(t *testing.T) {
	spec := conv.Spec{Filters: 4, Window: conv.Same(3, 1)}
	x := fixtures.Random(rand.New(rand.NewPCG(3, 7)), 2, 2, 4, 3)
	each := math.Log(100) + (1e-4-1)/2 // of one variable with std 1e-3 from N(mean, 0.1^2)
	dropout := func(alpha float64) float64 {
		return -4 * (0.5*math.Log(alpha) + 1.16145124*alpha - 1.50204118*alpha*alpha + 0.58629921*alpha*alpha*alpha)
	}
	for _, c := range []struct {
		name   string
		layers family
		want   float64
	}{
		{"Rank1, at the prior", baselines.Rank1{InitStd: 0.2, PriorStd: 0.2}, 0},
		{"Rank1", baselines.Rank1{}, (2 + 4) * each},
		{"Rank1, tied", baselines.Rank1{Tied: true}, (2 + 4) * each},
		{"VDropout", baselines.VDropout{}, dropout(0.1)},
		{"VDropout, adaptive", baselines.VDropout{Adaptive: true, Alpha: 0.3}, dropout(0.3)},
		{"VDropout, doubled alpha", baselines.VDropout{DoubledConvAlpha: true}, dropout(0.2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			kl, _ := start(t, c.layers, spec, x)
			must.Near(t, kl, c.want, 1e-12*max(1, math.Abs(c.want)), "the KL")
		})
	}
}

func TestDeterministic(t *testing.T) {
	checkFamilies(t, []variant{{name: "default", layers: baselines.Deterministic{}, checks: layertest.Checks{Deterministic: true}}})
}

// The output has mean x W + b and variance rate/(1-rate) x^2 W^2.
func TestMCDropout(t *testing.T) {
	dropped := func(rate float64) func(l linear, i int) (float64, float64) {
		return func(l linear, i int) (float64, float64) { return l.mean(i), rate / (1 - rate) * l.squares(i) }
	}
	checkFamilies(t, []variant{
		{name: "default", layers: baselines.MCDropout{}, moments: dropped(0.1)},
		{name: "0.4", layers: baselines.MCDropout{Rate: 0.4}, moments: dropped(0.4)},
	})
}

// The output has mean x mu + b and variance x^2 sigma^2; a draw of the weights
// serves a whole batch.
func TestMFVI(t *testing.T) {
	checkFamilies(t, []variant{{
		name: "default", layers: baselines.MFVI{}, hasKL: true, checks: layertest.Checks{SharedNoise: true},
		moments: func(l linear, i int) (float64, float64) {
			return l.mean(i), l.apply(l.at["x"].Map(square), l.get("weights_log_variance").Map(math.Exp))[i]
		},
	}})
}

// MFVI starts with Kaiming-normal means and a bias of zero. The KL is the part of
// the log-variances, and mean^2 / (2 0.1^2) for each mean.
func TestMFVIConvStart(t *testing.T) {
	const filters, fanIn = 200, 2 * 9
	spec := conv.Spec{Filters: filters, Window: conv.Same(3, 1)}
	kl, store := start(t, baselines.MFVI{}, spec, fixtures.Zeros(2, 1, 3, 3))
	value := func(name string) []float64 {
		v := must.Get(store.GetVariable("/layer/" + name).Value())(t)
		return fixtures.FromTensor(t, v).Values
	}
	means := value("weights_mean")
	fixtures.CheckMoments(t, "means of the kernel", means, 0, 2.0/fanIn)
	want := filters * fanIn * (math.Log(100) + (1e-4-1)/2)
	for _, m := range means {
		want += m * m / (2 * 0.1 * 0.1)
	}
	must.Near(t, kl, want, 1e-12*want, "the KL")
	for _, b := range value("bias") {
		if b != 0 {
			t.Fatalf("the bias starts at %g, want 0", b)
		}
	}
}

// With m = (mu_r x) W + b and v the variance of (r x) W, the output has mean
// mu_s m and variance mu_s^2 v + sigma_s^2 m^2 + sigma_s^2 v. v is sigma_r^2 x^2
// W^2 where each pixel has a draw of its own, and sum_c (sigma_rc x_c W)^2 where
// all pixels of channel c share one.
func TestRank1(t *testing.T) {
	variance := func(l linear, name string) fixtures.Array { return l.get(name + "_factor_log_variance").Map(math.Exp) }
	perPixel := func(l linear, i int) float64 {
		sigma2 := variance(l, "input")
		of := l.scaled(func(c int) float64 { return math.Sqrt(sigma2.Values[c]) })
		return l.apply(of.Map(square), l.weights().Map(square))[i]
	}
	tied := func(l linear, i int) float64 {
		total := 0.0
		for channel, sigma2 := range variance(l, "input").Values {
			total += sigma2 * square(l.apply(l.scaled(func(c int) float64 {
				if c == channel {
					return 1
				}
				return 0
			}), l.weights())[i])
		}
		return total
	}
	moments := func(ofProduct func(l linear, i int) float64) func(l linear, i int) (float64, float64) {
		return func(l linear, i int) (float64, float64) {
			j, mu := l.unit(i), l.get("input_factor_mean").Values
			m := l.apply(l.scaled(func(c int) float64 { return mu[c] }), l.weights())[i] + l.get("bias").Values[j]
			v, sigma2, s := ofProduct(l, i), variance(l, "output").Values[j], l.get("output_factor_mean").Values[j]
			return s * m, s*s*v + sigma2*m*m + sigma2*v
		}
	}
	checkFamilies(t, []variant{
		{name: "default", layers: baselines.Rank1{}, hasKL: true, moments: moments(perPixel)},
		{name: "tied", layers: baselines.Rank1{Tied: true}, hasKL: true, moments: moments(tied)},
	})
}

// firstPixels are the first pixels of a batch of images, [channels, batch].
func firstPixels(a fixtures.Array) fixtures.Array {
	channels, batch := a.Dims[0], a.Dims[1]
	return fixtures.Matrix(channels, batch, fixtures.Matrix(channels*batch, a.Dims[2]*a.Dims[3], a.Values...).Column(0)...)
}

// recorded is a family's layer with recorded parameters. paths gives the path of
// each; bias is the recorded name of the bias.
func recorded(t *testing.T, c fixtures.Case, layers family, bias string, paths map[string]string, noise ...fixtures.Array) fixtures.Layer {
	t.Helper()
	paths[bias] = "/layer/bias"
	out := c.Array("out").Dims
	apply := func(s *model.Scope, x *graph.Node) *graph.Node { return layers.Dense(s.In("layer"), x, out[1]) }
	if len(out) == 4 {
		spec := conv.Spec{
			Filters: out[0], NoBias: !c.Has("p_" + bias),
			Window: fixtures.ByName(t, c, map[string]conv.Window{"_k3s1p1": conv.Same(3, 1), "_k3s2p1": conv.Same(3, 2)}),
		}
		if spec.NoBias {
			delete(paths, bias)
		}
		apply = func(s *model.Scope, x *graph.Node) *graph.Node { return layers.Conv(s.In("layer"), x, spec) }
	}
	return fixtures.Layer{Apply: apply, Paths: paths, Noise: noise}
}

// eachRecorded runs test for the recorded cases of all patterns.
func eachRecorded(t *testing.T, patterns []string, test func(t *testing.T, c fixtures.Case)) {
	for _, pattern := range patterns {
		fixtures.Each(t, pattern, test)
	}
}

// kindOf is linear or conv, the second word of a case's name.
func kindOf(c fixtures.Case) string { return strings.Split(c.Name, "_")[1] }

// draws is a recorded draw of noise for each entry of a layer's output or input.
func draws(c fixtures.Case, name string) fixtures.Array {
	if kindOf(c) == "conv" {
		return c.Array(name).Channels()
	}
	return c.Array(name)
}

func TestMCDropoutMatchesTheReleasedLayer(t *testing.T) {
	eachRecorded(t, []string{"mcdropout_linear_*", "mcdropout_conv_*"}, func(t *testing.T, c fixtures.Case) {
		paths := map[string]string{kindOf(c) + "__weight": "/layer/weights"}
		// Recorded as 0 or 1; the mask that is drawn is scaled.
		c.CheckLayer(t, "", recorded(t, c, baselines.MCDropout{Rate: 0.3}, kindOf(c)+"__bias", paths, draws(c, "mask").Scale(1/0.7)))
	})
}

func TestMFVIMatchesTheReleasedLayer(t *testing.T) {
	eachRecorded(t, []string{"bayesian_linear_*", "bayesian_conv_*"}, func(t *testing.T, c fixtures.Case) {
		layers := baselines.MFVI{PriorStd: c.PriorStd("b_prior_logvar")}
		var eps fixtures.Array
		if kindOf(c) == "conv" {
			eps = c.Kernel("eps")
		} else {
			eps = c.Array("eps").Transposed()
		}
		c.CheckLayer(t, "", recorded(t, c, layers, "bias", map[string]string{
			"weight_mu":     "/layer/weights_mean",
			"weight_logvar": "/layer/weights_log_variance",
		}, eps))
	})
}

func TestRank1MatchesTheReleasedLayer(t *testing.T) {
	eachRecorded(t, []string{"rank1_linear_*", "rank1_conv_k*"}, func(t *testing.T, c fixtures.Case) {
		layers := baselines.Rank1{PriorStd: c.PriorStd("b_r_prior_logvar")}
		kind := kindOf(c)
		paths := map[string]string{
			"r_mu":            "/layer/input_factor_mean",
			"r_logvar":        "/layer/input_factor_log_variance",
			"s_mu":            "/layer/output_factor_mean",
			"s_logvar":        "/layer/output_factor_log_variance",
			kind + "__weight": "/layer/weights",
		}
		c.CheckLayer(t, "", recorded(t, c, layers, kind+"__bias", paths, draws(c, "eps0"), draws(c, "eps1")))
		if layers.Tied = strings.Contains(c.Name, "tied"); layers.Tied {
			c.CheckLayer(t, "", recorded(t, c, layers, kind+"__bias", paths, firstPixels(c.Array("eps0")), firstPixels(c.Array("eps1"))))
		}
	})
}

func TestVDropoutMatchesTheReleasedLayer(t *testing.T) {
	eachRecorded(t, []string{"vdropout_linear_*", "vdropout_conv_*"}, func(t *testing.T, c fixtures.Case) {
		paths := map[string]string{"log_alpha": "/layer/log_alpha", kindOf(c) + "__weight": "/layer/weights"}
		c.CheckLayer(t, "", recorded(t, c, baselines.VDropout{Adaptive: true}, kindOf(c)+"__bias", paths, draws(c, "eps")))
	})
}
