package datasets

import (
	"cmp"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"slices"
)

// Measures of an image: rows, columns, colour channels (red, green, blue), and
// their product, the bytes of one image.
const (
	ImageSide     = 32
	ImageChannels = 3
	ImageSize     = ImageChannels * ImageSide * ImageSide
)

// Images is a set of colour images: bytes from 0 (black) to 255, of 32 x 32
// pixels as published.
type Images struct {
	// Name says what the images are, for captions, such as "CIFAR-10 test".
	Name string
	// Classes names the classes; a label is an index into it.
	Classes []string
	// Pixels has shape [N, 3, Side, Side], row-major: image, channel, row, column. Side 0 means ImageSide.
	Pixels []byte
	Side   int
	// Labels has shape [N]; nil where the source has no labels.
	Labels []int
	// N is the number of images.
	N int
	// Official are the numbers, from 0 on, in the official set of which these are the sample that comes with the program; nil
	// for images of the official files. Take keeps them.
	Official []int
}

// newImages makes room for n images with labels.
func newImages(name string, classes []string, n int) *Images {
	return &Images{
		Name: name, Classes: slices.Clone(classes), N: n,
		Pixels: make([]byte, n*ImageSize), Labels: make([]int, n),
	}
}

// side is the number of rows and of columns of an image, and size that of its bytes.
func (m *Images) side() int { return cmp.Or(m.Side, ImageSide) }
func (m *Images) size() int { return ImageChannels * m.side() * m.side() }

// Image returns the bytes of image i, shape [3, side, side], as a view into Pixels
// (not a copy). It panics if i is not in [0, N).
func (m *Images) Image(i int) []byte {
	size := m.size()
	return m.Pixels[i*size : (i+1)*size : (i+1)*size]
}

// Picture returns an image of bytes, [3, height, width], row-major, as programs show it.
func Picture(planes []byte, width int) *image.RGBA {
	n := len(planes) / ImageChannels
	m := image.NewRGBA(image.Rect(0, 0, width, n/width))
	for i := range n {
		m.SetRGBA(i%width, i/width, color.RGBA{planes[i], planes[n+i], planes[2*n+i], 0xff})
	}
	return m
}

// Take copies the images with the given numbers, in that order, and their labels
// if there are any. The result keeps the name. It panics if a number is not in
// [0, N).
func (m *Images) Take(indices []int) *Images {
	out := newImages(m.Name, m.Classes, len(indices))
	out.Side, out.Pixels = m.Side, out.Pixels[:len(indices)*m.size()]
	if m.Labels == nil {
		out.Labels = nil
	}
	for to, from := range indices {
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

// HoldOut divides n training examples at random into those to train on and
// `held` others, for choosing settings, or for the mean energy that
// out-of-distribution scores are taken against. Test examples have no part in
// either. The others are the last of a random permutation that depends on seed
// and n alone; train is the rest, both in the order of the permutation. So for
// one seed a smaller held-out part is a part of a larger one.
//
// HoldOut panics if held is not in [0, n].
func HoldOut(n, held int, seed uint64) (train, heldOut []int) {
	p := draws(holdOutStream, seed, 0, 0).Perm(n)
	return p[: n-held : n-held], p[n-held:]
}

// Order returns the order in which n examples are used in an epoch (from 0): a
// random permutation of 0, ..., n-1 that depends on nothing but the arguments, so
// that a resumed run continues as it would have.
//
// Order panics if n < 0.
func Order(seed uint64, epoch, n int) []int {
	return draws(orderStream, seed, epoch, 0).Perm(n)
}

// These keep different uses of the same seed apart.
const (
	holdOutStream    = 0x686f6c646f7574
	orderStream      = 0x6f72646572
	augmentStream    = 0x6175676d656e74
	corruptionStream = 0x636f7272757074
)

// draws returns a generator that depends on nothing but its arguments. For
// given stream, seed and epoch, no two indices share a generator.
func draws(stream, seed uint64, epoch, index int) *rand.Rand {
	run := scramble(scramble(seed) ^ stream)
	era := scramble(run + uint64(epoch))
	return rand.New(rand.NewPCG(era, scramble(era+uint64(index))))
}

// scramble is a bijection of 64-bit numbers under which neighbours become
// unrelated: the output function of the generator SplitMix64 (Steele, Lea &
// Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
func scramble(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// ChannelStats standardises images channel by channel: z = (v/255 - Mean) / Std
// for a pixel value v. The order is red, green, blue. Mean and Std are on the
// scale of v/255, from 0 to 1.
type ChannelStats struct {
	Mean, Std [ImageChannels]float64
}

// FitChannelStats computes the mean and the population standard deviation of each
// channel's v/255, over all pixels of the given images; nil rows means all
// images. Passing the rows to train on keeps others out of the scaling.
//
// A channel that is constant over these images gets Std 1, as in [FitScaler].
//
// FitChannelStats panics if there is no image or a row is not in [0, N).
func FitChannelStats(m *Images, rows []int) ChannelStats {
	if rows == nil {
		rows = ascending(m.N)
	}
	if len(rows) == 0 {
		panic("datasets: FitChannelStats: no images to fit on")
	}
	// Counting how often each value occurs makes the sums exact and short.
	var counts [ImageChannels][256]int64
	for _, i := range rows {
		for c := range counts {
			for _, v := range channel(m.Image(i), c) {
				counts[c][v]++
			}
		}
	}
	var s ChannelStats
	for c := range counts {
		s.Mean[c], s.Std[c] = valueMoments(&counts[c], float64(len(rows)*m.side()*m.side()))
	}
	return s
}

// valueMoments returns mean and population standard deviation of v/255, where
// value v occurs counts[v] times, n times in all.
func valueMoments(counts *[256]int64, n float64) (mean, std float64) {
	var sum int64
	for v, count := range counts {
		sum += int64(v) * count
	}
	mean = float64(sum) / n
	var squares float64
	for v, count := range counts {
		dev := float64(v) - mean
		squares += dev * dev * float64(count)
	}
	std = math.Sqrt(squares/n) / 255
	if std == 0 {
		std = 1
	}
	return mean / 255, std
}

// ReleasedChannelStats are the values of the authors' code, which uses
// them for CIFAR-10 and CIFAR-100 alike. The means are those of CIFAR-10's training
// part. The standard deviations are about a fifth smaller than those of its pixels:
// they are the mean over its images of the (unbiased) standard deviation within an
// image.
func ReleasedChannelStats() ChannelStats {
	return ChannelStats{
		Mean: [ImageChannels]float64{0.4914, 0.4822, 0.4465},
		Std:  [ImageChannels]float64{0.2023, 0.1994, 0.2010},
	}
}

// channel returns channel c of an image.
func channel(image []byte, c int) []byte {
	plane := len(image) / ImageChannels
	return image[c*plane : (c+1)*plane]
}

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
	rng := draws(augmentStream, seed, epoch, index)
	dy, dx = rng.IntN(2*a.Pad+1), rng.IntN(2*a.Pad+1)
	return dy, dx, a.Flip && rng.IntN(2) == 1
}
