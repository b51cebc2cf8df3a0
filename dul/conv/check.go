package conv

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
)

// Check panics, as GoMLX's graph-building functions do, if a convolutional layer
// cannot be built: it needs images x, [channels, batch, height, width], of a type of
// parameters (params.CheckType) with at least one channel, at least one filter, and a
// window that fits. layer is the layer's name in the message, such as "dul.Density".
func (c Spec) Check(layer string, s *model.Scope, x *graph.Node) {
	shape := x.Shape()
	fail := func(err error) { panic(fmt.Errorf("%s at %s: %w", layer, s.Scope(), err)) }
	if err := c.Window.fits(x); err != nil {
		fail(err)
	}
	if err := params.CheckType(shape.DType); err != nil {
		fail(fmt.Errorf("images of shape %s: %w", shape, err))
	}
	if shape.Dim(0) < 1 || c.Filters < 1 {
		fail(fmt.Errorf("%d filters on images of shape %s; want at least one filter and one channel", c.Filters, shape))
	}
}
