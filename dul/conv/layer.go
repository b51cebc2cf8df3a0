package conv

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
)

// A Spec is what a network asks of a convolutional layer.
type Spec struct {
	Filters int
	Window  Window
	// NoBias leaves the bias out, as before a batch normalisation.
	NoBias bool
}

// FanIn is the number of inputs of one output entry of a convolution of x.
func (c Spec) FanIn(x *graph.Node) int { return x.Shape().Dim(0) * c.Window.Size * c.Window.Size }

// Layer returns the deterministic convolution of x with the kernel "weights",
// [filters, channels*size*size], and the "bias", [filters, 1]. The kernel starts
// Kaiming-normal, the bias at draws from U(-1/sqrt(fan in), 1/sqrt(fan in)); both
// have role Weight.
func Layer(s *model.Scope, x *graph.Node, c Spec) *graph.Node {
	fanIn := c.FanIn(x)
	kernel := params.New(s, Channels(x), "weights", params.Weight, params.KaimingNormal(fanIn), c.Filters, fanIn)
	return AddBias(s, Convolve(x, kernel, c.Window), c, fanIn)
}

// AddBias adds the parameter "bias" to the output y of a convolution, unless the
// Spec has none.
func AddBias(s *model.Scope, y *graph.Node, c Spec, fanIn int) *graph.Node {
	if c.NoBias {
		return y
	}
	bias := params.New(s, Channels(y), "bias", params.Weight, params.Uniform(1/math.Sqrt(float64(fanIn))), c.Filters, 1)
	return LikeImage(AddColumn(Channels(y), bias), y)
}
