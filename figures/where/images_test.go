package where

import (
	"math"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
)

func fewSample() FewImages {
	return FewImages{
		Images:     cifar.Images{Name: cifar.CIFAR10, Sample: true, TrainN: 40, TestN: 20, HeldOut: 20, Sets: []string{cifar.TestSet, cifar.CIFAR100}},
		TrainShown: 10, Corrupted: 10, Strengths: []int{5},
	}
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
	sum := 0.0
	for name, value := range m {
		if strings.HasPrefix(name, "ood_") && !strings.HasPrefix(name, "ood_cifar100") {
			t.Errorf("%s: images with labels count as out of distribution", name)
		}
		if strings.HasSuffix(name, "-5_nll") {
			sum += value
		}
	}
	if got, want := m[corruptedNLL], sum/5; math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %g, the mean is %g", corruptedNLL, got, want)
	}
	if !(m[mutualInformation] > 0) {
		t.Errorf("draws with noise have the mutual information %g", m[mutualInformation])
	}
}

func TestFewImagesRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(d *FewImages)
		want   string
	}{
		{func(d *FewImages) { d.TrainShown = -1 }, "none may be negative"},
		{func(d *FewImages) { d.Strengths = nil }, "need strengths"},
		{func(d *FewImages) { d.Strengths = []int{6} }, "goes from 1 to 5"},
		{func(d *FewImages) { d.TrainShown = 41 }, "41 images were asked for, and there are 40"},
		{func(d *FewImages) { d.Corrupted = 21 }, "21 images were asked for, and there are 20"},
	} {
		d := fewSample()
		c.change(&d)
		if _, err := d.Load(t.Context(), 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if _, err := Few(cifar.Images{Name: cifar.CIFAR10}, methods.Density); err == nil || !strings.Contains(err.Error(), "is for where.FewImages") {
		t.Errorf("other data: %v", err)
	}
}
