package datasets_test

import (
	"math"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/environment/must"
)

// imageSize is the number of bytes of an image.
const imageSize = datasets.ImageChannels * datasets.ImageSide * datasets.ImageSide

// ramp is an image whose channels are ramps from left to right, and one that is flat but for its last pixel.
func ramp() *datasets.Images {
	m := &datasets.Images{Name: "ramp", N: 2, Labels: []int{3, 4}, Pixels: make([]byte, 2*imageSize)}
	for i := range imageSize {
		m.Pixels[i] = byte(20 + 5*(i%datasets.ImageSide))
		m.Pixels[imageSize+i] = 90
	}
	m.Pixels[2*imageSize-1] = 225 // one pixel is blue
	return m
}

// Each corruption does to known pixels what its definition says.
func TestCorrupt(t *testing.T) {
	m := ramp()
	at := func(corruption string, severity, k int) int {
		out := must.Get(datasets.Corrupt(m, corruption, severity, 1))(t)
		if out.Labels[1] != 4 || out.N != 2 || !strings.Contains(out.Name, corruption) {
			t.Errorf("%s: labels %v, name %q", corruption, out.Labels, out.Name)
		}
		return int(out.Pixels[k])
	}
	for _, c := range []struct {
		corruption  string
		severity, k int
		want        int
	}{
		{datasets.Contrast, 5, 0, 86},                   // the mean of the ramp is 97.5
		{datasets.Contrast, 1, 31, 156},                 // its end
		{datasets.Brightness, 5, 0, 96},                 // grey: all channels are the value
		{datasets.DefocusBlur, 5, 10, 20 + 5*10},        // a ramp stays inside
		{datasets.DefocusBlur, 5, imageSize + 7, 90},    // a flat image stays
		{datasets.JPEG, 1, imageSize + 40, 90},          // also when compressed
		{datasets.Contrast, 5, imageSize, 90},           // nothing to shrink
		{datasets.Brightness, 1, imageSize + 2048, 102}, // 90 + 0.05*255
		{datasets.Brightness, 5, imageSize + 1023, 102}, // 90 * 255/225: no channel may leave the scale
	} {
		if got := at(c.corruption, c.severity, c.k); got < c.want-1 || got > c.want+1 {
			t.Errorf("%s %d, pixel %d: %d, want %d", c.corruption, c.severity, c.k, got, c.want)
		}
	}
	// At the left edge a disk of radius 1 (1.5 has nine pixels) sees its mirror: the mean of 25, 20, 25 in a row.
	must.Near(t, float64(at(datasets.DefocusBlur, 5, 0)), 20+10./3, 1, "blur at the edge")
}

// The noise has the published deviation, the same bytes for a seed and others for another.
func TestCorruptNoise(t *testing.T) {
	m := ramp()
	for severity, want := range []float64{0.04, 0.06, 0.08, 0.09, 0.10} {
		out := must.Get(datasets.Corrupt(m, datasets.GaussianNoise, severity+1, 1))(t)
		sum, squares := 0.0, 0.0
		for _, v := range out.Image(1) {
			d := (float64(v) + 0.5 - 90) / 255 // bytes are rounded down
			sum, squares = sum+d, squares+d*d
		}
		n := float64(imageSize)
		must.Z(t, sum/math.Sqrt(n)/want, "severity %d: the mean", severity+1)
		must.Z(t, (squares/n/(want*want)-1)/math.Sqrt(2/n), "severity %d: the variance", severity+1)
		again, other := must.Get(datasets.Corrupt(m, datasets.GaussianNoise, severity+1, 1))(t), must.Get(datasets.Corrupt(m, datasets.GaussianNoise, severity+1, 2))(t)
		if string(again.Pixels) != string(out.Pixels) || string(other.Pixels) == string(out.Pixels) {
			t.Error("the seed does not decide the noise")
		}
	}
}

// Every severity changes an image more than the one before.
func TestCorruptSeverities(t *testing.T) {
	_, test := must.Get2(datasets.CIFAR10Sample())(t)
	m := test.Take([]int{0, 1, 2, 3, 4, 5, 6, 7})
	for _, corruption := range datasets.Corruptions() {
		before := 0.0
		for severity := 1; severity <= datasets.Severities; severity++ {
			out := must.Get(datasets.Corrupt(m, corruption, severity, 0))(t)
			distance := 0.0
			for i, v := range out.Pixels {
				distance += math.Pow(float64(v)-float64(m.Pixels[i]), 2)
			}
			if distance <= before {
				t.Errorf("%s: severity %d changes the images by %.0f, severity %d by %.0f", corruption, severity, distance, severity-1, before)
			}
			before = distance
		}
	}
}

func TestCorruptRefuses(t *testing.T) {
	must.GetErr(datasets.Corrupt(ramp(), "snow", 1, 0))(t, `no corruption "snow"`)
	must.GetErr(datasets.Corrupt(ramp(), datasets.JPEG, 0, 0))(t, "goes from 1 to 5")
	must.GetErr(datasets.Corrupt(ramp(), datasets.JPEG, 6, 0))(t, "goes from 1 to 5")
}
