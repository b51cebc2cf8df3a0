package stochastic_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
)

// The divergence of a million weights at their prior is 0, in single precision too.
func TestGaussianKLOfManyAtThePrior(t *testing.T) {
	kl := fixtures.Evaluate(t, dtypes.Float32, fixtures.Values{"x": fixtures.Zeros(1000, 1000)}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{stochastic.GaussianKL(nil, graph.AddScalar(in["x"], 2*math.Log(0.1)), 0, 0.1)}
	})[0].Values[0]
	if math.Abs(kl) > 0.5 {
		t.Errorf("the divergence is %g nats", kl)
	}
}

// The objective is the mean of all terms that there are, with the KL divided by the
// number of examples, also of replicas.
func TestObjective(t *testing.T) {
	values := fixtures.Values{
		"nll": {Dims: []int{2, 3, 1}, Values: []float64{1, 2, 3, 5, 6, 10}},      // mean 4.5
		"kl":  {Dims: []int{2, 1, 1}, Values: []float64{3, 9}},                   // mean 6
		"ll":  {Dims: []int{2, 3, 1}, Values: []float64{-1, 2, 0.5, 4, -1, 1.5}}, // mean 1
	}
	for _, c := range []struct {
		name   string
		kl, ll bool
		n      int
		want   float64
	}{{"neither", false, false, 10, 4.5}, {"KL", true, false, 1, 10.5}, {"log-likelihood", false, true, 10, 3.5}, {"both", true, true, 10, 4.1}} {
		out := fixtures.Evaluate(t, dtypes.Float64, values, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
			losses := &stochastic.LayerLosses{}
			if c.kl {
				losses.AddKL(in["kl"])
			}
			if c.ll {
				losses.AddLogLikelihood(in["ll"])
			}
			return []*graph.Node{losses.Objective(in["nll"], c.n)}
		})[0]
		if len(out.Dims) != 0 || math.Abs(out.Values[0]-c.want) > 1e-14 {
			t.Errorf("%s: the objective is %v, want %g", c.name, out, c.want)
		}
	}
}

func TestLossesRefuse(t *testing.T) {
	losses := &stochastic.LayerLosses{}
	refused := map[string]func(){
		"the objective of 0 training examples": func() { losses.Objective(nil, 0) },
		"a graph in which no layer has one":    func() { losses.WeightLogLikelihood(nil) },
	}
	for _, std := range []float64{0, -0.1, 1e-200, 1e200, math.NaN()} {
		refused[fmt.Sprintf("the prior's standard deviation is %g; it", std)] = func() { stochastic.GaussianKL(nil, nil, 0, std) }
	}
	for want, f := range refused {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("the panic is %s, want %q", got, want)
				}
			}()
			f()
		}()
	}
}
