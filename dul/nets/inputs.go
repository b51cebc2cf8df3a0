package nets

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/params"
)

// A Standardization has the mean and the standard deviation of each channel of the training images, for values v/255
// from 0 to 1.
type Standardization struct {
	Mean, Std []float64
}

// Inputs are N inputs of a network: Floats or Pixels.
type Inputs interface {
	// Len returns N.
	Len() int
	// Check returns an error unless the fields have matching lengths, N is at least 1 and all values are finite.
	Check() error
}

// CheckInputs returns an error unless x is Floats or Pixels, passes its Check, and has inputs of the same type and
// shape as the others.
func CheckInputs(x Inputs, others ...Inputs) error {
	switch x.(type) {
	case nil:
		return errors.New("there are no Inputs; give nets.Floats, such as nets.Rows(values, features), or nets.Pixels")
	case Floats, Pixels:
		for _, other := range others {
			if a, b := shapeOf(x), shapeOf(other); a != b {
				return fmt.Errorf("an input is %s, where others are %s", a, b)
			}
		}
		return x.Check()
	}
	return fmt.Errorf("there are inputs of type %T; want nets.Floats or nets.Pixels", x)
}

// First returns the first n of several inputs, or all if there are fewer.
func First(x Inputs, n int) Inputs {
	n = min(n, x.Len())
	switch x := x.(type) {
	case Floats:
		x.Values = x.Values[:n*x.Size()]
		return x
	case Pixels:
		x.Bytes = x.Bytes[:n*x.Size()]
		return x
	}
	return x
}

// shapeOf is the type and the shape of one input.
func shapeOf(x Inputs) string {
	switch x := x.(type) {
	case Floats:
		return fmt.Sprintf("nets.Floats of shape %v", x.Shape)
	case Pixels:
		return fmt.Sprintf("nets.Pixels of shape [%d %d %d]", x.Channels(), x.Height, x.Width)
	}
	return fmt.Sprintf("of type %T", x)
}

// Floats are inputs of real numbers. The network sees them as [..., batch, Shape...].
type Floats struct {
	// Values are the inputs, [N, Shape...] row-major. They must be finite, also as float32. Standardise them.
	Values []float64
	// Shape is the shape of one input, such as {features}, or {1} for single numbers.
	Shape []int
}

// Rows returns the inputs in values, [N, features] row-major.
func Rows(values []float64, features int) Floats {
	return Floats{Values: values, Shape: []int{features}}
}

// Size is the number of values of one input.
func (f Floats) Size() int {
	size := 1
	for _, n := range f.Shape {
		size *= n
	}
	return size
}

// Len implements Inputs.
func (f Floats) Len() int { return len(f.Values) / max(f.Size(), 1) }

// Check implements Inputs.
func (f Floats) Check() error {
	if len(f.Shape) == 0 {
		return fmt.Errorf("there are %d input values without the Shape of one input; give nets.Rows(values, features), or nets.Floats with a Shape such as {features}", len(f.Values))
	}
	if size := f.Size(); slices.Min(f.Shape) < 1 || len(f.Values) == 0 || len(f.Values)%size != 0 {
		return fmt.Errorf("%d input values are not a positive number of inputs of shape %v", len(f.Values), f.Shape)
	}
	if at := params.NotFinite(f.Values); at >= 0 {
		return fmt.Errorf("input %d, feature %d is %g; all must be finite, also as float32: leave such inputs out, and standardise the others", at/f.Size(), at%f.Size(), f.Values[at])
	}
	return nil
}

// Pixels are images as bytes. The network sees them standardised, [channels, batch, Height, Width] (see
// Standardization.Images).
type Pixels struct {
	// Bytes has shape [N, channels, Height, Width], row-major; 0 is black.
	Bytes         []byte
	Height, Width int
	// Standardization has a mean and a standard deviation for each channel.
	Standardization Standardization
}

// Channels is the number of channels.
func (p Pixels) Channels() int { return len(p.Standardization.Mean) }

// Size is the number of bytes of one image.
func (p Pixels) Size() int { return p.Channels() * p.Height * p.Width }

// Len implements Inputs.
func (p Pixels) Len() int { return len(p.Bytes) / max(p.Size(), 1) }

// Check implements Inputs.
func (p Pixels) Check() error {
	if p.Channels() < 1 || p.Height < 1 || p.Width < 1 {
		return fmt.Errorf("images of %d x %d pixels with %d channel means; all must be at least 1", p.Height, p.Width, p.Channels())
	}
	if len(p.Bytes) == 0 || len(p.Bytes)%p.Size() != 0 {
		return fmt.Errorf("%d bytes are not a positive number of images of %d bytes each", len(p.Bytes), p.Size())
	}
	mean, std := p.Standardization.Mean, p.Standardization.Std
	if len(std) != len(mean) {
		return fmt.Errorf("standardisation by %d means and %d standard deviations; each channel needs one of both", len(mean), len(std))
	}
	for i, s := range std {
		if !(s > 0) || params.NotFinite([]float64{mean[i], s}) >= 0 {
			return fmt.Errorf("standardisation: the mean of channel %d is %g and its standard deviation %g; both must be finite, and the latter positive", i, mean[i], s)
		}
	}
	return nil
}

// Images returns, in the graph, the standardised images of bytes, so that the device receives only one byte a pixel:
//
//	z = (v/255 - Mean) / Std
//
// for bytes v: uint8 [batch, channels, height, width] -> dtype [channels, batch, height, width]. p must be valid
// (Pixels.Check).
func (p Standardization) Images(x *graph.Node, dtype dtypes.DType) *graph.Node {
	x.AssertRank(4)
	params.FactsOf(x.Graph()).Images = true
	channels := x.Shape().Dim(1)
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
