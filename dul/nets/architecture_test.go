package nets_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/checkpoint"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
)

// attention is one block of self-attention on sequences [..., batch, seq, features].
func attention(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	const width = 4
	q, k, v := l.Dense(s.In("query"), x, width), ops.ReLU(l.Dense(s.In("key"), x, width)), l.Dense(s.In("value"), x, width)
	scores := graph.MulScalar(graph.Einsum("bqd,bkd->bqk", q, k), 1/math.Sqrt(width))
	h := graph.Einsum("bqk,bkd->bqd", graph.Softmax(scores, -1), v)
	return l.Dense(s.In("output"), graph.ReduceMean(h, 1), outputs)
}

func over(t testing.TB, f nets.Architecture, l nets.Layers) nets.Network {
	t.Helper()
	return must.Get(f.Over(l))(t)
}

// convolutions are two convolutions over sequences [batch, length, features], as images of one row.
func convolutions(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	batch, length, features := x.Shape().Dim(0), x.Shape().Dim(1), x.Shape().Dim(2)
	h := graph.Reshape(graph.TransposeAllAxes(x, 2, 0, 1), features, batch, 1, length)
	h = conv.ReLU(l.(nets.ConvLayers).Conv(s.In("first"), h, conv.Spec{Filters: 4, Window: conv.Same(3, 1)}))
	h = l.(nets.ConvLayers).Conv(s.In("second"), h, conv.Spec{Filters: 3, Window: conv.Same(5, 2)})
	return l.Dense(s.In("output"), conv.GlobalMeans(h), outputs)
}

func TestConvolutionsOfSequences(t *testing.T) {
	x := nets.Floats{Values: fixtures.Random(rand.New(rand.NewPCG(1, 2)), 4, 6, 2).Values, Shape: []int{6, 2}}
	for name, l := range families {
		t.Run(name, func(t *testing.T) {
			if name != "Density, LDL" {
				fixtures.SkipShortOffGo(t)
			}
			network := over(t, nets.Func{Name: "convolutions", Build: convolutions}, l)
			m := must.Get(nets.New(fixtures.Backend(t), network, likelihood.Categorical{Classes: 2}, 1))(t)
			fit := train.Trainer{Settings: train.Settings{Epochs: 2, BatchSize: 2, LogLikelihoodScale: 1, Schedule: train.Constant{Start: 0.01}, Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}}}}
			must.Do(t, fit.Fit(context.Background(), m, train.Dataset{Inputs: x, Labels: []int{0, 1, 0, 1}}))
			_, hasEnergies := l.(dul.Density)
			p := must.Get(predict.Sample(context.Background(), m, x, predict.Options{Samples: 2, Energies: hasEnergies}))(t)
			if len(p.Probabilities) != 8 || hasEnergies && (p.LastConvolution != 1 || p.Energies[1].Layer != "second") {
				t.Errorf("%d probabilities, energies %+v", len(p.Probabilities), p.Energies)
			}
		})
	}
}

func TestFuncGradients(t *testing.T) {
	fixtures.SkipShortOffGo(t)
	rng := rand.New(rand.NewPCG(3, 4))
	layertest.Gradients(t, fixtures.Random(rng, 2, 3, 2), func(s *model.Scope, x *graph.Node) *graph.Node {
		return over(t, nets.Func{Name: "attention", Build: attention}, dul.Density{Gradients: dul.Attached}).Apply(s, x, 2)
	})
	layertest.Gradients(t, fixtures.Random(rng, 2, 3, 2, 2), func(s *model.Scope, x *graph.Node) *graph.Node {
		params.FactsOf(x.Graph()).Replicas = []int{2}
		return nets.Positions(dul.Density{Gradients: dul.Attached}, s).Dense(s.In("layer"), x, 3)
	})
}

// What a layer adds for an example is the mean over its positions: at the start the
// energy is |h|^2/2 and the log-likelihood that of N(0, I). The KL is that of the layer
// on a single position. The same holds of each replica.
func TestLossesOfPositions(t *testing.T) {
	const replicas, batch, positions, features = 2, 3, 4, 2
	x := fixtures.Random(rand.New(rand.NewPCG(5, 6)), replicas, batch, positions, features)
	want := make([]float64, replicas*batch)
	for i, v := range x.Values {
		want[i/(positions*features)] += v * v / 2 / positions
	}
	logLikelihood := make([]float64, len(want))
	for i, e := range want {
		logLikelihood[i] = -e - float64(features)/2*math.Log(2*math.Pi)
	}
	losses := func(l nets.Layers, x fixtures.Array, lead []int, of func(*stochastic.LayerLosses) []*graph.Node) (out []fixtures.Array) {
		store := model.NewStore()
		params.SetSeeds(store, 1)
		results := must.Get(model.CallOnceN(fixtures.Backend(t), store, func(s *model.Scope, in []*graph.Node) []*graph.Node {
			params.FactsOf(in[0].Graph()).Replicas = lead
			type own struct{ nets.Layers } // positions inside of others count once
			y := nets.Positions(nets.Positions(own{nets.Positions(l, s)}, s), s).Dense(s.In("hidden").In("layer"), in[0], 3)
			if energies := nets.Energies(y.Graph()); len(energies) == 1 && energies[0].Layer != "hidden/layer" {
				t.Errorf("the layer is called %q", energies[0].Layer)
			}
			return append([]*graph.Node{y}, of(stochastic.LayerLossesOf(y.Graph()))...)
		}, fixtures.Tensor(dtypes.Float64, x)))(t)
		for _, r := range results {
			out = append(out, fixtures.FromTensor(t, r))
		}
		return out
	}
	energies := func(l *stochastic.LayerLosses) []*graph.Node { return []*graph.Node{l.LogLikelihood, l.Energies[0]} }
	for _, c := range []struct {
		name string
		x    fixtures.Array
		lead []int
		n    int
	}{
		{"replicas", x, []int{replicas}, replicas * batch},
		{"alone", fixtures.Array{Values: x.Values[:batch*positions*features], Dims: []int{batch, positions, features}}, nil, batch},
		{"two axes of positions", fixtures.Array{Values: x.Values[:batch*positions*features], Dims: []int{batch, 2, 2, features}}, nil, batch},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := losses(dul.Density{}, c.x, c.lead, energies)
			dims := append(slices.Clone(c.lead), batch, 1)
			if !slices.Equal(out[0].Dims, append(slices.Clone(c.x.Dims[:len(c.x.Dims)-1]), 3)) || !slices.Equal(out[1].Dims, dims) || !slices.Equal(out[2].Dims, dims) {
				t.Fatalf("output, log-likelihood and energy have shapes %v, %v and %v", out[0].Dims, out[1].Dims, out[2].Dims)
			}
			fixtures.Compare(t, "log-likelihood", out[1], fixtures.Array{Values: logLikelihood[:c.n], Dims: dims}, 1e-13)
			fixtures.Compare(t, "energy", out[2], fixtures.Array{Values: want[:c.n], Dims: dims}, 1e-13)
		})
	}
	kl := func(l *stochastic.LayerLosses) []*graph.Node { return []*graph.Node{l.KL} }
	many, one := losses(baselines.MFVI{}, fixtures.Random(rand.New(rand.NewPCG(7, 8)), 3, 4, 2), nil, kl), losses(baselines.MFVI{}, fixtures.Zeros(1, 2), nil, kl)
	fixtures.Compare(t, "KL", many[1], one[1], 1e-14)
}

// Each position has noise of its own.
func TestNoiseOfPositions(t *testing.T) {
	y := fixtures.FromTensor(t, must.Get(model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		return nets.Positions(dul.Density{}, s).Dense(s.In("layer"), x, 1)
	}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(2, 1000, 3))))(t))
	first, second := y.Values[:1000], y.Values[1000:]
	fixtures.CheckUncorrelated(t, "noise of two sequences", first, second)
	fixtures.CheckUncorrelated(t, "noise of neighbours", first[1:], first[:999])
}

// silent is a family that returns nil.
type silent struct{}

func (silent) Dense(*model.Scope, *graph.Node, int) *graph.Node { return nil }

// rawVariable is a family that changes the output y of a linear layer.
type rawVariable func(s *model.Scope, x, y *graph.Node) *graph.Node

func (r rawVariable) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return r(s, x, params.Dense(s, x, units))
}

// withVariable adds a variable that GoMLX makes, of the dimensions that are given by the
// layer's output.
func withVariable(dims func(y *graph.Node) []int) rawVariable {
	return func(s *model.Scope, x, y *graph.Node) *graph.Node {
		v := s.VariableWithShape("gain", shapes.Make(y.DType(), dims(y)...)).NodeValue(x)
		return graph.Add(y, graph.BroadcastToDims(v, y.Shape().Dimensions...))
	}
}

func TestBadLayersAreRefused(t *testing.T) {
	rows := train.Dataset{Inputs: nets.Rows([]float64{1, -1, 0.5, 2, 3}, 1), Targets: []float64{1, 0, -1, 2, 3}}
	dense := func(build func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node) nets.Func {
		return nets.Func{Name: "test", Build: build}
	}
	for _, c := range []struct {
		name, want string
		network    nets.Network
		replicas   bool
	}{
		{"nil", "layer /model/network/hidden_0 of type nets_test.silent, for inputs (Float32)[2, 1]: it returned nil", nets.MLP{Layers: silent{}, Widths: []int{3}}, false},
		{"nil at positions", "it returned nil", over(t, dense(func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
			return l.Dense(s.In("output"), graph.ExpandAxes(x, 1), outputs)
		}), silent{}), false},
		{"variable of the batch", "the layer made variable /model/network/output/gain without params.New", nets.MLP{Layers: withVariable(func(y *graph.Node) []int { return y.Shape().Dimensions })}, false},
		{"shared variable", "which its 2 replicas would share; make it by params.New", nets.MLP{Layers: withVariable(func(y *graph.Node) []int { return []int{1, 1, 1} })}, true},
		{"no units", "of type dul.Density, for inputs (Float32)[2, ", over(t, dense(func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
			return l.Dense(s.In("output"), l.Dense(s.In("hidden"), x, 0), outputs)
		}), dul.Density{}), false},
		{"vector", "for inputs (Float32)[2]: a dense layer takes [batch, features]", over(t, dense(func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
			return l.Dense(s.In("output"), graph.Reshape(x, -1), outputs)
		}), dul.Density{}), false},
		{"no convolution", "have no convolution", over(t, dense(func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
			return l.(nets.ConvLayers).Conv(s.In("stem"), graph.Reshape(x, 1, -1, 1, 1), conv.Spec{Filters: 1, Window: conv.Same(1, 1)})
		}), silent{}), false},
		{"positions without Positions", "parameter /model/network/output/weights was asked for activations of shape (Float32)[2, 1, 1]", over(t, dense(func(_ nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
			return baselines.Deterministic{}.Dense(s.In("output"), graph.ExpandAxes(x, 1), outputs)
		}), dul.Density{}), false},
		{"batch lost", "has outputs of shape (Float32)[1, 1] for a batch of 2 inputs", over(t, dense(func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
			return graph.ReduceAndKeep(l.Dense(s.In("output"), x, outputs), graph.ReduceMean, 0)
		}), dul.Density{}), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, sets := must.Get(nets.New(fixtures.Backend(t), c.network, likelihood.Gaussian{}, 1))(t), []train.Dataset{rows}
			if c.replicas {
				m, sets = must.Get(nets.NewReplicas(fixtures.Backend(t), c.network, likelihood.Gaussian{}, 1, 2))(t), []train.Dataset{rows, rows}
			}
			fit := train.Trainer{Settings: train.Settings{Epochs: 1, BatchSize: 2, LogLikelihoodScale: 1, Schedule: train.Constant{Start: 0.01}, Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.SGD{}}}}}
			must.Err(t, fit.Fit(context.Background(), m, sets...), c.want)
		})
	}
}

func TestArchitectureErrors(t *testing.T) {
	f := nets.Func{Name: "attention", Build: attention}
	_, noBuild := nets.Func{Name: "a"}.Over(dul.Density{})
	_, noLayers := f.Over(nil)
	_, noConvolution := nets.ResNet14(nil).Over(silent{})
	_, replicas := nets.NewReplicas(fixtures.Backend(t), over(t, f, dul.Density{}), nil, 1, 2)
	_, images := nets.NewReplicas(fixtures.Backend(t), nets.ResNet14(dul.Density{}), nil, 1, 2)
	for want, err := range map[string]error{
		`nets.Func "a"`: noBuild, "the layers are nil": noLayers, "silent have no convolution": noConvolution,
		"nets.built": replicas, "nets.ResNet": images,
	} {
		must.Err(t, err, want)
	}
	for _, a := range []nets.Architecture{nets.MLP{Widths: []int{3}}, nets.ResidualMLP{Width: 3, Depth: 1}, nets.ResidualSum{Width: 3, Depth: 1}, f, nets.ResNet14(nil)} {
		_, isFunc := a.(nets.Func)
		_, isResNet := a.(nets.ResNet)
		if got := nets.TakesReplicas(over(t, a, dul.Density{})); got == (isFunc || isResNet) {
			t.Errorf("%T takes replicas: %t", a, got)
		}
	}
}

// mixed is a network of GoMLX's own layers beside those of a family. It counts its
// training steps.
func mixed(dropout float64) nets.Func {
	return nets.Func{Name: fmt.Sprint("mixed ", dropout), Build: func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
		h := layers.Dense(s.In("first"), x, true, 6)
		h = norm.LayerNorm(s.In("norm"), h, -1).Done()
		h = layers.DropoutStatic(s.In("dropout"), h, dropout)
		h = graph.ReduceMean(l.Dense(s.In("middle"), h, 5), 1)
		steps := s.VariableWithValue("steps", float32(0)).SetTrainable(false)
		count := steps.NodeValue(x)
		if s.Store().IsTraining(x.Graph()) {
			steps.SetNodeValue(graph.AddScalar(count, 1))
		}
		return l.Dense(s.In("output"), graph.Mul(h, graph.Exp(graph.MulScalar(count, 0.1))), outputs)
	}}
}

// GoMLX's own layers are trained, exported and loaded with ours. Their dropout acts in
// training, and not in prediction.
func TestLayersOfGoMLX(t *testing.T) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(9, 10))
	data := train.Dataset{Inputs: nets.Floats{Values: fixtures.Random(rng, 8, 3, 2).Values, Shape: []int{3, 2}}, Targets: fixtures.Random(rng, 8).Values}
	fitted := func(t *testing.T, l nets.Layers, dropout float64, epochs int) *nets.Model {
		m := must.Get(nets.New(fixtures.Backend(t), over(t, mixed(dropout), l), likelihood.Gaussian{}, 3))(t)
		fit := train.Trainer{Settings: train.Settings{Epochs: epochs, BatchSize: 4, LogLikelihoodScale: 1, Schedule: train.Constant{Start: 0.01}, Groups: []train.Group{{Roles: train.AllRoles(), Optimizer: train.Adam{}}}}}
		must.Do(t, fit.Fit(ctx, m, data))
		return m
	}
	values := func(t *testing.T, m *nets.Model, path string) []float64 {
		v, _ := must.Get2(params.Values(m.Store, "/model/network/"+path))(t)
		return v
	}
	for name, l := range families {
		t.Run(name, func(t *testing.T) {
			if name != "Density, rank 1" {
				fixtures.SkipShortOffGo(t)
			}
			m, brief := fitted(t, l, 0.5, 3), fitted(t, l, 0.5, 1)
			for path, role := range map[string]params.Role{
				"first/dense/weights": params.Weight, "first/dense/biases": params.Weight, "norm/layer_normalization/gain": params.Weight,
				"steps": params.Running,
			} {
				v := m.Store.GetVariable("/model/network/" + path)
				if v == nil || params.RoleOf(v, m.Store) != role {
					var paths []string
					for v := range m.Store.IterVariables() {
						paths = append(paths, v.Path())
					}
					t.Fatalf("variable %s has no role %s; there are %v", path, role, paths)
				}
				if slices.Equal(values(t, m, path), values(t, brief, path)) {
					t.Errorf("variable %s is not trained", path)
				}
			}
			if !slices.Equal(values(t, m, "first/dense/weights"), values(t, fitted(t, l, 0.5, 3), "first/dense/weights")) {
				t.Error("two trainings with one seed differ")
			}
			file := filepath.Join(t.TempDir(), "m.safetensors")
			must.Do(t, checkpoint.Export(m.Store, file, nil))
			named, _ := must.Get2(checkpoint.ReadTensors(file))(t)
			loaded := must.Get(nets.New(m.Backend, m.Network, m.Likelihood, 4))(t)
			must.Do(t, checkpoint.SetTensors(loaded.Store, named))
			var means [2][]float64
			for i, of := range []*nets.Model{m, loaded} {
				of.Host = nil
				must.Do(t, of.Store.SetRNGStateFromSeed(5))
				means[i] = must.Get(predict.Sample(ctx, of, data.Inputs, predict.Options{Samples: 2}))(t).Mean[1]
			}
			if !slices.Equal(means[0], means[1]) {
				t.Errorf("the trained model predicts %v, the loaded one %v", means[0], means[1])
			}
		})
	}
	fixtures.SkipShortOffGo(t)
	plain := baselines.Deterministic{}
	if slices.Equal(values(t, fitted(t, plain, 0.5, 1), "first/dense/weights"), values(t, fitted(t, plain, 0, 1), "first/dense/weights")) {
		t.Error("dropout changes nothing in training")
	}
	inGraph := fitted(t, plain, 0.5, 1)
	inGraph.Host = nil // which makes both samples in one execution
	p := must.Get(predict.Sample(ctx, inGraph, data.Inputs, predict.Options{Samples: 2}))(t)
	if !slices.Equal(p.Mean[0], p.Mean[1]) {
		t.Error("dropout acts in prediction")
	}
}

// A network with no last layer, or two at its scope, is refused where one is needed.
func TestOneHead(t *testing.T) {
	for count, want := range []string{"has 0 there; build its last layer", "", "has 2 there"} {
		f := nets.Func{Build: func(l nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
			y := l.Dense(s.In("first"), x, outputs)
			for i := range count {
				y = graph.Add(y, l.Dense(s.In("output"), graph.AddScalar(x, float64(i)), outputs))
				s = s.ResetVisited()
			}
			return y
		}}
		m := must.Get(nets.New(fixtures.Backend(t), nets.Headless{Network: must.Get(f.Over(baselines.Deterministic{}))(t)}, likelihood.Gaussian{}, 1))(t)
		_, err := predict.Sample(t.Context(), m, nets.Rows([]float64{1, 2}, 1), predict.Options{Samples: 1})
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%d heads: the error is %v", count, err)
		}
	}
}

// Outputs are as computed by hand. Networks refuse depths and numbers of outputs that they cannot have.
func TestOutputsByHand(t *testing.T) {
	plain := baselines.Deterministic{}
	two := nets.ResidualSum{Layers: plain, Width: 2, Depth: 1}
	x, ofTwo := fixtures.Matrix(3, 1, 1, -2, 0), fixtures.Values{
		"/net/input/weights": fixtures.Matrix(1, 2, 2, -1), "/net/input/bias": fixtures.Zeros(1, 2),
		"/net/block_0/weights": fixtures.Matrix(2, 2, -1, 0, 0, 3), "/net/block_0/bias": fixtures.Matrix(1, 2, 10, 20),
	}
	for _, c := range []struct {
		name      string
		network   nets.Network
		training  bool
		x         fixtures.Array
		values    fixtures.Values
		want      fixtures.Array
		tolerance float64
	}{
		// ReLU(x_0 - x_1) + ReLU(x_1 - x_0), and no ReLU after the output.
		{"-|x_0 - x_1|", nets.MLP{Layers: plain, Widths: []int{2, 1}}, false, fixtures.Matrix(3, 2, 3, 1, 1, 3, 2, 2), fixtures.Values{
			"/net/hidden_0/weights": fixtures.Matrix(2, 2, 1, -1, -1, 1), "/net/hidden_0/bias": fixtures.Zeros(1, 2),
			"/net/hidden_1/weights": fixtures.Matrix(2, 1, 1, 1), "/net/hidden_1/bias": fixtures.Zeros(1, 1),
			"/net/output/weights": fixtures.Matrix(1, 1, -1), "/net/output/bias": fixtures.Zeros(1, 1),
		}, fixtures.Matrix(3, 1, -2, -2, 0), 1e-15},
		// h_0 = 2x, h_1 = h_0 + ReLU(-h_0), output 3 h_1.
		{"6 max(x, 0)", nets.ResidualMLP{Layers: plain, Head: plain, Width: 1, Depth: 1}, false, x, fixtures.Values{
			"/net/input/weights": fixtures.Matrix(1, 1, 2), "/net/input/bias": fixtures.Zeros(1, 1),
			"/net/block_0/weights": fixtures.Matrix(1, 1, -1), "/net/block_0/bias": fixtures.Zeros(1, 1),
			"/net/output/weights": fixtures.Matrix(1, 1, 3), "/net/output/bias": fixtures.Zeros(1, 1),
		}, fixtures.Matrix(3, 1, 6, 0, 0), 1e-15},
		// a_1 = (2x, -x), h = ReLU(a_1), a_2 = a_1 + (10 - h_1, 20 + 3 h_2).
		{"a sum", two, false, x, ofTwo, fixtures.Matrix(3, 1, 10, 6, 10), 1e-15},
		{"all sums", two.Sums(), false, x, ofTwo, fixtures.Matrix(3, 4, 2, -1, 10, 19, -4, 2, 6, 28, 0, 0, 10, 20), 1e-15},
		// In training the sums 0, 2, 4 are normalised to -s, 0, s with s = sqrt(3/2). ReLU leaves 0, 0, s, which is added.
		{"a normalised sum", nets.ResidualSum{Layers: plain, Width: 1, Depth: 1, BatchNorm: true}, true, fixtures.Matrix(3, 1, 0, 1, 2), fixtures.Values{
			"/net/input/weights": fixtures.Matrix(1, 1, 2), "/net/input/bias": fixtures.Zeros(1, 1),
			"/net/block_0/weights": fixtures.Matrix(1, 1, 1), "/net/block_0/bias": fixtures.Zeros(1, 1),
			"/net/block_0/norm/scale": fixtures.Matrix(1, 1, 1), "/net/block_0/norm/shift": fixtures.Zeros(1, 1),
		}, fixtures.Matrix(3, 1, 0, 2, 4+1.2247448713915890), 1e-5},
	} {
		c.values["x"] = c.x
		out := fixtures.Evaluate(t, dtypes.Float64, c.values, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			s.Store().SetTraining(in["x"].Graph(), c.training)
			return []*graph.Node{c.network.Apply(s.In("net"), in["x"], 1)}
		})
		fixtures.Compare(t, c.name, out[0], c.want, c.tolerance)
	}
	flat, narrow := nets.ResidualMLP{Layers: plain, Head: plain, Width: 2}, nets.ResidualSum{Layers: plain, Width: 2}
	one := flat
	one.Depth = 1
	for want, f := range map[string]func(s *model.Scope, x *graph.Node) *graph.Node{
		"nets.ResidualMLP: width 2 and depth 0": func(s *model.Scope, x *graph.Node) *graph.Node { return flat.Apply(s, x, 1) },
		"nets.ResidualSum: width 2 and depth 0": func(s *model.Scope, x *graph.Node) *graph.Node { return narrow.Apply(s, x, 1) },
		"3 outputs":                             func(s *model.Scope, x *graph.Node) *graph.Node { return two.Apply(s, x, 3) },
		"has no moments":                        func(s *model.Scope, x *graph.Node) *graph.Node { m, _ := one.Moments(s, x, 1); return m },
	} {
		must.GetErr(model.CallOnce(fixtures.Backend(t), model.NewStore(), f, [][]float64{{1, 2}}))(t, want)
	}
}

// SetNoiseState repeats the draws that followed NoiseState, from the host and in the graph.
func TestNoiseState(t *testing.T) {
	for _, inGraph := range []bool{false, true} {
		m := newModel(t, nets.MLP{Layers: dul.Density{}, Widths: []int{4}}, likelihood.Categorical{Classes: 2}, 1)
		if inGraph {
			m.Host = nil
		}
		draw := func() []float64 {
			return must.Get(predict.Sample(context.Background(), m, nets.Rows([]float64{1, -1, 2}, 1), predict.Options{Samples: 3}))(t).Probabilities
		}
		draw()
		state := must.Get(m.NoiseState())(t)
		first, second := draw(), draw()
		must.Do(t, m.SetNoiseState(state))
		if again := draw(); !slices.Equal(again, first) || slices.Equal(again, second) {
			t.Errorf("in the graph %t: %v, then %v; from the same state %v", inGraph, first, second, again)
		}
	}
}
