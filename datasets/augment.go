package datasets

import (
	"fmt"
	"slices"
	"sync"
)

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
// and whether to mirror, with probability 1/2 if Flip. (Pad, Pad, false) gives the
// image itself.
//
// The result depends on nothing but Pad, Flip and the arguments: index is the
// number of the example in its set, not in its batch, so neither batches nor the
// number of workers matter. Flip does not change dy and dx. Draw panics if Pad is
// negative.
func (a Augmentation) Draw(seed uint64, epoch, index int) (dy, dx int, flip bool) {
	a.check()
	rng := draws(augmentStream, seed, epoch, index)
	dy, dx = rng.IntN(2*a.Pad+1), rng.IntN(2*a.Pad+1)
	return dy, dx, a.Flip && rng.IntN(2) == 1
}

// Apply writes the window of src at row dy and column dx of the padded image,
// mirrored if flip, to dst: with q = 31 - x if flip and q = x otherwise,
//
//	dst[c, y, x] = src[c, y + dy - Pad, q + dx - Pad], or 0 outside of src.
//
// dst and src are images of 3 x 32 x 32 bytes that do not overlap. Apply panics
// if they have another length, Pad is negative, or the window leaves the padded
// image.
func (a Augmentation) Apply(dst, src []byte, dy, dx int, flip bool) {
	a.check()
	if len(dst) != ImageSize || len(src) != ImageSize {
		panic(fmt.Sprintf("datasets: Apply: images of %d and %d bytes, want %d", len(dst), len(src), ImageSize))
	}
	if dy < 0 || dx < 0 || dy > 2*a.Pad || dx > 2*a.Pad {
		panic(fmt.Sprintf("datasets: Apply: window at (%d, %d), want both from 0 to %d", dy, dx, 2*a.Pad))
	}
	const side = ImageSide
	// Columns from left up to right of the window lie within the image.
	left := min(max(0, a.Pad-dx), side)
	right := max(min(side, side+a.Pad-dx), left)
	for row := range ImageChannels * side {
		c, y := row/side, row%side
		out := dst[row*side : (row+1)*side]
		from := y + dy - a.Pad
		if from < 0 || from >= side {
			clear(out)
			continue
		}
		clear(out[:left])
		clear(out[right:])
		if left < right {
			copy(out[left:right], src[(c*side+from)*side+left+dx-a.Pad:])
		}
		if flip {
			slices.Reverse(out)
		}
	}
}

// Batch writes the images of the given numbers, each as [Augmentation.Draw] has
// it for this epoch, to dst of shape [len(rows), 3, 32, 32]. It divides the work
// among so many goroutines; the result does not depend on their number.
//
// Batch panics if dst has another length, a row is not in [0, N), Pad is negative,
// or workers is below 1.
func (a Augmentation) Batch(dst []byte, m *Images, rows []int, seed uint64, epoch, workers int) {
	a.check()
	if len(dst) != len(rows)*ImageSize || workers < 1 {
		panic(fmt.Sprintf("datasets: Batch: %d bytes for %d images and %d workers; want %d bytes and a worker", len(dst), len(rows), workers, len(rows)*ImageSize))
	}
	for _, i := range rows {
		m.check(i) // here, as a panic in a worker could not be recovered
	}
	var wg sync.WaitGroup
	for w := range workers {
		first, end := w*len(rows)/workers, (w+1)*len(rows)/workers
		wg.Go(func() {
			for k := first; k < end; k++ {
				dy, dx, flip := a.Draw(seed, epoch, rows[k])
				a.Apply(dst[k*ImageSize:(k+1)*ImageSize], m.Image(rows[k]), dy, dx, flip)
			}
		})
	}
	wg.Wait()
}

func (a Augmentation) check() {
	if a.Pad < 0 {
		panic(fmt.Sprintf("datasets: Augmentation: Pad is %d, it must not be negative", a.Pad))
	}
}
