package energy

import "densityuncertainty/dul/conv"

// MultiplyAdds is the number of multiply-adds of the energies of one image of
// channels x height x width pixels under the window w: those of the masked
// convolution, at stride 1, the masked entries included. A vector of D features
// is an image of one pixel and D channels under a window of one pixel.
func (LDL) MultiplyAdds(channels int, w conv.Window, height, width int) int {
	return channels * channels * w.Size * w.Size * height * width
}

// MultiplyAdds is the number of multiply-adds of the energies of one image, as
// for LDL: those of the two convolutions with one filter for each component.
func (m Rank1Mixture) MultiplyAdds(channels int, w conv.Window, height, width int) int {
	return 2 * m.ConvComponents(channels) * channels * w.Size * w.Size * w.Out(height) * w.Out(width)
}
