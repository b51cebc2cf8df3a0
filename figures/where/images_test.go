package where

import (
	"math"
	"strings"
	"testing"

	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
)

func fewSample() FewImages {
	return FewImages{cifar.Images{Name: cifar.CIFAR10, Sample: true, TrainN: 40, TestN: 20, HeldOut: 20, Sets: []string{cifar.TestSet, cifar.CIFAR100}}}
}

// A run in small has the numbers of every set with labels, the mutual information, and no detection of corrupted images.
func TestFewImages(t *testing.T) {
	e := must.Get(Few(fewSample(), startingAt(methods.Density, 0.1)))(t)
	e.Recipe.Epochs, e.Recipe.Samples = 1, 2
	e.Task.Network = must.Get(cifar.Small(fewSample().Images, methods.Density))(t).Task.Network
	all := must.Get(experiment.Engine{}.Run(t.Context(), e))(t)
	m := all[0].Metrics
	for _, name := range []string{"nll", "train_accuracy", "contrast-5_nll", "jpeg-5_ece10", corruptedNLL, corruptedECE, mutualInformation, "ood_cifar100_auroc"} {
		if _, has := m[name]; !has {
			t.Errorf("there is no %s among %v", name, m)
		}
	}
	sum, sets := 0.0, 0.0
	for name, value := range m {
		if strings.HasPrefix(name, "ood_") && !strings.HasPrefix(name, "ood_cifar100") {
			t.Errorf("%s: images with labels count as out of distribution", name)
		}
		if strings.HasSuffix(name, "_nll") && name != "train_nll" && name != corruptedNLL {
			sum, sets = sum+value, sets+1
		}
	}
	if got, want := m[corruptedNLL], sum/sets; sets != 5*3 || math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %g, the mean is %g", corruptedNLL, got, want)
	}
	if !(m[mutualInformation] > 0) {
		t.Errorf("draws with noise have the mutual information %g", m[mutualInformation])
	}
}

// Pixels are means of four, and the training images have the mean 0 and the deviation 1 in each channel.
func TestHalvedImages(t *testing.T) {
	d := must.Get(fewSample().Load(t.Context(), 0))(t)
	whole := must.Get(fewSample().Images.Load(t.Context(), 0))(t)
	small, large := d.Sets[0].Inputs.(nets.Pixels), whole.Sets[0].Inputs.(nets.Pixels)
	at := func(p nets.Pixels, image, channel, row, column int) int {
		return int(p.Bytes[((image*3+channel)*p.Height+row)*p.Width+column])
	}
	for _, c := range [][4]int{{0, 0, 0, 0}, {3, 1, 7, 15}, {19, 2, 15, 8}} {
		sum := 2
		for k := range 4 {
			sum += at(large, c[0], c[1], 2*c[2]+k/2, 2*c[3]+k%2)
		}
		if got := at(small, c[0], c[1], c[2], c[3]); got != sum/4 {
			t.Errorf("pixel %v is %d, want %d", c, got, sum/4)
		}
	}
	images := d.Train.Inputs.(nets.Pixels)
	for c, mean := range images.Standardization.Mean {
		sum := 0.0
		for i, v := range images.Bytes {
			if i/(side*side)%3 == c {
				sum += float64(v) / 255
			}
		}
		if got := sum / float64(len(images.Bytes)/3); math.Abs(got-mean) > 1e-9 {
			t.Errorf("channel %d: mean %g, want %g", c, mean, got)
		}
	}
	if d.Sets[0].Len() != whole.Sets[0].Len() || len(d.HeldOut.Inputs.(nets.Pixels).Bytes) != 20*3*side*side {
		t.Errorf("%d of %d test images", d.Sets[0].Len(), whole.Sets[0].Len())
	}
}

func TestFewImagesRefuses(t *testing.T) {
	d := fewSample()
	d.Sets = d.Sets[1:]
	if _, err := d.Load(t.Context(), 0); err == nil || !strings.Contains(err.Error(), `corrupts the set "test"`) {
		t.Errorf("without test images: %v", err)
	}
	if _, err := Few(cifar.Images{Name: cifar.CIFAR10}, methods.Density); err == nil || !strings.Contains(err.Error(), "is for where.FewImages") {
		t.Errorf("other data: %v", err)
	}
}
