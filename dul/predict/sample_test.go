package predict_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	gomlx "github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

const classes = 3

var convFamilies = []struct {
	name   string
	layers nets.ConvLayers
}{
	{"Deterministic", baselines.Deterministic{}},
	{"MCDropout", baselines.MCDropout{}},
	{"VDropout", baselines.VDropout{}},
	{"MFVI", baselines.MFVI{InitStd: 0.1}},
	{"Rank1", baselines.Rank1{InitStd: 0.1}},
	{"Density, rank 1", dul.Density{Energy: energy.Rank1Mixture{}, InitStd: 0.1}},
	{"Density, LDL", dul.Density{InitStd: 0.1}},
}

// newModel is an untrained model; with several seeds it has replicas.
func newModel(t testing.TB, network nets.Network, l likelihood.Likelihood, seeds ...uint64) *nets.Model {
	t.Helper()
	m, err := nets.NewReplicas(fixtures.Backend(t), network, l, seeds...)
	if len(seeds) == 1 {
		m, err = nets.New(fixtures.Backend(t), network, l, seeds[0])
	}
	must.Do(t, err)
	m.DType = dtypes.Float64
	return m
}

// classifier is an untrained network for the images of photos.
func classifier(t testing.TB, layers nets.ConvLayers) *nets.Model {
	t.Helper()
	network := nets.ResNet{Layers: layers, Blocks: []int{1, 1}, Widths: []int{3, 4}, Stem: 2}
	return newModel(t, network, likelihood.Categorical{Classes: classes}, 1)
}

// photos are n images of random bytes.
func photos(n int) nets.Pixels {
	rng := rand.New(rand.NewPCG(3, 1))
	m := nets.Pixels{
		Height: 8, Width: 8, Bytes: make([]byte, n*3*8*8),
		Standardization: nets.Standardization{Mean: []float64{0.4, 0.5, 0.6}, Std: []float64{0.2, 0.25, 0.3}},
	}
	for i := range m.Bytes {
		m.Bytes[i] = byte(rng.IntN(256))
	}
	return m
}

func sample(t testing.TB, m *nets.Model, x nets.Inputs, o predict.Options) *predict.Prediction {
	t.Helper()
	return must.Get(predict.Sample(context.Background(), m, x, o))(t)
}

// A deterministic network's probabilities are the softmax of its logits,
// whatever the batches, and its samples agree.
func TestClassificationOfADeterministicNetwork(t *testing.T) {
	c, images := classifier(t, baselines.Deterministic{}), photos(5)
	logits := must.Get(gomlx.CallOnce(c.Backend, c.Store, func(root *gomlx.Scope, x *graph.Node) *graph.Node {
		return c.Apply(c.Scope(root), images.Standardization.Images(x, c.DType))
	}, tensors.FromFlatDataAndDimensions(images.Bytes, 5, 3, 8, 8)))(t)
	want := metrics.MeanProbabilities([][]float64{fixtures.FromTensor(t, logits).Values}, classes)
	for _, batch := range []int{1, 2, 5, 8} {
		var heard []int
		got := sample(t, c, images, predict.Options{Samples: 2, BatchSize: batch, Progress: func(done, total int) {
			heard = append(heard, done)
			if total != 5 {
				t.Errorf("progress towards %d images, want 5", total)
			}
		}})
		fixtures.Compare(t, "probabilities", fixtures.Matrix(5, classes, got.Probabilities...), fixtures.Matrix(5, classes, want...), 1e-13)
		for i, v := range got.MutualInformation {
			must.Near(t, v, 0, 1e-13, "the mutual information of image %d", i)
		}
		if len(heard) != (5+batch-1)/batch || heard[len(heard)-1] != 5 {
			t.Errorf("in batches of %d, progress was heard of %v images", batch, heard)
		}
		if got.Outputs != nil || got.Energies != nil || got.LastConvolution != -1 {
			t.Errorf("logits %v, energies %v and last convolution %d, of which none was asked for", got.Outputs, got.Energies, got.LastConvolution)
		}
	}
}

// An untrained LDL has Sigma = I, so the stem's energy is the mean over pixels
// of |x|^2/2, without noise; further energies differ from sample to sample.
func TestClassificationEnergies(t *testing.T) {
	images := photos(3)
	m := classifier(t, dul.Density{InitStd: 0.1})
	got := sample(t, m, images, predict.Options{Samples: 4, BatchSize: 2, Energies: true})
	one := sample(t, m, images, predict.Options{Samples: 1, Energies: true})
	var names []string
	for l, e := range got.Energies {
		names = append(names, e.Layer)
		if len(e.Mean) != 3 || floats.EqualApprox(e.Mean, one.Energies[l].Mean, 1e-12) != (l == 0) {
			t.Errorf("%s: the mean over 4 samples is %v, one sample has %v", e.Layer, e.Mean, one.Energies[l].Mean)
		}
	}
	want := []string{
		"stem", "stage_0_block_0/conv_1", "stage_0_block_0/conv_2", "stage_0_block_0/shortcut",
		"stage_1_block_0/conv_1", "stage_1_block_0/conv_2", "stage_1_block_0/shortcut", "output",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the energies are those of %v, want %v", names, want)
	}
	if want[got.LastConvolution] != "stage_1_block_0/conv_2" {
		t.Errorf("the last convolution is %s", want[got.LastConvolution])
	}
	for i, e := range got.Energies[0].Mean {
		sum := 0.0
		for k := range 3 {
			for _, v := range images.Bytes[(3*i+k)*64 : (3*i+k+1)*64] {
				z := (float64(v)/255 - images.Standardization.Mean[k]) / images.Standardization.Std[k]
				sum += z * z / 2 / 64
			}
		}
		must.Near(t, e/sum, 1, 1e-12, "the stem's energy at image %d over its formula", i)
	}
}

// Prediction leaves nothing behind and moves no running statistics.
func TestClassificationLeavesTheModelAsItIs(t *testing.T) {
	c := classifier(t, dul.Density{})
	sample(t, c, photos(2), predict.Options{Samples: 1})
	values := func() map[string][]float64 {
		all := map[string][]float64{}
		for v := range c.Store.IterVariables() {
			if stochastic.IsNoiseBuffer(v) {
				t.Errorf("%s is still there", v.Path())
			}
			if v.DType().IsFloat() {
				value := must.Get(v.Value())(t)
				all[v.Path()] = fixtures.FromTensor(t, value).Values
			}
		}
		return all
	}
	before := values()
	sample(t, c, photos(2), predict.Options{Samples: 1})
	after := values()
	if len(before) != len(after) {
		t.Errorf("%d variables before, %d after", len(before), len(after))
	}
	for path, want := range before {
		if !slices.Equal(after[path], want) {
			t.Errorf("%s has changed", path)
		}
	}
}

// A replica that diverged in training predicts no numbers, and the others what they
// predict without it.
func TestReplicasThatAreNoNumbers(t *testing.T) {
	inputs := []nets.Inputs{nets.Rows([]float64{1, -1, 0.5}, 1), nets.Rows([]float64{2, 0, 1}, 1)}
	for _, c := range []struct {
		l      likelihood.Likelihood
		values func(p *predict.Prediction) [][]float64
	}{
		{likelihood.Categorical{Classes: 3}, func(p *predict.Prediction) [][]float64 {
			return append(p.Outputs, p.Probabilities, p.MutualInformation)
		}},
		{likelihood.Gaussian{}, func(p *predict.Prediction) [][]float64 { return p.Mean }},
	} {
		t.Run(fmt.Sprintf("%T", c.l), func(t *testing.T) {
			m := newModel(t, nets.MLP{Layers: baselines.MCDropout{}, Widths: []int{4}}, c.l, 1, 2)
			predicted := func() []*predict.Prediction {
				m.Host = stochastic.NewReplicatedHostSampler([]uint64{1, 2})
				return must.Get(predict.SampleReplicas(context.Background(), m, inputs, predict.Options{Samples: 3, BatchSize: 2, KeepOutputs: true}))(t)
			}
			before := predicted()
			bias := m.Store.GetVariable("/model/network/output/bias")
			values, shape := must.Get2(params.Values(m.Store, bias.Path()))(t)
			values[0] = math.NaN() // of the first replica
			must.Do(t, bias.SetValue(params.FromFloat64(shape, values)))
			after := predicted()
			for i, row := range c.values(after[0]) {
				if numbers := len(slices.DeleteFunc(slices.Clone(row), math.IsNaN)); numbers == len(row) || i >= len(after[0].Outputs) && numbers > 0 {
					t.Errorf("the replica predicts %v", row)
				}
			}
			if !slices.EqualFunc(c.values(after[1]), c.values(before[1]), slices.Equal) {
				t.Errorf("the other replica predicts %v, before %v", c.values(after[1]), c.values(before[1]))
			}
		})
	}
	t.Run("at one input", func(t *testing.T) {
		m := newModel(t, nets.MLP{Layers: baselines.Deterministic{}}, likelihood.Categorical{Classes: 3}, 1, 2)
		m.DType = dtypes.Float32
		inputs[0] = nets.Rows([]float64{1, 3e38, 0.5}, 1)
		_ = must.Get(predict.SampleReplicas(context.Background(), m, inputs, predict.Options{Samples: 1}))(t) // makes the parameters
		v := m.Store.GetVariable("/model/network/output/weights")
		must.Do(t, v.SetValue(params.FromFloat64(v.Shape(), slices.Repeat([]float64{2}, 6))))
		got := must.Get(predict.SampleReplicas(context.Background(), m, inputs, predict.Options{Samples: 1}))(t)[0]
		for i, v := range got.Probabilities {
			if math.IsNaN(v) != (i/3 == 1) || math.IsNaN(got.MutualInformation[i/3]) != (i/3 == 1) {
				t.Errorf("probabilities %v, information %v", got.Probabilities, got.MutualInformation)
			}
		}
	})
}

// unwritten is a regression whose moments panic with a text.
type unwritten struct{ likelihood.Gaussian }

func (unwritten) Moments(*gomlx.Scope, *graph.Node) (mean, logVariance *graph.Node) {
	panic("not written yet")
}

// What a likelihood panics with is an error.
func TestMomentsThatPanic(t *testing.T) {
	m := newModel(t, nets.MLP{Layers: baselines.Deterministic{}}, unwritten{}, 1)
	_, err := predict.Sample(context.Background(), m, nets.Rows([]float64{1}, 1), predict.Options{})
	const want = "predicting input 0 and those after it: execution 0: building the prediction: not written yet"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

func TestErrors(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	plain := classifier(t, baselines.Deterministic{})
	regression := newModel(t, nets.MLP{Layers: dul.Density{}, Widths: []int{2}}, likelihood.Gaussian{}, 1)
	regression.DType = dtypes.Float32
	sample(t, regression, nets.Rows([]float64{1}, 1), predict.Options{})
	broken := classifier(t, baselines.Deterministic{})
	sample(t, broken, photos(1), predict.Options{})
	bias := broken.Store.GetVariable("/model/network/output/bias")
	must.Do(t, bias.SetValue(params.FromFloat64(bias.Shape(), []float64{0, math.NaN(), 0})))
	stopping, stop := context.WithCancel(context.Background())
	for _, test := range []struct {
		name    string
		ctx     context.Context
		c       *nets.Model
		images  nets.Inputs
		options predict.Options
		want    string
	}{
		{"replicas", context.Background(), newModel(t, nets.MLP{Layers: baselines.Deterministic{}}, likelihood.Gaussian{}, 1, 2), nets.Rows([]float64{1}, 1), predict.Options{}, "give predict.SampleReplicas"},
		{"no model", context.Background(), nil, photos(1), predict.Options{}, "there is no model"},
		{"no inputs", context.Background(), plain, nil, predict.Options{}, "there are no Inputs"},
		{"a pointer", context.Background(), plain, &nets.Pixels{}, predict.Options{}, "inputs of type *nets.Pixels; want"},
		{"NaN", context.Background(), regression, nets.Rows([]float64{1, math.NaN()}, 1), predict.Options{}, "input 1, feature 0 is NaN"},
		{"infinite as a float32", context.Background(), regression, nets.Rows([]float64{1, 1e300}, 1), predict.Options{}, "input 1, feature 0 is 1e+300"},
		{"infinite energy", context.Background(), regression, nets.Rows([]float64{1, 1e30}, 1), predict.Options{}, "sample 0 of the mean at input 1 is "},
		{"infinite features", context.Background(), regression.With(regression.Network), nets.Rows([]float64{1, 1e30}, 1), predict.Options{}, "sample 0 of the output at input 1 is "},
		{"NaN as a parameter", context.Background(), broken, photos(2), predict.Options{}, "sample 0 of the output at input 0 is NaN"},
		{"features", context.Background(), regression, nets.Rows([]float64{1, 2}, 2), predict.Options{}, "the inputs have another number of features than those of its first use"},
		{"negative", context.Background(), plain, photos(1), predict.Options{Samples: -1}, "-1 samples"},
		{"energies", context.Background(), plain, photos(1), predict.Options{Energies: true}, "no layer of the network has an energy model"},
		{"network", context.Background(), classifier(t, nil), photos(1), predict.Options{}, "input 0 and those after it: execution 0: nets.ResNet.Layers is nil"},
		{"canceled", canceled, plain, photos(1), predict.Options{Samples: 7}, "stopped after 0 of 7"},
		{"stopped", stopping, plain, photos(2), predict.Options{BatchSize: 1, Progress: func(int, int) { stop() }}, "input 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := predict.Sample(test.ctx, test.c, test.images, test.options)
			must.Err(t, err, test.want)
			if test.ctx.Err() != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the error %v does not wrap context.Canceled", err)
			}
		})
	}
}

// sparse is an untrained regression whose head is DUE, with replicas if there
// are several seeds.
func sparse(t *testing.T, seeds ...uint64) *nets.Model {
	t.Helper()
	head := baselines.DUE{Start: []baselines.Inducing{{Points: []float64{0, 1, 2, 2, 1, 0}, LengthScale: 1}}}
	network := nets.ResidualMLP{Layers: baselines.Deterministic{}, Head: head, Width: 2, Depth: 1}
	return newModel(t, network, likelihood.Gaussian{}, seeds...)
}

// Each replica has the same marginals and features as alone, also if one has fewer
// inputs. Before training f has the prior's moments.
func TestMarginals(t *testing.T) {
	ctx := context.Background()
	x := []nets.Inputs{nets.Rows([]float64{1, -1, 0.5}, 1), nets.Rows([]float64{2, 3}, 1)}
	joint := sparse(t, 1, 2)
	headless := nets.Headless{Network: joint.Network}
	together := must.Get(predict.Marginals(ctx, joint, x...))(t)
	features := must.Get(predict.SampleReplicas(ctx, joint.With(headless), x, predict.Options{Samples: 1}))(t)
	for r, seed := range []uint64{1, 2} {
		single := sparse(t, seed)
		alone := must.Get(predict.Marginals(ctx, single, x[r]))(t)
		got, want := together[r], alone[0]
		if !slices.Equal(got.Mean[0], want.Mean[0]) || len(want.Std[0]) != x[r].Len() || want.NoiseStd[0][0] != 1 {
			t.Errorf("replica %d: %+v together, %+v alone", r, got, want)
		}
		for i, std := range want.Std[0] {
			// q(v) is the prior, so that the variance is k(h, h) = log 2 but for jitter.
			must.Near(t, std*std, math.Ln2, 1e-5, "replica %d, input %d: variance", r, i)
			must.Near(t, got.Std[0][i], std, 1e-12, "replica %d, input %d: deviation together", r, i)
		}
		own := sample(t, single.With(headless), x[r], predict.Options{Samples: 1})
		if own.Width != 2 || features[r].Width != 2 {
			t.Fatalf("features of width %d together and %d alone, want 2", features[r].Width, own.Width)
		}
		n := x[r].Len()
		fixtures.Compare(t, "features", fixtures.Matrix(n, 2, features[r].Outputs[0]...), fixtures.Matrix(n, 2, own.Outputs[0]...), 1e-12)
	}
}

func TestMarginalsAreRefused(t *testing.T) {
	plain, classes := sparse(t, 1), sparse(t, 1)
	plain.Network = nets.MLP{Layers: baselines.Deterministic{}}
	classes.Likelihood = likelihood.Categorical{Classes: 2}
	broken := sparse(t, 1)
	must.Get(predict.Marginals(context.Background(), broken, nets.Rows([]float64{1}, 1)))(t)
	noise := broken.Store.GetVariable("/model/" + likelihood.LogVariance)
	must.Do(t, noise.SetValue(params.FromFloat64(noise.Shape(), []float64{math.NaN()})))
	for want, m := range map[string]*nets.Model{
		"no moments":                              plain,
		"likelihood.Gaussian is needed":           classes,
		"1 sets of inputs":                        sparse(t, 1, 2),
		"there is no model":                       nil,
		"the noise's deviation at input 0 is NaN": broken,
	} {
		must.GetErr(predict.Marginals(context.Background(), m, nets.Rows([]float64{1}, 1)))(t, want)
	}
}

// seededFamilies are all kinds of noise: for each example and unit, of weights, of
// positions, shared by positions, and several draws for each example.
func seededFamilies() map[string]nets.ConvLayers {
	families := map[string]nets.ConvLayers{
		"Density, shared":  dul.Density{InitStd: 0.3, SharedNoise: true},
		"Density, uniform": dul.Density{InitStd: 0.3, Noise: stochastic.Uniform01()},
		"Density, t":       dul.Density{InitStd: 0.3, Noise: stochastic.StudentT{Nu: 5}},
		"Rank1, tied":      baselines.Rank1{InitStd: 0.3, Tied: true},
		"DUE":              baselines.DUE{Start: []baselines.Inducing{{Points: []float64{0, 1, 2, 2, 1, 0, 3, 3}, LengthScale: 1}}},
	}
	for _, f := range convFamilies {
		families[f.name] = f.layers
	}
	return families
}

// The same seed gives the same predictions, whatever came before, in all batch sizes,
// and wherever noise without a seed is drawn. Another seed and another sample give
// others.
func TestSeed(t *testing.T) {
	images := photos(7)
	batches := []int{2, 7}
	if testing.Short() && !ops.IsGo(fixtures.Backend(t)) {
		batches = batches[:1] // XLA's compiler takes a second for each
	}
	for name, layers := range seededFamilies() {
		t.Run(name, func(t *testing.T) {
			if name != "Density, shared" && name != "Rank1" {
				fixtures.SkipShortOffGo(t)
			}
			m := classifier(t, layers)
			of := func(o predict.Options) *predict.Prediction {
				t.Helper()
				o.Samples, o.KeepOutputs = 6, true
				return sample(t, m, images, o)
			}
			want := of(predict.Options{Seed: new(uint64(5))})
			if !slices.Equal(want.Probabilities, metrics.MeanProbabilities(want.Outputs, classes)) || !slices.Equal(want.MutualInformation, metrics.MutualInformation(want.Outputs, classes)) {
				t.Errorf("%v and %v, from the logits %v", want.Probabilities, want.MutualInformation, want.Outputs)
			}
			if noisy := name != "Deterministic"; slices.Equal(want.Outputs[0], want.Outputs[1]) == noisy {
				t.Errorf("the samples are %v", want.Outputs)
			} else if other := of(predict.Options{Seed: new(uint64(6))}); slices.Equal(want.Outputs[0], other.Outputs[0]) == noisy {
				t.Error("another seed gives the same samples")
			}
			for _, batch := range batches {
				for _, host := range []bool{true, false} {
					of(predict.Options{}) // continues the stream of noise
					before := m.Host
					if !host {
						m.Host = nil
					}
					got := of(predict.Options{Seed: new(uint64(5)), BatchSize: batch})
					m.Host = before
					for k := range want.Outputs {
						if !floats.EqualApprox(got.Outputs[k], want.Outputs[k], 1e-10) {
							t.Fatalf("batches of %d, host %t: sample %d is %v, want %v", batch, host, k, got.Outputs[k], want.Outputs[k])
						}
					}
				}
			}
		})
	}
}

// A seeded call leaves the stream of noise, and the model, as they were.
func TestSeedLeavesTheStream(t *testing.T) {
	x := nets.Rows([]float64{0.5, -1, 2, 0.3}, 2)
	plain, asked := mlp(t, dul.Density{InitStd: 0.3}, 1), mlp(t, dul.Density{InitStd: 0.3}, 1)
	want := [][][]float64{sample(t, plain, x, predict.Options{Samples: 3}).Mean, sample(t, plain, x, predict.Options{Samples: 3}).Mean}
	for i := range want {
		sample(t, asked, x, predict.Options{Samples: 2, Seed: new(uint64(i))})
		if got := sample(t, asked, x, predict.Options{Samples: 3}).Mean; fmt.Sprint(got) != fmt.Sprint(want[i]) {
			t.Errorf("call %d: %v, without seeded calls before it %v", i, got, want[i])
		}
	}
	for v := range asked.Store.IterVariables() {
		if stochastic.IsNoiseBuffer(v) {
			t.Errorf("%s is still there", v.Path())
		}
	}
}

// Replicas draw as each does alone, also where they have fewer inputs. Seed 0 is a seed.
func TestSeedOfReplicas(t *testing.T) {
	x := []nets.Inputs{nets.Rows([]float64{0.5, -1, 2, 0.3, 1, 1}, 2), nets.Rows([]float64{2, 0.3}, 2)}
	for name, layers := range map[string]nets.Layers{"Density": dul.Density{InitStd: 0.3}, "MFVI": baselines.MFVI{InitStd: 0.3}} {
		t.Run(name, func(t *testing.T) {
			for _, o := range []predict.Options{{Samples: 4, Seed: new(uint64(0))}, {Samples: 4, Seed: new(uint64(0)), BatchSize: 2}, {Samples: 4, Seed: new(uint64(0)), Coherent: true}} {
				joint := must.Get(predict.SampleReplicas(t.Context(), mlp(t, layers, 8, 9), x, o))(t)
				for r, seed := range []uint64{8, 9} {
					alone := sample(t, mlp(t, layers, seed), x[r], predict.Options{Samples: 4, Seed: o.Seed, Coherent: o.Coherent})
					for k := range alone.Mean {
						if !floats.EqualApprox(joint[r].Mean[k], alone.Mean[k], 1e-12) {
							t.Errorf("replica %d, sample %d: %v, alone %v", r, k, joint[r].Mean[k], alone.Mean[k])
						}
					}
				}
			}
		})
	}
}

// squares is a family whose noise has a row and a column for each example.
type squares struct{}

func (squares) Dense(s *gomlx.Scope, x *graph.Node, units int) *graph.Node {
	n := x.Shape().Dim(-2)
	noise := stochastic.Draw(s, x, stochastic.Gaussian(), n, n)
	return graph.Add(baselines.Deterministic{}.Dense(s, x, units), graph.ReduceAndKeep(noise, graph.ReduceMean, -1))
}

// Noise is refused if its numbers cannot be assigned to examples.
func TestSeedOfOtherNoise(t *testing.T) {
	m := newModel(t, nets.MLP{Layers: squares{}}, likelihood.Gaussian{}, 1)
	x := nets.Rows([]float64{1, 2, 3}, 1)
	must.GetErr(predict.Sample(t.Context(), m, x, predict.Options{Seed: new(uint64(1))}))(t, "what belongs to an example cannot be told")
	sample(t, m, x, predict.Options{})
}
