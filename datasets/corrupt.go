package datasets

import (
	"bytes"
	"fmt"
	"image/jpeg"
	"math"
	"slices"
)

// The corruptions of images, five of CIFAR-10-C (Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common
// Corruptions and Perturbations", ICLR 2019), by their published definitions.
const (
	GaussianNoise = "gaussian-noise" // noise with the same standard deviation for all pixels
	DefocusBlur   = "defocus-blur"   // mean over a disk with a smoothed edge
	Brightness    = "brightness"     // a constant is added to each pixel's value V (of hue, saturation, value)
	Contrast      = "contrast"       // distances from the mean of each channel are reduced
	JPEG          = "jpeg"           // compressed and decompressed
)

// Corruptions returns the names of the corruptions.
func Corruptions() []string { return []string{GaussianNoise, DefocusBlur, Brightness, Contrast, JPEG} }

// Severities is the number of severities of each corruption; 1 is the mildest.
const Severities = 5

// The parameters of the corruptions, by severity, as published for images of 32 x 32 pixels.
var (
	noiseDeviations = [Severities]float64{0.04, 0.06, 0.08, 0.09, 0.10}
	blurRadii       = [Severities]float64{0.3, 0.4, 0.5, 1, 1.5}
	blurSmoothings  = [Severities]float64{0.4, 0.5, 0.6, 0.2, 0.1}
	brightnesses    = [Severities]float64{0.05, 0.1, 0.15, 0.2, 0.3}
	contrastFactors = [Severities]float64{0.75, 0.5, 0.4, 0.3, 0.15}
	jpegQualities   = [Severities]int{80, 65, 58, 50, 40}
)

// Corrupt returns a copy of the images with a corruption, one of Corruptions, at a severity from 1 to Severities. Any
// other corruption or severity is an error. Pixels v/255 are clipped to [0, 1] and rounded down to whole bytes. Radii
// are in pixels, for smaller images too. The same arguments give the same bytes; only GaussianNoise depends on the
// seed. The published files have other noise and another JPEG encoder: scores on them differ in the third digit.
func Corrupt(m *Images, corruption string, severity int, seed uint64) (*Images, error) {
	if !slices.Contains(Corruptions(), corruption) {
		return nil, fmt.Errorf("datasets: there is no corruption %q; there are %v", corruption, Corruptions())
	}
	if severity < 1 || severity > Severities {
		return nil, fmt.Errorf("datasets: the severity of %s is %d; it goes from 1 to %d", corruption, severity, Severities)
	}
	out := *m
	out.Pixels = make([]byte, len(m.Pixels))
	out.Name = fmt.Sprintf("%s, %s %d", m.Name, corruption, severity)
	var kernel []float64
	if corruption == DefocusBlur {
		kernel = blurKernel(blurRadii[severity-1], blurSmoothings[severity-1])
	}
	for i := range m.N {
		pixels := unit(m.Image(i))
		var err error
		switch corruption {
		case GaussianNoise:
			draws := draws(corruptionStream, seed, severity, i)
			for k := range pixels {
				pixels[k] += noiseDeviations[severity-1] * draws.NormFloat64()
			}
		case DefocusBlur:
			pixels = filtered(pixels, m.side(), kernel)
		case Brightness:
			brighten(pixels, brightnesses[severity-1])
		case Contrast:
			flatten(pixels, contrastFactors[severity-1])
		case JPEG:
			pixels, err = compressed(m.Image(i), m.side(), jpegQualities[severity-1])
		}
		if err != nil {
			return nil, fmt.Errorf("datasets: image %d of %s: %w", i, m.Name, err)
		}
		for k, v := range pixels {
			out.Image(i)[k] = byte(255 * math.Max(0, math.Min(1, v)))
		}
	}
	return &out, nil
}

// unit are the pixels of an image as v/255.
func unit(image []byte) []float64 {
	out := make([]float64, len(image))
	for k, v := range image {
		out[k] = float64(v) / 255
	}
	return out
}

// blurReach is how far the kernel of a blur reaches to each side; smoothReach is that of the smoothing of its edge.
const blurReach, smoothReach = 8, 1

// blurKernel is a disk of a radius, of sum 1, smoothed by a Gaussian window of 3 x 3 with a standard deviation.
func blurKernel(radius, smoothing float64) []float64 {
	const side = 2*blurReach + 1
	disk := make([]float64, side*side)
	inside := 0.0
	for y := -blurReach; y <= blurReach; y++ {
		for x := -blurReach; x <= blurReach; x++ {
			if float64(x*x+y*y) <= radius*radius {
				disk[(y+blurReach)*side+x+blurReach] = 1
				inside++
			}
		}
	}
	var weights [2*smoothReach + 1]float64
	sum := 0.0
	for i := range weights {
		d := float64(i - smoothReach)
		weights[i] = math.Exp(-d * d / (2 * smoothing * smoothing))
		sum += weights[i]
	}
	smooth := make([]float64, side*side)
	for y := range side {
		for x := range side {
			for dy, a := range weights {
				for dx, b := range weights {
					from := mirrored(y+dy-smoothReach, side)*side + mirrored(x+dx-smoothReach, side)
					smooth[y*side+x] += a * b / (sum * sum) * disk[from] / inside
				}
			}
		}
	}
	return smooth
}

// mirrored is the place of pixel i of a line of n, which goes on beyond its ends as in a mirror, the end itself once.
func mirrored(i, n int) int {
	if i < 0 {
		return -i
	}
	if i >= n {
		return 2*(n-1) - i
	}
	return i
}

// filtered is an image of n pixels a row filtered by a kernel of 2 blurReach + 1 pixels to each side.
func filtered(pixels []float64, n int, kernel []float64) []float64 {
	const side = 2*blurReach + 1
	plane := n * n
	out := make([]float64, len(pixels))
	for k, weight := range kernel {
		if weight == 0 {
			continue
		}
		dy, dx := k/side-blurReach, k%side-blurReach
		for i := range out {
			c, y, x := i/plane, i%plane/n, i%n
			out[i] += weight * pixels[c*plane+mirrored(y+dy, n)*n+mirrored(x+dx, n)]
		}
	}
	return out
}

// brighten adds to the value of each pixel, the largest of its channels, and keeps hue and saturation: all channels grow
// by one factor. Black becomes grey.
func brighten(pixels []float64, by float64) {
	plane := len(pixels) / ImageChannels
	for i := range plane {
		value := max(pixels[i], pixels[plane+i], pixels[2*plane+i])
		brighter := math.Min(value+by, 1)
		for c := range ImageChannels {
			if value == 0 {
				pixels[c*plane+i] = brighter
			} else {
				pixels[c*plane+i] *= brighter / value
			}
		}
	}
}

// flatten shrinks the distances of a channel's pixels from their mean.
func flatten(pixels []float64, factor float64) {
	plane := len(pixels) / ImageChannels
	for c := range ImageChannels {
		channel := pixels[c*plane : (c+1)*plane]
		mean := 0.0
		for _, v := range channel {
			mean += v / float64(plane)
		}
		for i, v := range channel {
			channel[i] = (v-mean)*factor + mean
		}
	}
}

// compressed is an image of n pixels a row after JPEG of a quality.
func compressed(pixels []byte, n, quality int) ([]float64, error) {
	var file bytes.Buffer
	if err := jpeg.Encode(&file, Picture(pixels, n), &jpeg.Options{Quality: quality}); err != nil {
		return nil, err
	}
	read, err := jpeg.Decode(&file)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(pixels))
	plane := n * n
	for i := range plane {
		r, g, b, _ := read.At(i%n, i/n).RGBA()
		for c, v := range []uint32{r, g, b} {
			out[c*plane+i] = float64(v>>8) / 255
		}
	}
	return out, nil
}
