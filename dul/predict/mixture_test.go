package predict_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

func ExampleMixture_Moments() {
	m := predict.Mixture{Mean: [][]float64{{1, 5}, {3, 5}}}
	mean, std := m.Moments()
	fmt.Println(mean, std)
	// Output: [2 5] [1 0]
}

// Variances of the function and of the noise add up, in the components and over them.
func TestMixture(t *testing.T) {
	a := predict.Mixture{Mean: [][]float64{{1}}, Std: [][]float64{{3}}, NoiseStd: [][]float64{{2}}}
	b := predict.Mixture{Mean: [][]float64{{5}}, Std: [][]float64{{1}}, NoiseStd: [][]float64{{0}}}
	m := must.Get(predict.Mix(a, b))(t)
	mean, std := m.Moments()
	must.Near(t, mean[0], 3, 0, "mean")
	must.Near(t, std[0], 3, 1e-15, "deviation (4 between, (9+1)/2 within)")
	if v := m.Variances(); v[0][0] != 13 || v[1][0] != 1 {
		t.Errorf("variances %v; want 13 and 1", v)
	}
	q := m.FunctionQuantile(0.5)[0]
	must.Near(t, distuv.UnitNormal.CDF((q-1)/3)+distuv.UnitNormal.CDF(q-5), 1, 1e-12, "twice the probability below the function's median %v", q)
	b.Std = nil
	m = must.Get(predict.Mix(b, a))(t)
	mean, std = m.Moments()
	must.Near(t, mean[0], 3, 0, "mean of a mixture with a single function")
	must.Near(t, std[0], math.Sqrt(8.5), 1e-15, "deviation of a mixture with a single function (4 between, (0+9)/2 within)")
	if v := m.Variances(); v[0][0] != 0 || v[1][0] != 13 {
		t.Errorf("variances %v of a mixture with a single function; want 0 and 13", v)
	}
	if mean, std := (predict.Mixture{}).Moments(); mean != nil || std != nil {
		t.Errorf("moments %v and %v of nothing", mean, std)
	}
}

func TestMixErrors(t *testing.T) {
	one := predict.Mixture{Mean: [][]float64{{1}}, NoiseStd: [][]float64{{2}}}
	two := predict.Mixture{Mean: [][]float64{{1, 2}}, NoiseStd: [][]float64{{2, 2}}}
	ragged := predict.Mixture{Mean: [][]float64{{1}}, NoiseStd: [][]float64{{2}}, Std: [][]float64{{1, 1}}}
	for want, members := range map[string][]predict.Mixture{
		"without members":                         nil,
		"member 1 of the ensemble has 0":          {one, {}},
		"member 0 of the ensemble has 1 comp":     {{Mean: one.Mean}},
		"member 1 of the ensemble predicts at 2 ": {one, two},
		"member 0 of the ensemble predicts at 2 ": {ragged},
	} {
		must.GetErr(predict.Mix(members...))(t, want)
	}
}

// mlp is an untrained regression with two inputs; its noise variance is 1.
func mlp(t testing.TB, layers nets.Layers, seeds ...uint64) *nets.Model {
	t.Helper()
	return newModel(t, nets.MLP{Layers: layers, Widths: []int{4}}, likelihood.Gaussian{}, seeds...)
}

// scaledOutput is a family of deterministic hidden layers and an output that is
// multiplied by Gaussian noise.
type scaledOutput struct{}

func (scaledOutput) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	if units == 1 {
		return baselines.VDropout{}.Dense(s, x, units)
	}
	return baselines.Deterministic{}.Dense(s, x, units)
}

// Samples of a deterministic network are equal, those of a stochastic one have its
// mean and deviation, whatever the batches and samples of an execution.
func TestSamplesOfARegression(t *testing.T) {
	x := nets.Rows([]float64{0.5, -1, 2, 0.3, 1, 1}, 2)
	plain := sample(t, mlp(t, baselines.Deterministic{}, 1), x, predict.Options{Samples: 2})
	if plain.NoiseStd[1][2] != 1 || plain.Outputs != nil {
		t.Errorf("of an untrained model: noise %v, want 1; outputs %v", plain.NoiseStd, plain.Outputs)
	}
	if !slices.Equal(plain.Mean[0], plain.Mean[1]) {
		t.Error("two samples of a deterministic network differ")
	}
	const samples = 4000
	for _, batch := range []int{0, 2, 3} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			m := mlp(t, scaledOutput{}, 1)
			if batch == 3 {
				m.Host = nil // five samples in an execution
			}
			noisy := sample(t, m, x, predict.Options{Samples: samples, BatchSize: batch})
			mean, std := noisy.Moments()
			for i, m := range plain.Mean[0] {
				must.Z(t, (mean[i]-m)/(std[i]/math.Sqrt(samples)), "input %d: mean of the samples %v, want %v", i, mean[i], m)
				// The output is multiplied by noise of variance 0.1: std = sqrt(0.1) |mean|.
				want := math.Sqrt(0.1) * math.Abs(m)
				must.Z(t, (std[i]/want-1)*math.Sqrt(2*samples), "input %d: standard deviation of the samples %v, want %v", i, std[i], want)
			}
		})
	}
}

// raw is a network whose outputs are its inputs.
type raw struct{}

func (raw) Apply(_ *model.Scope, x *graph.Node, _ int) *graph.Node { return x }

// The mean and the noise of a heteroscedastic model are its two outputs, of any
// other likelihood, or none, the outputs are all there is.
func TestOutputs(t *testing.T) {
	x := nets.Rows([]float64{5, 0, 7, math.Log(4)}, 2)
	got := sample(t, newModel(t, raw{}, likelihood.Heteroscedastic{}, 1), x, predict.Options{Samples: 1, BatchSize: 1})
	fixtures.Compare(t, "mean", fixtures.Matrix(1, 2, got.Mean[0]...), fixtures.Matrix(1, 2, 5, 7), 1e-15)
	fixtures.Compare(t, "noise", fixtures.Matrix(1, 2, got.NoiseStd[0]...), fixtures.Matrix(1, 2, 1, 2), 1e-15)
	got = sample(t, newModel(t, raw{}, nil, 1), x, predict.Options{Samples: 2})
	if got.Width != 2 || !slices.Equal(got.Outputs[1], x.Values) || got.Mean != nil || got.Probabilities != nil {
		t.Errorf("without a likelihood: %+v", got)
	}
	// Inputs of any shape reach the network as they are; outputs have a row for each.
	box := nets.Floats{Values: make([]float64, 24), Shape: []int{2, 3}}
	must.GetErr(predict.Sample(context.Background(), newModel(t, raw{}, nil, 1), box, predict.Options{Samples: 1}))(t, "outputs of shape (Float64)[4, 2, 3] for a batch of 4 inputs")
}

// Inputs of unequal number are padded, which must not show, in batches neither.
func TestReplicasOfUnequalSize(t *testing.T) {
	ctx, m := context.Background(), mlp(t, baselines.Deterministic{}, 1, 2)
	long, short := nets.Rows([]float64{0.5, -1, 2, 0.3, 1, 1}, 2), nets.Rows([]float64{2, 0.3}, 2)
	for _, batch := range []int{0, 2, 1} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			got := must.Get(predict.SampleReplicas(ctx, m, []nets.Inputs{long, short}, predict.Options{Samples: 1, BatchSize: batch}))(t)
			if len(got[0].Mean[0]) != 3 || len(got[1].Mean[0]) != 1 {
				t.Fatalf("%d and %d predictions, want 3 and 1", len(got[0].Mean[0]), len(got[1].Mean[0]))
			}
			alone := must.Get(predict.SampleReplicas(ctx, m, []nets.Inputs{short, short}, predict.Options{Samples: 1}))(t)
			must.Near(t, alone[1].Mean[0][0], got[1].Mean[0][0], 1e-12, "a prediction alone, and padded")
			must.Near(t, got[0].Mean[0][1], alone[0].Mean[0][0], 1e-12, "a prediction padded, and alone")
		})
	}
	for want, x := range map[string][]nets.Inputs{
		"1 sets of inputs for a model with 2 replicas":                  {short},
		"replica 1: an input is nets.Floats of shape [1], where others": {short, nets.Rows([]float64{1}, 1)},
		"give nets.Rows(values, features)":                              {photos(1), photos(1)},
	} {
		must.GetErr(predict.SampleReplicas(ctx, m, x, predict.Options{}))(t, want)
	}
}

// An untrained LDL has Sigma = I, so the first layer's energy is |x|^2/2, of every
// replica; the layers have their names.
func TestEnergiesOfARegression(t *testing.T) {
	x := nets.Rows([]float64{3, 4, 0, 0, 1, -2}, 2)
	found := must.Get(predict.SampleReplicas(context.Background(), mlp(t, dul.Density{}, 1, 2), []nets.Inputs{x, x}, predict.Options{Samples: 3, BatchSize: 2, Energies: true}))(t)
	for r, p := range found {
		if len(p.Energies) != 2 || p.Energies[1].Layer != "output" || len(p.Energies[1].Mean) != 3 || p.LastConvolution != -1 {
			t.Fatalf("energies are %+v, want 2 layers with 3 inputs each", p.Energies)
		}
		fixtures.Compare(t, fmt.Sprintf("replica %d", r), fixtures.Matrix(1, 3, p.Energies[0].Mean...), fixtures.Matrix(1, 3, 12.5, 0, 2.5), 1e-12)
		if second := p.Energies[1].Mean; second[0] <= second[1] {
			t.Errorf("the second layer's energies are %v; that of the larger input should be larger", second)
		}
	}
}

// counting is a network whose output is the number of its executions, with or
// without a draw of noise.
type counting struct {
	noisy bool
	read  func(*model.Store, *model.Variable, graph.GraphProvider) *graph.Node
}

func (c counting) Apply(s *model.Scope, x *graph.Node, _ int) *graph.Node {
	executions := s.Store().VariableWithValue("/executions", 0.0)
	count := graph.AddScalar(c.read(s.Store(), executions, x), 1)
	executions.SetNodeValue(count)
	y := graph.BroadcastToDims(graph.Reshape(count, 1, 1), x.Shape().Dim(0), 1)
	if c.noisy {
		noise := stochastic.Draw(s, y, stochastic.Gaussian(), y.Shape().Dim(0), 1)
		y = graph.Add(y, graph.MulScalar(noise, 0))
	}
	return y
}

// applied counts how often a network is built.
type applied struct {
	counting
	times *int
}

func (a applied) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	*a.times++
	return a.counting.Apply(s, x, outputs)
}

// An execution draws one sample with noise of the host, and else as many as divide the number, up to five.
func TestSamplesOfAnExecution(t *testing.T) {
	for _, c := range []struct {
		samples, want int
		host          bool
	}{{25, 5, false}, {24, 4, false}, {7, 1, false}, {25, 1, true}} {
		times := 0
		m := newModel(t, applied{counting{true, params.Input}, &times}, likelihood.Gaussian{}, 1)
		if c.host && m.Host == nil {
			continue // this backend draws in the graph
		}
		if times = 0; !c.host {
			m.Host = nil
		}
		sample(t, m, nets.Rows([]float64{0}, 1), predict.Options{Samples: c.samples})
		if times != c.want {
			t.Errorf("%d samples are drawn %d at a time, want %d", c.samples, times, c.want)
		}
	}
}

// Samples of a network without noise are one execution, and do not share memory.
func TestNetworkWithoutNoiseIsExecutedOnce(t *testing.T) {
	for _, noisy := range []bool{false, true} {
		t.Run(fmt.Sprint(noisy), func(t *testing.T) {
			got := sample(t, newModel(t, counting{noisy, params.Input}, likelihood.Gaussian{}, 1), nets.Rows([]float64{0, 0}, 1), predict.Options{Samples: 7})
			for m, mean := range got.Mean {
				want := 1.0
				if noisy {
					want += float64(m)
				}
				if mean[0] != want || mean[1] != want {
					t.Errorf("sample %d is of execution %v, want %v", m, mean, want)
				}
				mean[0], mean[1] = -1, -1
			}
		})
	}
}

// A variable that changes from sample to sample and that the graph read as a constant is refused.
func TestChangedConstantIsRefused(t *testing.T) {
	if !ops.IsGo(fixtures.Backend(t)) {
		t.Skip("only the Go backend compiles variables as constants")
	}
	asConstant := func(_ *model.Store, v *model.Variable, g graph.GraphProvider) *graph.Node { return v.NodeValue(g) }
	m := newModel(t, counting{true, asConstant}, likelihood.Gaussian{}, 1)
	must.GetErr(predict.Sample(context.Background(), m, nets.Rows([]float64{0, 0}, 1), predict.Options{Samples: 3}))(t, "changes variable /executions")
}

// The members agree on the first example and not on the second.
func ExampleEnsemble() {
	p, err := predict.Ensemble(
		&predict.Prediction{Width: 2, Probabilities: []float64{0.9, 0.1, 1, 0}},
		&predict.Prediction{Width: 2, Probabilities: []float64{0.9, 0.1, 0, 1}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f\n%.3f\n", p.Probabilities, p.MutualInformation)
	// Output:
	// [0.90 0.10 0.50 0.50]
	// [0.000 0.693]
}

// The mutual information of an ensemble of noisy networks is that of all draws of all members.
func TestEnsemble(t *testing.T) {
	of := func(rows ...[]float64) (all []*predict.Prediction) {
		for _, p := range rows {
			all = append(all, &predict.Prediction{Width: 2, Probabilities: p})
		}
		return all
	}
	draws := of([]float64{0.9, 0.1}, []float64{0.4, 0.6}, []float64{0.2, 0.8}, []float64{0.5, 0.5})
	want := must.Get(predict.Ensemble(draws...))(t)
	got := must.Get(predict.Ensemble(must.Get(predict.Ensemble(draws[:2]...))(t), must.Get(predict.Ensemble(draws[2:]...))(t)))(t)
	must.Near(t, got.MutualInformation[0], want.MutualInformation[0], 1e-15, "mutual information")
	must.Near(t, got.Probabilities[0], want.Probabilities[0], 1e-15, "probability")
	type own struct {
		likelihood.Likelihood
		by func()
	}
	one := predict.Mixture{Mean: [][]float64{{1}}, NoiseStd: [][]float64{{1}}}
	named := own{likelihood.StudentT{Nu: 4}, func() {}}
	for _, l := range [][2]likelihood.Likelihood{{named, named}, {own{Likelihood: &likelihood.StudentT{Nu: 4}}, own{Likelihood: &likelihood.StudentT{Nu: 4}}}} {
		_ = must.Get(predict.Ensemble(&predict.Prediction{Likelihood: l[0], Mixture: one}, &predict.Prediction{Likelihood: l[1], Mixture: one}))(t)
	}
	for says, members := range map[string][]*predict.Prediction{
		"without members has no prediction":                            nil,
		"member 1 of the ensemble has 1 probabilities, member 0 has 2": of([]float64{1, 0}, []float64{1}),
		"member 1 of the ensemble predicts at another number":          {{Outputs: [][]float64{{1, 2}}}, {Outputs: [][]float64{{1}}}},
		"or by another likelihood":                                     {{Parameters: [][]float64{{1, 2}}}, draws[0]},
		"member 1 of the ensemble is nil":                              {draws[0], nil},
		"member 1 of the ensemble has another number of draws":         {{Mixture: one}, {Mixture: must.Get(predict.Mix(one, one))(t)}},
		"by another likelihood than member 0":                          {{Likelihood: own{Likelihood: &likelihood.StudentT{Nu: 4}}}, {Likelihood: own{Likelihood: &likelihood.StudentT{Nu: 5}}}},
		"member 1 of the ensemble is nil, or by another":               {{Likelihood: likelihood.StudentT{Nu: 4}}, {Likelihood: likelihood.StudentT{Nu: 5}}},
	} {
		must.GetErr(predict.Ensemble(members...))(t, says)
	}
}
