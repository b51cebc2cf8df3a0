package predict_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// given is what a network that returns its inputs predicts.
func given(t *testing.T, l likelihood.Likelihood, outputs ...float64) *predict.Predictive {
	t.Helper()
	p := sample(t, newModel(t, raw{}, l, 1), nets.Rows(outputs, l.Outputs()), predict.Options{Samples: 2})
	return must.Get(p.Predictive())(t)
}

// Densities, quantiles and moments of a single component are those of the distribution.
func TestDistributionOfOneComponent(t *testing.T) {
	for _, c := range []struct {
		name    string
		l       likelihood.Likelihood
		outputs []float64
		want    interface {
			likelihood.Univariate
			StdDev() float64
		}
		y float64
	}{
		{"Gaussian", likelihood.Gaussian{}, []float64{3}, distuv.Normal{Mu: 3, Sigma: 1}, 2.2},
		{"Heteroscedastic", likelihood.Heteroscedastic{}, []float64{3, math.Log(4)}, distuv.Normal{Mu: 3, Sigma: 2}, -1},
		{"StudentT", likelihood.StudentT{Nu: 4}, []float64{-3}, distuv.StudentsT{Mu: -3, Sigma: 1, Nu: 4}, 5},
		{"heavy tails", likelihood.StudentT{Nu: 0.7}, []float64{100}, distuv.StudentsT{Mu: 100, Sigma: 1, Nu: 0.7}, 5},
		{"Poisson", likelihood.Poisson{}, []float64{1}, distuv.Poisson{Lambda: math.E}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := given(t, c.l, c.outputs...)
			near := func(what string, got, want float64) {
				if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) && !(math.IsNaN(want) && math.IsNaN(got)) && got != want {
					t.Errorf("%s is %g, want %g", what, got, want)
				}
			}
			near("log density", must.Get(p.LogDensity([]float64{c.y}))(t)[0], c.want.LogProb(c.y))
			mean, std, err := p.Moments()
			must.Do(t, err)
			near("mean", mean[0], c.want.Mean())
			near("deviation", std[0], c.want.StdDev())
			for _, level := range []float64{0.01, 0.3, 0.5, 0.975} {
				q := must.Get(p.Quantile(level))(t)[0]
				_, isCount := c.l.(likelihood.Poisson)
				if at, below := c.want.CDF(q), c.want.CDF(q-1e-6*max(1, math.Abs(q))); !(at >= level-1e-12) || isCount && !(below < level && q == math.Trunc(q)) || !isCount && !scalar.EqualWithinAbs(at, level, 1e-9) {
					t.Errorf("the quantile at %g is %g, where the CDF is %g, and just below %g", level, q, at, below)
				}
			}
		})
	}
}

// Quantiles keep the digits of narrow distributions, at 0 and elsewhere.
func TestQuantilesOfNarrowDistributions(t *testing.T) {
	for _, c := range []struct{ mean, std float64 }{{0, 1}, {0, 1e-20}, {0, 1e-150}, {1, 1e-10}, {1, 1e-13}, {-1, 1e-13}, {1e-30, 1e-40}, {1e12, 1e-2}, {1e150, 1e148}} {
		p := must.Get((&predict.Prediction{Mixture: predict.Mixture{Mean: [][]float64{{c.mean}}, NoiseStd: [][]float64{{c.std}}}}).Predictive())(t)
		for _, level := range []float64{0.025, 0.2, 0.5, 0.975} {
			want := distuv.Normal{Mu: c.mean, Sigma: c.std}.Quantile(level)
			if q := must.Get(p.Quantile(level))(t)[0]; !(math.Abs(q-want) <= 1e-11*c.std+0x1p-51*math.Abs(c.mean)) {
				t.Errorf("mean %g, deviation %g: the quantile at %g is off by %g", c.mean, c.std, level, q-want)
			}
		}
		inside, outside := c.mean+1.9*c.std, c.mean-2.1*c.std
		if got := must.Get(p.Coverage([]float64{inside}, 0.95))(t) - must.Get(p.Coverage([]float64{outside}, 0.95))(t); got != 1 {
			t.Errorf("mean %g, deviation %g: the interval of 95%% lacks %g or has %g", c.mean, c.std, inside, outside)
		}
	}
	// Counts are whole numbers, of any size.
	for _, rate := range []float64{1e-3, 0.5, 3.9, 1e6} {
		p := must.Get((&predict.Prediction{Likelihood: likelihood.Poisson{}, Width: 1, Parameters: [][]float64{{math.Log(rate)}}}).Predictive())(t)
		for level := range 99 {
			if q := must.Get(p.Quantile(float64(level+1) / 100))(t)[0]; q != math.Trunc(q) {
				t.Errorf("rate %g: the quantile at %d%% is %v", rate, level+1, q)
			}
		}
	}
}

// Two samples are a mixture of equal weights.
func TestMixtureOfDistributions(t *testing.T) {
	p := must.Get((&predict.Prediction{Likelihood: likelihood.Poisson{}, Width: 1, Parameters: [][]float64{{0, math.Log(2)}, {math.Log(5), math.Log(2)}}}).Predictive())(t)
	one, five := distuv.Poisson{Lambda: 1}, distuv.Poisson{Lambda: 5}
	density := must.Get(p.LogDensity([]float64{3, 0}))(t)
	must.Near(t, density[0], math.Log((one.Prob(3)+five.Prob(3))/2), 1e-12, "log density")
	must.Near(t, density[1], -2, 1e-12, "log density")
	mean, std, err := p.Moments()
	must.Do(t, err)
	must.Near(t, mean[0], 3, 1e-12, "mean")
	must.Near(t, std[0], math.Sqrt(4+3), 1e-12, "deviation (4 between, (1+5)/2 within)")
	if q := must.Get(p.Quantile(0.5))(t); q[0] != 2 || q[1] != 2 {
		t.Errorf("medians %v, want 2 and 2", q)
	}
}

// The quantiles of a likelihood.Quantiles are the means of the outputs.
func TestOutputQuantiles(t *testing.T) {
	l := likelihood.Quantiles{Levels: []float64{0.05, 0.95}}
	samples := sample(t, newModel(t, raw{}, l, 1), nets.Rows([]float64{1, 5, 4, -2}, 2), predict.Options{Samples: 2})
	samples.Outputs[1][0] = 3 // in the second sample
	p := must.Get(samples.Predictive())(t)
	if q := must.Get(p.Quantile(0.05))(t); !slices.Equal(q, []float64{2, -2}) || p.Crossed() != 0.5 {
		t.Errorf("quantiles %v, want 2 and -2, and those of the second input crossed: %v", q, p.Crossed())
	}
	if c := must.Get(p.Coverage([]float64{1.5, 4}, 0.9))(t); c != 0.5 {
		t.Errorf("coverage %g, want 1/2", c)
	}
	must.GetErr(p.Quantile(0.5))(t, "Levels [0.05 0.95]")
	must.GetErr(p.Quantile(1))(t, "at level 1 was")
	must.GetErr(p.Quantile(math.NaN()))(t, "at level NaN")
	must.GetErr(p.LogDensity([]float64{1, 2}))(t, "no density or moments")
	_, _, err := p.Moments()
	must.Err(t, err, "density or moments; for these")
	for want, l := range map[string]likelihood.Likelihood{
		"nothing of a likelihood of type likelihood.StudentT": likelihood.StudentT{Nu: 3},
		"nothing of a likelihood of type likelihood.Gaussian": likelihood.Gaussian{},
		"type likelihood.Categorical says nothing":            likelihood.Categorical{Classes: 2},
		"does not know its Likelihood":                        nil,
	} {
		other := *samples
		other.Likelihood = l
		must.GetErr(other.Predictive())(t, want)
	}
	must.GetErr(given(t, l, 1, 2, 3, 4, 5, 6).Pinball([]float64{1, 2}))(t, "2 targets for a prediction at 3 inputs")
	must.GetErr(given(t, l, 1, 2, 3, 4, 5, 6).Pinball(make([]float64, 4)))(t, "4 targets for a prediction at 3 inputs")
	must.GetErr(p.Coverage([]float64{1}, 0.9))(t, "1 targets")
	must.GetErr(given(t, likelihood.Gaussian{}, 1).LogDensity(make([]float64, 3)))(t, "3 targets")
	none := must.Get((&predict.Prediction{Likelihood: likelihood.Poisson{}, Width: 1, Parameters: [][]float64{{math.NaN()}}}).Predictive())(t)
	must.GetErr(none.Quantile(0.5))(t, "input 0: the distribution has no such quantile")
}

// oneLogit are two classes by the first output alone; off is a mistake in its probabilities.
type oneLogit struct {
	likelihood.Categorical
	off float64
}

func (l oneLogit) LogProbabilities(s *model.Scope, outputs *graph.Node) *graph.Node {
	first := graph.SliceAxis(outputs, -1, graph.AxisElem(0))
	logits := graph.Concatenate([]*graph.Node{first, graph.ZerosLike(first)}, -1)
	return graph.AddScalar(l.Categorical.LogProbabilities(s, logits), l.off)
}

// Class probabilities are those of the likelihood, which need not be a softmax of the outputs.
func TestProbabilitiesOfTheLikelihood(t *testing.T) {
	of := func(l likelihood.Likelihood) (*predict.Prediction, error) {
		return predict.Sample(context.Background(), newModel(t, raw{}, l, 1), nets.Rows([]float64{2, 100, -1, -100}, 2), predict.Options{Samples: 1})
	}
	two := likelihood.Categorical{Classes: 2}
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	p := must.Get(of(oneLogit{Categorical: two}))(t)
	fixtures.Compare(t, "probabilities", fixtures.Matrix(2, 2, p.Probabilities...), fixtures.Matrix(2, 2, sigmoid(2), sigmoid(-2), sigmoid(-1), sigmoid(1)), 1e-14)
	must.GetErr(of(oneLogit{two, 0.1}))(t, "the probabilities at input 0 sum to 1.105")
}

// bare has a likelihood's NLL and says no more.
type bare struct{ l likelihood.Likelihood }

func (b bare) Outputs() int { return b.l.Outputs() }

func (b bare) NLL(s *model.Scope, outputs, answers *graph.Node) *graph.Node {
	return b.l.NLL(s, outputs, answers)
}

// Every likelihood has an NLL, in the data's own units. Of one that says no more the model computes it, also for an ensemble.
func TestNLLOfEveryLikelihood(t *testing.T) {
	targets, labels, logits := []float64{3, 0}, []int{1, 0}, []float64{2, 1, -3, 0.5}
	for _, c := range []struct {
		l       likelihood.Likelihood
		targets []float64
		labels  []int
		unit    float64
	}{
		{likelihood.Gaussian{}, targets, nil, 3}, {likelihood.Heteroscedastic{}, targets, nil, 3}, {likelihood.StudentT{Nu: 4}, targets, nil, 3},
		{likelihood.Poisson{}, targets, nil, 1}, {likelihood.Categorical{Classes: 2}, nil, labels, 1},
	} {
		of := func(l likelihood.Likelihood) *predict.Prediction {
			x := nets.Rows(logits[:2*l.Outputs()], l.Outputs())
			members := []*predict.Prediction{}
			for seed := range uint64(2) {
				members = append(members, sample(t, newModel(t, jittered{}, l, 1+seed), x, predict.Options{Samples: 3}))
			}
			return must.Get(predict.Ensemble(members...))(t)
		}
		known, alone := of(c.l), of(bare{c.l})
		want := must.Get(known.LogDensities(c.targets, c.labels))(t)
		fixtures.Compare(t, fmt.Sprintf("log densities of %T", c.l), fixtures.Matrix(1, 2, must.Get(alone.LogDensities(c.targets, c.labels))(t)...), fixtures.Matrix(1, 2, want...), 1e-12)
		nll := must.Get(known.NLL(c.targets, c.labels, c.unit))(t)
		must.Near(t, must.Get(alone.NLL(c.targets, c.labels, c.unit))(t), nll, 1e-12, "%T: the NLL by the model", c.l)
		must.Near(t, nll, math.Log(c.unit)-(want[0]+want[1])/2, 1e-12, "%T: the NLL", c.l)
		for _, p := range []*predict.Prediction{known, alone} {
			t.Run(fmt.Sprintf("wrong answers for %#v", p.Likelihood), func(t *testing.T) {
				must.GetErr(p.NLL(nil, nil, 1))(t)
				must.GetErr(p.NLL(targets, labels, 1))(t)
				must.GetErr(p.NLL(c.targets, c.labels, 0))(t)
				must.GetErr(p.NLL([]float64{1}, nil, 1))(t)
				must.GetErr(p.NLL(make([]float64, 4), nil, 1))(t)
				must.GetErr(p.NLL(nil, []int{1, 2, 3}, 1))(t)
			})
		}
	}
}

// jittered adds noise to its inputs.
type jittered struct{}

func (jittered) Apply(s *model.Scope, x *graph.Node, _ int) *graph.Node {
	return graph.Add(x, stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(0), x.Shape().Dim(1)))
}

// A prediction can be encoded with its likelihood, as notebook.Keep does.
func TestPredictionAsGob(t *testing.T) {
	for _, l := range []likelihood.Likelihood{likelihood.Gaussian{}, likelihood.KnownNoise{Std: 2}, likelihood.Heteroscedastic{}, likelihood.StudentT{Nu: 4},
		likelihood.Poisson{}, likelihood.Quantiles{Levels: []float64{0.1, 0.9}}, likelihood.Categorical{Classes: 3}} {
		var b bytes.Buffer
		must.Do(t, gob.NewEncoder(&b).Encode(predict.Prediction{Likelihood: l, Mean: [][]float64{{1}}}))
		var p predict.Prediction
		must.Do(t, gob.NewDecoder(&b).Decode(&p))
		if !reflect.DeepEqual(p.Likelihood, l) || p.Mean[0][0] != 1 {
			t.Errorf("%#v is now %#v", l, p)
		}
	}
}
