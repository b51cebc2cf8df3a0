// Package likelihood holds the distributions p(y | outputs) of a target given a network's outputs.
package likelihood

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

// A Likelihood is a distribution of a target given the outputs of a network.
// Gaussian, KnownNoise, Heteroscedastic, StudentT, Poisson, Quantiles and Categorical are
// seven; any type with these two methods is another. What else it can say it says by the methods
// of Regression, Distribution or Classification, by those of Checker and
// TargetChecker what it refuses, and by that of Rescaler in which unit its settings are.
type Likelihood interface {
	// Outputs is the number of outputs that the network has for each example.
	Outputs() int
	// NLL is -log p(target | outputs) of each example, [..., batch, 1], for
	// outputs [..., batch, Outputs()]; "..." is the replica axis, if there is one.
	// Targets are [..., batch, T], of the outputs' type where they are real
	// numbers, Int32 where they are labels. Parameters of its own are made by
	// params.New(s, outputs, ...) with the role params.Likelihood.
	NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node
}

// A Regression is a likelihood of a real target with a mean and a variance.
type Regression interface {
	Likelihood
	// Moments are the target's mean and the logarithm of its variance, each
	// [..., batch, 1]; the latter may be [..., 1, 1], the same for all examples.
	Moments(s *model.Scope, outputs *graph.Node) (mean, logVariance *graph.Node)
}

// Gaussian is y ~ N(output, sigma^2) with a constant, trained variance ("we treat
// the output variance as a trainable parameter", appendix of the paper), whose
// logarithm starts at 0.
type Gaussian struct{}

// Outputs is 1, the mean.
func (Gaussian) Outputs() int { return 1 }

// LogVariance is the name of Gaussian's parameter, log sigma^2.
const LogVariance = "observation_log_variance"

// Moments are the output and log sigma^2, [..., 1, 1].
func (Gaussian) Moments(s *model.Scope, outputs *graph.Node) (mean, logVariance *graph.Node) {
	return outputs, params.New(s, outputs, LogVariance, params.Likelihood, params.Constant(0), 1, 1)
}

// NLL is 1/2 [log 2 pi + log sigma^2 + (target - mean)^2 / sigma^2].
func (l Gaussian) NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node {
	mean, logVariance := l.Moments(s, outputs)
	return gaussianNLL(mean, logVariance, targets)
}

// A Rescaler is a likelihood that has settings in the unit of the target, such as KnownNoise.
type Rescaler interface {
	Likelihood
	// Rescale returns the same likelihood, of the same type, for targets t that stand for t unit + zero: Table of package
	// experiment standardises targets by the unit and zero of each split. A likelihood whose numbers have no unit returns itself.
	Rescale(unit, zero float64) Likelihood
}

// KnownNoise is y ~ N(output, s^2) with a standard deviation s that is known and not trained. One of its fields is s.
type KnownNoise struct {
	// Std is s in the unit of the data. Where a source standardises targets, the networks are trained with
	// s divided by the unit of their split.
	Std float64 `experiment:"DataStd"`
	// Standardised is s in the unit of standardised targets, which in the data's unit differs from split to split.
	Standardised float64 `experiment:"Std"` // the name that Std had when it meant this
}

// Rescale implements Rescaler.
func (l KnownNoise) Rescale(unit, _ float64) Likelihood {
	return KnownNoise{Std: l.Std / unit, Standardised: l.Standardised}
}

// Check implements Checker.
func (l KnownNoise) Check() error {
	if l.Std != 0 && l.Standardised != 0 {
		return fmt.Errorf("likelihood.KnownNoise has Std %g and Standardised %g; set one of them", l.Std, l.Standardised)
	}
	if !(l.std() > 0) || math.IsInf(l.std(), 1) {
		return fmt.Errorf("likelihood.KnownNoise has Std %g; the noise must be positive and finite", l.std())
	}
	return nil
}

func (l KnownNoise) std() float64 { return cmp.Or(l.Std, l.Standardised) }

// Outputs is 1, the mean.
func (KnownNoise) Outputs() int { return 1 }

// Moments are the output and log s^2, [..., 1, 1].
func (l KnownNoise) Moments(_ *model.Scope, outputs *graph.Node) (mean, logVariance *graph.Node) {
	dims := slices.Clone(outputs.Shape().Dimensions)
	dims[len(dims)-2] = 1
	logVariance = graph.Scalar(outputs.Graph(), outputs.DType(), 2*math.Log(l.std()))
	return outputs, graph.BroadcastToDims(logVariance, dims...)
}

// NLL is 1/2 [log 2 pi + log s^2 + (target - mean)^2 / s^2].
func (l KnownNoise) NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node {
	mean, logVariance := l.Moments(s, outputs)
	return gaussianNLL(mean, logVariance, targets)
}

// gaussianNLL is -log N(target; mean, e^logVariance).
func gaussianNLL(mean, logVariance, targets *graph.Node) *graph.Node {
	residual := graph.Sub(targets, mean)
	scaled := graph.Mul(graph.Mul(residual, residual), ops.Exp(graph.Neg(logVariance)))
	return graph.MulScalar(graph.Add(scaled, graph.AddScalar(logVariance, math.Log(2*math.Pi))), 0.5)
}

// Heteroscedastic is y ~ N(m, e^v) with a variance that depends on the input: the
// network's two outputs are m and v (Kendall & Gal 2017, section 2.2).
//
// The exponential is chosen over softplus(v) (Lakshminarayanan et al. 2017)
// because the likelihood is then e^-v and v themselves: nothing underflows, no
// smallest variance has to be invented, and v = 0 is the unit variance that
// standardised targets begin with. Its price is a variance that grows fast where
// the network extrapolates v linearly.
type Heteroscedastic struct{}

// Outputs is 2, mean and log-variance.
func (Heteroscedastic) Outputs() int { return 2 }

// Moments are the two outputs.
func (Heteroscedastic) Moments(_ *model.Scope, outputs *graph.Node) (mean, logVariance *graph.Node) {
	return graph.SliceAxis(outputs, -1, graph.AxisElem(0)), graph.SliceAxis(outputs, -1, graph.AxisElem(1))
}

// NLL is 1/2 [log 2 pi + v + (target - m)^2 e^-v].
func (l Heteroscedastic) NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node {
	mean, logVariance := l.Moments(s, outputs)
	return gaussianNLL(mean, logVariance, targets)
}

// A Classification is a likelihood of a label that says how probable each of its classes is, of which there are Outputs().
type Classification interface {
	Likelihood
	// LogProbabilities are log p(class | outputs), [..., batch, Outputs()]: the NLL of a label is the negative of its entry.
	LogProbabilities(s *model.Scope, outputs *graph.Node) *graph.Node
}

// Logits are numbers whose softmax is p(class | outputs), [..., batch, Outputs()]: the outputs of Categorical, and the
// LogProbabilities of others, which must have that shape.
func Logits(l Classification, s *model.Scope, outputs *graph.Node) *graph.Node {
	if _, is := l.(Categorical); is {
		return outputs
	}
	logits := l.LogProbabilities(s, outputs)
	if !slices.Equal(logits.Shape().Dimensions, outputs.Shape().Dimensions) {
		panic(fmt.Errorf("the LogProbabilities of the likelihood of type %T have shape %s for outputs of shape %s; want one number for each output", l, logits.Shape(), outputs.Shape()))
	}
	return logits
}

// Correct is 1 for each example whose label is the most probable class, the first of equally probable ones, and else 0,
// [..., batch, 1]. Of several draws of the outputs, [draws, ..., batch, Outputs()], the mean Logits count.
func Correct(l Classification, s *model.Scope, outputs, labels *graph.Node) *graph.Node {
	logits := Logits(l, s, outputs)
	if drawsOf(logits, labels) > 0 {
		logits = meanOfDraws(logits)
	}
	chosen := graph.ExpandAxes(graph.ArgMax(logits, -1, labels.DType()), -1)
	return graph.ConvertDType(graph.Equal(chosen, labels), logits.DType())
}

// Categorical is p(y | outputs) = softmax(outputs)_y: the outputs are logits, the
// targets labels from 0, [..., batch, 1]. Logits may be several draws, [draws, ...,
// batch, Classes], which baselines.DUE returns in training: NLL is then the mean
// of the draws' cross-entropies.
type Categorical struct{ Classes int }

// Check implements Checker.
func (l Categorical) Check() error {
	if l.Classes < 2 {
		return fmt.Errorf("a likelihood of %d classes was asked for; at least 2 are needed", l.Classes)
	}
	return nil
}

// Outputs is the number of classes.
func (l Categorical) Outputs() int { return l.Classes }

// NLL is log sum_k exp(logit_k) - logit_label, the cross-entropy.
func (Categorical) NLL(_ *model.Scope, logits, labels *graph.Node) *graph.Node {
	draws := drawsOf(logits, labels)
	if draws == 0 {
		return crossEntropy(logits, labels)
	}
	dims := labels.Shape().Dimensions
	repeated := graph.BroadcastToDims(graph.ExpandAxes(labels, 0), slices.Insert(slices.Clone(dims), 0, draws)...)
	each := crossEntropy(joined(logits), joined(repeated))
	return meanOfDraws(graph.Reshape(each, repeated.Shape().Dimensions...))
}

// LogProbabilities are logit_k - log sum_j exp(logit_j).
func (Categorical) LogProbabilities(_ *model.Scope, logits *graph.Node) *graph.Node {
	return graph.Sub(logits, ops.LogSumExp(logits))
}

func crossEntropy(logits, labels *graph.Node) *graph.Node {
	labels = graph.Reshape(labels, labels.Shape().Dimensions[:labels.Rank()-1]...)
	chosen := graph.OneHot(labels, logits.Shape().Dim(-1), logits.DType())
	return graph.Sub(ops.LogSumExp(logits), ops.SumColumns(graph.Mul(logits, chosen)))
}

// drawsOf is the number of draws of the logits, 0 where they are no draws.
func drawsOf(logits, labels *graph.Node) int {
	if logits.Rank() == labels.Rank() {
		return 0
	}
	return logits.Shape().Dim(0)
}

// joined makes one axis of the first two.
func joined(x *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	return graph.Reshape(x, slices.Insert(slices.Clone(dims[2:]), 0, dims[0]*dims[1])...)
}

// meanOfDraws is the mean over the leading axis.
func meanOfDraws(x *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	sum := ops.SumRows(graph.Reshape(x, dims[0], -1))
	return graph.MulScalar(graph.Reshape(sum, dims[1:]...), 1/float64(dims[0]))
}
