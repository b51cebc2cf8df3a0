package likelihood

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

// A Distribution is a likelihood of one real target that gives the target's whole distribution. Package predict
// computes densities, quantiles and coverage from it.
type Distribution interface {
	Likelihood
	// Parameters returns the K parameters of the target's distribution for each example, [..., batch, K], from outputs
	// [..., batch, Outputs()].
	Parameters(s *model.Scope, outputs *graph.Node) *graph.Node
	// Given returns the distribution with these K parameters, those of one example.
	Given(parameters []float64) Univariate
}

// Univariate is the distribution of a real number or a count. The types of gonum's package distuv implement it. LogProb
// is the logarithm of the density or of the probability, and CDF(y) is p(Y <= y).
type Univariate interface {
	LogProb(y float64) float64
	CDF(y float64) float64
	Mean() float64
	Variance() float64
}

// A Checker has settings that may be invalid, such as a likelihood or an optimizer. If Check returns an error, nets.New
// and training return it.
type Checker interface{ Check() error }

// A TargetChecker is a likelihood of real targets that does not accept every finite number. If CheckTarget returns an
// error for a target, training returns it.
type TargetChecker interface{ CheckTarget(y float64) error }

// StudentT is Student's t distribution with Nu degrees of freedom, location m and scale e^v,
//
//	p(y) = Gamma((Nu+1)/2) / (Gamma(Nu/2) sqrt(Nu pi) e^v) (1 + (y-m)^2 / (Nu e^2v))^(-(Nu+1)/2),
//
// a likelihood for targets with outliers. m is the network's output; v is one trained parameter, which starts at 0. The
// variance is e^2v Nu/(Nu-2) for Nu > 2, and infinite or undefined for smaller Nu.
type StudentT struct {
	Nu float64 // above 0 and at most 1e6, where probabilities differ from a Gaussian's by at most 1e-6
}

// logScale is the name of StudentT's parameter v, the logarithm of the scale.
const logScale = "observation_log_scale"

// Check implements Checker.
func (l StudentT) Check() error {
	if !(l.Nu > 0 && l.Nu <= 1e6) { // beyond, differences of logarithms of gamma functions lose their digits
		return fmt.Errorf("likelihood.StudentT has %g degrees of freedom; Nu must be above 0 and at most 1e6, such as 4 (for a Gaussian there is likelihood.Gaussian)", l.Nu)
	}
	return nil
}

// Outputs returns 1: the location m.
func (StudentT) Outputs() int { return 1 }

// Parameters returns m and v, [..., batch, 2].
func (StudentT) Parameters(s *model.Scope, outputs *graph.Node) *graph.Node {
	v := params.New(s, outputs, logScale, params.Likelihood, params.Constant(0), 1, 1)
	return graph.Concatenate([]*graph.Node{outputs, graph.Add(graph.ZerosLike(outputs), v)}, -1)
}

// NLL returns -log p(target): v + (Nu+1)/2 log(1 + (target-m)^2 / (Nu e^2v)) plus a constant.
func (l StudentT) NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node {
	both := l.Parameters(s, outputs)
	m, v := graph.SliceAxis(both, -1, graph.AxisElem(0)), graph.SliceAxis(both, -1, graph.AxisElem(1))
	z := graph.Mul(graph.Sub(targets, m), ops.Exp(graph.Neg(v)))
	tail := graph.MulScalar(graph.Log1P(graph.MulScalar(graph.Mul(z, z), 1/l.Nu)), (l.Nu+1)/2)
	above, _ := math.Lgamma((l.Nu + 1) / 2)
	below, _ := math.Lgamma(l.Nu / 2)
	return graph.AddScalar(graph.Add(v, tail), below-above+0.5*math.Log(l.Nu*math.Pi))
}

// Given implements Distribution.
func (l StudentT) Given(parameters []float64) Univariate {
	return distuv.StudentsT{Mu: parameters[0], Sigma: math.Exp(parameters[1]), Nu: l.Nu}
}

// Poisson is the distribution of a count, p(y) = r^y e^-r / y! for y = 0, 1, 2, ..., with the rate r = e^output. Give
// the counts as they are: do not standardise them.
type Poisson struct{}

// Outputs returns 1: the logarithm of the rate.
func (Poisson) Outputs() int { return 1 }

// Parameters returns log r, [..., batch, 1].
func (Poisson) Parameters(_ *model.Scope, outputs *graph.Node) *graph.Node { return outputs }

// NLL returns e^output - target output + log(target!). It is computed as
//
//	y (e^u - 1 - u) + [log(y!) - y log y + y],   u = output - log y,
//
// because the terms of the first form are as large as y log y, which loses digits in float32.
func (Poisson) NLL(_ *model.Scope, outputs, targets *graph.Node) *graph.Node {
	y := graph.MaxScalar(targets, 1) // of 0 the NLL is e^output
	u := graph.Sub(outputs, graph.Log(y))
	nll := graph.Add(graph.Mul(y, expLess(u)), excess(y))
	return graph.Where(graph.LessThan(targets, graph.OnesLike(targets)), ops.Exp(outputs), nll)
}

// expLess is e^u - 1 - u, which near 0 loses its digits: between -1/2 and 1/2 it is the series u^2/2! + u^3/3! + ...
func expLess(u *graph.Node) *graph.Node {
	const reach, terms = 0.5, 16
	near := graph.ClipScalar(u, -reach, reach)
	series := graph.OnesLike(u)
	for k := terms; k > 2; k-- {
		series = graph.AddScalar(graph.MulScalar(graph.Mul(near, series), 1/float64(k)), 1)
	}
	series = graph.Mul(graph.MulScalar(graph.Mul(near, near), 0.5), series)
	return graph.Where(graph.LessThan(graph.Abs(u), graph.Scalar(u.Graph(), u.DType(), reach)), series, graph.AddScalar(graph.Sub(ops.Exp(u), u), -1))
}

// lanczos are the coefficients of Lanczos' approximation with g = 7 (Godfrey 2001).
var lanczos = []float64{
	0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
	-176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
}

// excess is log Gamma(y+1) - y log y + y of y >= 1, with a relative error of 1e-15 of the
// Gamma function in double precision:
//
//	1/2 log 2 pi t + y log(1 + 15/2y) - 15/2 + log sum_i c_i / (y+i),   t = y + 15/2.
func excess(y *graph.Node) *graph.Node {
	sum := graph.AddScalar(graph.ZerosLike(y), lanczos[0])
	for i, c := range lanczos[1:] {
		sum = graph.Add(sum, graph.MulScalar(graph.Reciprocal(graph.AddScalar(y, float64(i+1))), c))
	}
	const half = 7.5
	power := graph.Mul(y, graph.Log1P(graph.MulScalar(graph.Reciprocal(y), half)))
	root := graph.MulScalar(graph.Log(graph.AddScalar(y, half)), 0.5)
	return graph.AddScalar(graph.Add(graph.Add(power, root), graph.Log(sum)), 0.5*math.Log(2*math.Pi)-half)
}

// Given implements Distribution.
func (Poisson) Given(parameters []float64) Univariate {
	return distuv.Poisson{Lambda: math.Exp(parameters[0])}
}

// CheckTarget implements TargetChecker.
func (Poisson) CheckTarget(y float64) error {
	if y < 0 || y != math.Trunc(y) {
		return fmt.Errorf("likelihood.Poisson is of counts 0, 1, 2, ..., and cannot have %g; give the counts as they are, not standardised", y)
	}
	return nil
}

// Quantiles estimates the target's quantiles at the given levels by the pinball loss (Koenker & Bassett 1978): output k
// is the quantile at Levels[k]. It is not a distribution, since it says nothing between the levels. Its NLL is a loss
// in the unit of the target.
type Quantiles struct {
	// Levels must ascend, each above 0 and below 1, such as {0.05, 0.5, 0.95}.
	Levels []float64
}

// Check implements Checker.
func (l Quantiles) Check() error {
	if len(l.Levels) == 0 {
		return errors.New("likelihood.Quantiles has no Levels; give some, such as {0.05, 0.5, 0.95}")
	}
	before := 0.0
	for _, level := range l.Levels {
		if !(level > before && level < 1) {
			return fmt.Errorf("likelihood.Quantiles has Levels %v; they must ascend, each above 0 and below 1", l.Levels)
		}
		before = level
	}
	return nil
}

// Outputs returns the number of levels.
func (l Quantiles) Outputs() int { return len(l.Levels) }

// NLL returns the pinball loss, summed over the levels a_k and outputs q_k:
//
//	sum_k max(a_k (target - q_k), (a_k - 1) (target - q_k)).
func (l Quantiles) NLL(_ *model.Scope, outputs, targets *graph.Node) *graph.Node {
	dims := slices.Repeat([]int{1}, outputs.Rank())
	dims[len(dims)-1] = len(l.Levels)
	levels := graph.Reshape(graph.ConvertDType(graph.Const(outputs.Graph(), l.Levels), outputs.DType()), dims...)
	u := graph.Sub(graph.BroadcastToDims(targets, outputs.Shape().Dimensions...), outputs)
	return ops.SumColumns(graph.Max(graph.Mul(u, levels), graph.Mul(u, graph.AddScalar(levels, -1))))
}
