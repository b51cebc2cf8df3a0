package stochastic

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"
)

// A Distribution is a distribution of independent noise entries. Its values can
// be compared with ==.
type Distribution interface {
	// Sample returns noise of the shape and type of base's draws, each entry a
	// function of the entries of base's draws at the same place. It is called
	// once for each draw, while the graph is built.
	Sample(base Base) *graph.Node
}

// Base are independent random numbers of one shape, fresh at every execution,
// from which a Distribution makes its own: every call gives others. They come
// from the host or are drawn in the graph, whatever the graph's NoiseSource is.
type Base struct{ draw func(law) *graph.Node }

// Normal is N(0, 1).
func (b Base) Normal() *graph.Node { return b.draw(law{kind: normal}) }

// Uniform is U[0, 1): multiples of 2^-24, 0 among them and 1 not.
func (b Base) Uniform() *graph.Node { return b.draw(law{kind: uniform}) }

// Mask is 1/keep with probability keep, else 0. It panics unless 0 < keep <= 1.
func (b Base) Mask(keep float64) *graph.Node {
	if !(keep > 0 && keep <= 1) {
		panic(fmt.Errorf("a mask of noise keeps entries with probability %g; it must be above 0 and at most 1", keep))
	}
	return b.draw(law{kind: mask, keep: keep})
}

// A law is the distribution of a base draw.
type law struct {
	kind lawKind
	keep float64 // of a mask
}

type lawKind int

const (
	normal lawKind = iota
	uniform
	mask
)

// Gaussian is N(0, 1), the paper's noise.
func Gaussian() Distribution { return gaussian{} }

type gaussian struct{}

// Sample implements Distribution.
func (gaussian) Sample(b Base) *graph.Node { return b.Normal() }

// Uniform01 is U[0, 1), what the authors' released code draws in place of
// N(0, 1): its mean is 1/2 and its standard deviation 1/sqrt(12) = 0.289.
func Uniform01() Distribution { return uniform01{} }

type uniform01 struct{}

// Sample implements Distribution.
func (uniform01) Sample(b Base) *graph.Node { return b.Uniform() }

// DropoutMask is 1/(1-rate) with probability 1-rate, else 0: mean 1,
// variance rate/(1-rate). It panics unless 0 <= rate < 1.
func DropoutMask(rate float64) Distribution {
	if !(rate >= 0 && rate < 1) {
		panic(fmt.Errorf("dropout rate is %g; it must be at least 0 and below 1", rate))
	}
	return dropoutMask{keep: 1 - rate}
}

type dropoutMask struct{ keep float64 }

// Sample implements Distribution.
func (d dropoutMask) Sample(b Base) *graph.Node { return b.Mask(d.keep) }

// StudentT is Student's t with Nu > 0 degrees of freedom, one of the heavy-tailed
// distributions that the paper suggests in place of the Gaussian (section 2.4).
// Its mean is 0 for Nu > 1 and its variance Nu/(Nu-2) for Nu > 2, infinite up to
// there; for large Nu it is N(0, 1).
type StudentT struct {
	Nu float64
	// UnitVariance divides the draws by sqrt(Nu/(Nu-2)), so that a layer's noise
	// has the variance that its gamma and beta say. It needs Nu > 2.
	UnitVariance bool
}

// Sample implements Distribution. It is the polar method of Bailey (1994): for U
// and V uniform on (0, 1),
//
//	sqrt(Nu (U^(-2/Nu) - 1)) cos 2 pi V
//
// has the t distribution exactly. The draws of U are at least 2^-24, so that none
// is larger than sqrt(Nu (2^(48/Nu) - 1)), which is 2e14 for Nu = 1/2, 2e7 for
// Nu = 1 and 62 for Nu = 5; in single precision it overflows for Nu below 3/8.
func (t StudentT) Sample(b Base) *graph.Node {
	if !(t.Nu > 0) || t.UnitVariance && !(t.Nu > 2) {
		panic(fmt.Errorf("stochastic.StudentT: %g degrees of freedom; they must be above 0, and above 2 for UnitVariance", t.Nu))
	}
	scale := t.Nu
	if t.UnitVariance {
		scale = t.Nu - 2
	}
	y := graph.MulScalar(graph.Log(graph.OneMinus(b.Uniform())), -2/t.Nu)
	// e^y - 1, also for small y; not every backend has it as one operation.
	power := graph.Mul(graph.Tanh(graph.MulScalar(y, 0.5)), graph.AddScalar(graph.Exp(y), 1))
	radius := graph.Sqrt(graph.MulScalar(power, scale))
	return graph.Mul(radius, graph.Cos(graph.MulScalar(b.Uniform(), 2*math.Pi)))
}
