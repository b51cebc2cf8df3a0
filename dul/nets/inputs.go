package nets

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/params"
)

// A Standardization is the mean and the standard deviation of each channel of
// the training images, on the scale of v/255, from 0 to 1.
type Standardization struct {
	Mean, Std []float64
}

// Check returns an error unless there are a mean and a positive standard
// deviation for each of the channels.
func (p Standardization) Check(channels int) error {
	if len(p.Mean) != channels || len(p.Std) != channels {
		return fmt.Errorf("standardisation by %d means and %d standard deviations of images with %d channels; each channel needs one of both",
			len(p.Mean), len(p.Std), channels)
	}
	for i, std := range p.Std {
		if !(std > 0) {
			return fmt.Errorf("standardisation: the standard deviation of channel %d is %g; it must be positive", i, std)
		}
	}
	return nil
}

// Images makes a network's input of bytes, in the graph, so that only a byte a
// pixel has to reach the device:
//
//	z = (v/255 - Mean) / Std
//
// for a byte v, uint8 [batch, channels, height, width] -> dtype [channels,
// batch, height, width]. It panics where Check has an error, as GoMLX's
// graph-building functions do.
func (p Standardization) Images(x *graph.Node, dtype dtypes.DType) *graph.Node {
	x.AssertRank(4)
	channels := x.Shape().Dim(1)
	if err := p.Check(channels); err != nil {
		panic(fmt.Errorf("nets.Standardization: %w", err))
	}
	factors, offsets := make([]float64, channels), make([]float64, channels)
	for i := range factors {
		factors[i] = 1 / (255 * p.Std[i])
		offsets[i] = -p.Mean[i] / p.Std[i]
	}
	column := func(values []float64) *graph.Node {
		return graph.ConstTensor(x.Graph(), params.FromFloat64(shapes.Make(dtype, channels, 1), values))
	}
	images := graph.Transpose(graph.ConvertDType(x, dtype), 0, 1)
	scaled := conv.MulColumn(conv.Channels(images), column(factors))
	return graph.StopGradient(conv.LikeImage(conv.AddColumn(scaled, column(offsets)), images))
}
