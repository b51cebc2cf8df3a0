package dul

import "densityuncertainty/dul/conv"

// EnergyMultiplyAdds is the number of multiply-adds that the energy model of a
// layer with window w takes for one image of channels x height x width pixels,
// in prediction and in a training step: the gradient of its parameters takes as
// many again, and that of its input, which is there unless Detached, once more. An energy model that does not say what it takes counts as nothing.
func (l Density) EnergyMultiplyAdds(channels int, w conv.Window, height, width int) (forward, training int) {
	counted, ok := l.withDefaults().Energy.(interface {
		MultiplyAdds(channels int, w conv.Window, height, width int) int
	})
	if !ok {
		return 0, 0
	}
	forward = counted.MultiplyAdds(channels, w, height, width)
	if l.Gradients == Detached {
		return forward, 2 * forward
	}
	return forward, 3 * forward
}
