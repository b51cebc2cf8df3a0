package baselines

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// Rank1 is the rank-1 Bayesian neural network (Dusenberry et al. 2020): the
// inputs and the outputs of each layer are multiplied by Gaussian factors,
//
//	y = s * ((r * x) W + b),   q(r_i) = N(mu_i, sigma_i^2),   p(r_i) = N(1, PriorStd^2),
//
// and likewise s; both are drawn anew for each example.
type Rank1 struct {
	PriorStd float64 // 0 means 0.1 (section 4: searched over {0.01, 0.1, 1})
	InitStd  float64 // posterior standard deviation at the start; 0 means 1e-3
	// Tied draws the factors of Conv once for each channel and example, as the
	// original method does. By default they are drawn anew for each pixel too, as
	// in the released code.
	Tied bool
}

// Dense maps [..., batch, in] to [..., batch, units] and adds the factors' KL.
func (l Rank1) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	scaled := graph.Mul(x, l.factor(s, x, "input", x.Shape().Dim(-1)))
	y := params.Dense(s, scaled, units)
	return graph.Mul(y, l.factor(s, x, "output", units))
}

// factor draws mu + sigma eps, [..., batch, n], for each example of x.
func (l Rank1) factor(s *model.Scope, x *graph.Node, name string, n int) *graph.Node {
	mean := params.New(s, x, name+"_factor_mean", params.Variational, params.Constant(1), 1, n)
	logVar := logVariance(s, x, name+"_factor_log_variance", orDefault(l.InitStd, 1e-3), 1, n)
	stochastic.TallyOf(x.Graph()).AddKL(stochastic.GaussianKL(mean, logVar, 1, orDefault(l.PriorStd, 0.1)))
	eps := stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(-2), n)
	return ops.AddRow(ops.MulRow(eps, std(logVar)), mean)
}
