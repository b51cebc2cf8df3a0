package datasets

import (
	"cmp"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"slices"
)

// The rows and the columns of a published image, its channels (red, green, blue), and the bytes of one image.
const (
	ImageSide     = 32
	ImageChannels = 3
	imageSize     = ImageChannels * ImageSide * ImageSide
)

// Images is a set of N square colour images: bytes from 0 (black) to 255, published with 32 x 32 pixels.
type Images struct {
	// Name describes the images in captions, such as "CIFAR-10 test".
	Name string
	// Classes are the names of the classes, indexed by label.
	Classes []string
	// Pixels is [N, 3, Side, Side], row-major: image, channel, row, column. Side 0 means ImageSide.
	Pixels []byte
	Side   int
	// Labels is [N]; nil if the source has no labels.
	Labels []int
	// N is the number of images.
	N int
	// Official, for the samples that are part of the program, has the images' indices in the official set; nil for
	// images of the official files. Take keeps it.
	Official []int
}

// newImages makes room for n images with labels.
func newImages(name string, classes []string, n int) *Images {
	return &Images{
		Name: name, Classes: slices.Clone(classes), N: n,
		Pixels: make([]byte, n*imageSize), Labels: make([]int, n),
	}
}

// side is the number of rows and of columns of an image, and size that of its bytes.
func (m *Images) side() int { return cmp.Or(m.Side, ImageSide) }
func (m *Images) size() int { return ImageChannels * m.side() * m.side() }

// Image returns the bytes of image i, [3, side, side], as a view into Pixels. It panics if i is out of range.
func (m *Images) Image(i int) []byte {
	size := m.size()
	return m.Pixels[i*size : (i+1)*size : (i+1)*size]
}

// Picture returns an image for display from bytes [3, height, width], row-major.
func Picture(planes []byte, width int) *image.RGBA {
	n := len(planes) / ImageChannels
	m := image.NewRGBA(image.Rect(0, 0, width, n/width))
	for i := range n {
		m.SetRGBA(i%width, i/width, color.RGBA{planes[i], planes[n+i], planes[2*n+i], 0xff})
	}
	return m
}

// Take returns copies of the images with the given indices, in that order, with their labels and the name. It panics if
// an index is out of range.
func (m *Images) Take(indices []int) *Images {
	out := &Images{Name: m.Name, Classes: slices.Clone(m.Classes), N: len(indices), Side: m.Side,
		Pixels: make([]byte, 0, len(indices)*m.size()), Labels: m.Labels[:0:0], Official: m.Official[:0:0]}
	for _, i := range indices {
		out.Pixels = append(out.Pixels, m.Image(i)...)
		if m.Official != nil {
			out.Official = append(out.Official, m.Official[i])
		}
		if m.Labels != nil {
			out.Labels = append(out.Labels, m.Labels[i])
		}
	}
	return out
}

// HoldOut divides the indices 0, ..., n-1 of training examples at random into those to train on and `held` others, for
// choosing settings, or for the mean energy in out-of-distribution scores. They are the beginning and the end of a
// permutation that depends only on seed and n: for one seed a smaller heldOut is part of a larger one. It panics unless
// 0 <= held <= n.
func HoldOut(n, held int, seed uint64) (train, heldOut []int) {
	p := draws(holdOutStream, seed, 0, 0).Perm(n)
	return p[: n-held : n-held], p[n-held:]
}

// Order returns a random permutation of 0, ..., n-1, the order of examples in an epoch (from 0). It depends only on the
// arguments. It panics if n < 0.
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

// ChannelStats standardises images channel by channel: z = (v/255 - Mean) / Std for a pixel value v, where Mean and Std
// are those of v/255. The order is red, green, blue.
type ChannelStats struct {
	Mean, Std [ImageChannels]float64
}

// FitChannelStats returns the mean and the population standard deviation of each channel's v/255 over all pixels of the
// images with the given indices; nil means all images. Pass the images to train on, so that others do not enter the
// scaling. A constant channel gets Std 1, as in [FitScaler]. It panics if there is no image or an index is out of
// range.
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

// ReleasedChannelStats returns the values of the authors' code for CIFAR-10 and CIFAR-100. The means are those of
// CIFAR-10's training images. The standard deviations are about a fifth smaller than those of the pixels, because they
// are means over images of the (unbiased) standard deviation within an image.
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

// Augmentation shifts and mirrors training images at random: an image is padded by Pad black pixels on every side, a
// window of the original size is cut out at a random place and, with Flip, mirrored left to right half of the time.
// Augmentation{Pad: 4, Flip: true} is usual for CIFAR; the zero value changes nothing. Padding comes before
// normalisation, as usual.
type Augmentation struct {
	// Pad is the width of the padding in pixels, at least 0.
	Pad int
	// Flip is whether to mirror.
	Flip bool
}

// Draw returns the window of an image in an epoch: its top row dy and left column dx in the padded image, independent
// and uniform on 0, ..., 2 Pad, and whether to mirror it, with probability 1/2 if Flip. From an image src, with q =
// width - 1 - x if flip and q = x otherwise, package train computes
//
//	dst[c, y, x] = src[c, y + dy - Pad, q + dx - Pad], or 0 outside of src;
//
// (Pad, Pad, false) gives the image itself.
//
// The result depends only on Pad, Flip and the arguments; index is the image's index in its set, not in a batch. Flip
// does not change dy and dx. Draw panics if Pad is negative.
func (a Augmentation) Draw(seed uint64, epoch, index int) (dy, dx int, flip bool) {
	rng := draws(augmentStream, seed, epoch, index)
	dy, dx = rng.IntN(2*a.Pad+1), rng.IntN(2*a.Pad+1)
	return dy, dx, a.Flip && rng.IntN(2) == 1
}
