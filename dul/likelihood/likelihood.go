// Package likelihood has the distributions p(y | outputs) of a target given a network's outputs.
package likelihood

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

// A Likelihood is the distribution of a target given the outputs of a network. This package has seven: Gaussian,
// KnownNoise, Heteroscedastic, StudentT, Poisson, Quantiles and Categorical. Your own needs these two methods. Further
// methods are optional: those of Regression, Distribution or Classification let package predict compute more than the
// NLL, Checker and TargetChecker refuse invalid settings and targets, and Rescaler converts settings to the unit of the
// training targets.
type Likelihood interface {
	// Outputs returns the number of network outputs for each example.
	Outputs() int
	// NLL returns -log p(target | outputs) of each example, [..., batch, 1]. outputs are [..., batch, Outputs()], where
	// "..." is the replica axis, if there is one. targets are [..., batch, T]: of the outputs' type if they are real
	// numbers, Int32 if they are labels. Make trained parameters by params.New(s, outputs, ...) with the role
	// params.Likelihood.
	NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node
}

// A Regression is a likelihood of a real target with a mean and a variance. Package predict treats the target as
// Gaussian.
type Regression interface {
	Likelihood
	// Moments returns the target's mean, [..., batch, 1], and the logarithm of its variance, [..., batch, 1], or [...,
	// 1, 1] if it is the same for all examples.
	Moments(s *model.Scope, outputs *graph.Node) (mean, logVariance *graph.Node)
}

// Gaussian is y ~ N(output, sigma^2). sigma^2 is one trained parameter ("we treat the output variance as a trainable
// parameter", appendix of the paper), which starts at 1.
type Gaussian struct{}

// Outputs returns 1: the mean.
func (Gaussian) Outputs() int { return 1 }

// LogVariance is the name of Gaussian's parameter log sigma^2.
const LogVariance = "observation_log_variance"

// Moments returns the outputs and log sigma^2, [..., 1, 1].
func (Gaussian) Moments(s *model.Scope, outputs *graph.Node) (mean, logVariance *graph.Node) {
	return outputs, params.New(s, outputs, LogVariance, params.Likelihood, params.Constant(0), 1, 1)
}

// NLL returns 1/2 [log 2 pi + log sigma^2 + (target - mean)^2 / sigma^2].
func (l Gaussian) NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node {
	mean, logVariance := l.Moments(s, outputs)
	return gaussianNLL(mean, logVariance, targets)
}

// A Rescaler is a likelihood with settings in the unit of the target, such as KnownNoise.
type Rescaler interface {
	Likelihood
	// Rescale returns the likelihood, of the same type, for standardised targets t = (y - zero) / unit. Table of
	// package experiment calls it with the unit and zero of each split.
	Rescale(unit, zero float64) Likelihood
}

// Rescaled returns the likelihood of standardised targets t = (y - zero) / unit, where l is the likelihood of y: the
// result of Rescale if l is a Rescaler, and otherwise l. It is an error if Rescale returns another type or invalid
// settings. If l has a type from outside this package and is no Rescaler, a real number in it that is not 0, also in a list
// or in another value, is an error: its unit is unknown. A Classification need not be a Rescaler.
func Rescaled(l Likelihood, unit, zero float64) (Likelihood, error) {
	if unit == 1 && zero == 0 {
		return l, nil
	}
	if own, is := l.(Rescaler); is {
		found := own.Rescale(unit, zero)
		if reflect.Indirect(reflect.ValueOf(found)).Type() != reflect.Indirect(reflect.ValueOf(l)).Type() {
			return nil, fmt.Errorf("the likelihood of type %T returns a %T from Rescale; give a type that embeds another a method of its own", l, found)
		}
		if c, is := found.(Checker); is {
			return found, c.Check()
		}
		return found, nil
	}
	if _, classes := l.(Classification); !classes {
		if name, number := realNumber(reflect.ValueOf(l), "itself", 6); number != 0 {
			return nil, fmt.Errorf("the likelihood of type %T has the number %s, %g, and the targets are standardised: give the type a method Rescale (likelihood.Rescaler), which returns it with its numbers in the unit of each split, or unchanged if they have no unit; or leave the targets as they are (RawTargets)", l, name, number)
		}
	}
	return l, nil
}

// realNumber returns a nonzero real number in v, with its name; v has the given name. It returns 0 if there is none. Of this
// package's types only Rescalers have numbers with a unit.
func realNumber(v reflect.Value, name string, depth int) (string, float64) {
	count, at := 0, func(i int) (reflect.Value, string) { return v.Index(i), name }
	switch kind := v.Kind(); {
	case depth == 0:
	case v.CanFloat():
		return name, v.Float()
	case (kind == reflect.Pointer || kind == reflect.Interface) && !v.IsNil():
		return realNumber(v.Elem(), name, depth-1)
	case kind == reflect.Slice || kind == reflect.Array:
		count = v.Len()
	case kind == reflect.Struct && (v.Type().PkgPath() != reflect.TypeFor[Gaussian]().PkgPath() || v.Type().Implements(reflect.TypeFor[Rescaler]())):
		count, at = v.NumField(), func(i int) (reflect.Value, string) { return v.Field(i), v.Type().Field(i).Name }
	}
	for i := range count {
		element, called := at(i)
		if found, number := realNumber(element, called, depth-1); number != 0 {
			return found, number
		}
	}
	return "", 0
}

// KnownNoise is y ~ N(output, s^2) with a known standard deviation s, which is not trained. Set exactly one of the
// fields.
type KnownNoise struct {
	// Std is s in the unit of the data. If a source standardises targets, networks are trained with s divided by the
	// unit of the split.
	Std float64 `experiment:"DataStd"`
	// Standardised is s in the unit of standardised targets. In the unit of the data it then differs between splits.
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

// Outputs returns 1: the mean.
func (KnownNoise) Outputs() int { return 1 }

// Moments returns the outputs and log s^2, [..., 1, 1].
func (l KnownNoise) Moments(_ *model.Scope, outputs *graph.Node) (mean, logVariance *graph.Node) {
	dims := slices.Clone(outputs.Shape().Dimensions)
	dims[len(dims)-2] = 1
	logVariance = graph.Scalar(outputs.Graph(), outputs.DType(), 2*math.Log(l.std()))
	return outputs, graph.BroadcastToDims(logVariance, dims...)
}

// NLL returns 1/2 [log 2 pi + log s^2 + (target - mean)^2 / s^2].
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

// Heteroscedastic is y ~ N(m, e^v) with a variance that depends on the input: m and v are the network's two outputs
// (Kendall & Gal 2017, section 2.2).
//
// With e^v instead of softplus(v) (Lakshminarayanan et al. 2017) the NLL needs only e^-v and v. Nothing underflows, no
// smallest variance is needed, and v = 0 is the variance of standardised targets. But the variance grows fast where the
// network extrapolates v linearly.
type Heteroscedastic struct{}

// Outputs returns 2: mean and log-variance.
func (Heteroscedastic) Outputs() int { return 2 }

// Moments returns the two outputs, m and v, [..., batch, 1] each.
func (Heteroscedastic) Moments(_ *model.Scope, outputs *graph.Node) (mean, logVariance *graph.Node) {
	return graph.SliceAxis(outputs, -1, graph.AxisElem(0)), graph.SliceAxis(outputs, -1, graph.AxisElem(1))
}

// NLL returns 1/2 [log 2 pi + v + (target - m)^2 e^-v].
func (l Heteroscedastic) NLL(s *model.Scope, outputs, targets *graph.Node) *graph.Node {
	mean, logVariance := l.Moments(s, outputs)
	return gaussianNLL(mean, logVariance, targets)
}

// A Classification is a likelihood of labels that gives the probability of each of Outputs() classes.
type Classification interface {
	Likelihood
	// LogProbabilities returns log p(class | outputs), [..., batch, Outputs()]. The NLL of a label is minus its entry.
	LogProbabilities(s *model.Scope, outputs *graph.Node) *graph.Node
}

// Logits returns numbers whose softmax is p(class | outputs), [..., batch, Outputs()]: the outputs of a Categorical,
// and the LogProbabilities of any other. It panics if LogProbabilities have another shape than the outputs.
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

// Correct returns 1 for each example whose label is the most probable class, and else 0, [..., batch, 1]. Of equally
// probable classes the first counts. If the outputs are several draws, [draws, ..., batch, Outputs()], Correct uses
// their mean Logits.
func Correct(l Classification, s *model.Scope, outputs, labels *graph.Node) *graph.Node {
	logits := Logits(l, s, outputs)
	if drawsOf(logits, labels) > 0 {
		logits = meanOfDraws(logits)
	}
	chosen := graph.ExpandAxes(graph.ArgMax(logits, -1, labels.DType()), -1)
	return graph.ConvertDType(graph.Equal(chosen, labels), logits.DType())
}

// Categorical is p(y | outputs) = softmax(outputs)_y of at least 2 classes. The outputs are logits, the targets labels
// from 0, [..., batch, 1]. In training, baselines.DUE returns several draws of the logits, [draws, ..., batch,
// Classes]; NLL is then the mean over the draws.
type Categorical struct{ Classes int }

// Check implements Checker.
func (l Categorical) Check() error {
	if l.Classes < 2 {
		return fmt.Errorf("a likelihood of %d classes was asked for; at least 2 are needed", l.Classes)
	}
	return nil
}

// Outputs returns the number of classes.
func (l Categorical) Outputs() int { return l.Classes }

// NLL returns the cross-entropy, log sum_k exp(logit_k) - logit_label.
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

// LogProbabilities returns logit_k - log sum_j exp(logit_j).
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
