package datasets

import "fmt"

// Augmentation shifts and mirrors images at random while training. The recipe
// customary for CIFAR is Augmentation{Pad: 4, Flip: true}; the zero value changes
// nothing.
//
// An image is padded by Pad pixels on every side, a window of the original size
// is cut out at a random place, and with Flip the window is mirrored left to
// right half of the time. The padding is black, pixel value 0: it is added before
// normalisation, as in the usual recipe, so that normalised it is
// (0 - Mean) / Std and not 0.
type Augmentation struct {
	// Pad is the width of the padding in pixels, at least 0.
	Pad int
	// Flip is whether to mirror.
	Flip bool
}

// Draw returns what to do with an example in an epoch: the window's top row dy and
// left column dx in the padded image, independent and uniform on 0, ..., 2 Pad,
// and whether to mirror, with probability 1/2 if Flip. Of an image src the training
// example is then, with q = 31 - x if flip and q = x otherwise,
//
//	dst[c, y, x] = src[c, y + dy - Pad, q + dx - Pad], or 0 outside of src;
//
// (Pad, Pad, false) gives the image itself. Package train cuts the windows out
// where the backend computes.
//
// The result depends on nothing but Pad, Flip and the arguments: index is the
// number of the example in its set, not in its batch, so neither batches nor the
// number of workers matter. Flip does not change dy and dx. Draw panics if Pad is
// negative.
func (a Augmentation) Draw(seed uint64, epoch, index int) (dy, dx int, flip bool) {
	if a.Pad < 0 {
		panic(fmt.Sprintf("datasets: Augmentation: Pad is %d, it must not be negative", a.Pad))
	}
	rng := draws(augmentStream, seed, epoch, index)
	dy, dx = rng.IntN(2*a.Pad+1), rng.IntN(2*a.Pad+1)
	return dy, dx, a.Flip && rng.IntN(2) == 1
}
