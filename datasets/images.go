package datasets

import (
	"fmt"
	"slices"
)

// Measures of an image: rows, columns, colour channels (red, green, blue), and
// their product, the bytes of one image.
const (
	ImageSide     = 32
	ImageChannels = 3
	ImageSize     = ImageChannels * ImageSide * ImageSide
)

// Images is a set of colour images of 32 x 32 pixels, as published: bytes from 0
// (black) to 255.
type Images struct {
	// Name says what the images are, for captions, such as "CIFAR-10 test".
	Name string
	// Citation is the publication to cite, with the terms of use as far as the
	// source states any.
	Citation string
	// Classes names the classes; a label is an index into it.
	Classes []string
	// Pixels has shape [N, 3, 32, 32], row-major: image, channel, row, column.
	Pixels []byte
	// Labels has shape [N]; nil where the source has no labels.
	Labels []int
	// N is the number of images.
	N int
	// WholeN is the number of images of the official set of which these are the sample that comes with the program, and
	// Official are their numbers in it, from 0 on; 0 and nil for images of the official files. Take keeps both.
	WholeN   int
	Official []int
}

// newImages makes room for n images with labels.
func newImages(name, citation string, classes []string, n int) *Images {
	return &Images{
		Name: name, Citation: citation, Classes: slices.Clone(classes), N: n,
		Pixels: make([]byte, n*ImageSize), Labels: make([]int, n),
	}
}

// Image returns the bytes of image i, shape [3, 32, 32], as a view into Pixels
// (not a copy). It panics if i is not in [0, N).
func (m *Images) Image(i int) []byte {
	return m.Pixels[i*ImageSize : (i+1)*ImageSize : (i+1)*ImageSize]
}

// Take copies the images with the given numbers, in that order, and their labels
// if there are any. The result keeps the name. It panics if a number is not in
// [0, N).
func (m *Images) Take(indices []int) *Images {
	out := newImages(m.Name, m.Citation, m.Classes, len(indices))
	out.WholeN = m.WholeN
	if m.Labels == nil {
		out.Labels = nil
	}
	for to, from := range indices {
		m.check(from)
		copy(out.Image(to), m.Image(from))
		if m.Official != nil {
			out.Official = append(out.Official, m.Official[from])
		}
		if m.Labels != nil {
			out.Labels[to] = m.Labels[from]
		}
	}
	return out
}

// check panics if there is no image i.
func (m *Images) check(i int) {
	if i < 0 || i >= m.N {
		panic(fmt.Sprintf("datasets: image %d of %s is outside [0, %d)", i, m.Name, m.N))
	}
}
