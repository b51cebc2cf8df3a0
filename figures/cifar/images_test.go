package cifar_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
)

func TestImages(t *testing.T) {
	d := cifar.Images{Name: cifar.CIFAR10, Sample: true, TrainN: 20, TestN: 10, HeldOut: 30, Sets: []string{cifar.TestSet, cifar.HeldOutSet, cifar.CIFAR100, cifar.SVHNExcerpt}}
	data := must.Get(d.Load(context.Background(), 0))(t)
	if data.Train.Len() != 20 || data.HeldOut.Len() != 30 || len(data.Sets) != 4 {
		t.Fatalf("%d images to train on, %d held out, %d sets", data.Train.Len(), data.HeldOut.Len(), len(data.Sets))
	}
	for i, n := range []int{10, 30, 10, 10} {
		if set := data.Sets[i]; set.Len() != n || set.Name != d.Sets[i] || (set.Labels != nil) != (i < 2) {
			t.Errorf("the set %q has %d images and %d labels", set.Name, set.Len(), len(set.Labels))
		}
	}
	held, train := data.HeldOut.Inputs.(nets.Pixels), data.Train.Inputs.(nets.Pixels)
	for i := range train.Len() {
		image := train.Bytes[i*train.Size() : (i+1)*train.Size()]
		for k := range held.Len() {
			if slices.Equal(image, held.Bytes[k*held.Size():(k+1)*held.Size()]) {
				t.Fatalf("training image %d is held out", i)
			}
		}
	}
	choosing := cifar.Images{Name: cifar.CIFAR10, Sample: true, HeldOut: 30, Validation: true, Sets: []string{cifar.TestSet}}
	chosen := must.Get(choosing.Load(context.Background(), 0))(t)
	if !slices.Equal(chosen.Sets[0].Labels, data.HeldOut.Labels) {
		t.Error("hyperparameters are chosen by other images than those that are held out")
	}
}

func TestImagesThatCannotBe(t *testing.T) {
	for want, d := range map[string]cifar.Images{
		"no images \"mnist\"":             {Name: "mnist"},
		"no set \"svhn\"; use":            {Name: cifar.CIFAR10, Sample: true, Sets: []string{cifar.TestSet, cifar.SVHN}},
		"none of CIFAR-100 to train on":   {Name: cifar.CIFAR100, Sample: true},
		"none may be negative":            {Name: cifar.CIFAR10, TestN: -1},
		"but HeldOut is 0":                {Name: cifar.CIFAR10, Sets: []string{cifar.HeldOutSet}},
		"has no Sets":                     {Name: cifar.CIFAR10},
		"there is no set \"cifar10\"":     {Name: cifar.CIFAR10, Sets: []string{cifar.CIFAR10}},
		"predicts the one set \"test\"":   {Name: cifar.CIFAR10, HeldOut: 1, Validation: true, Sets: []string{cifar.TestSet, cifar.SVHN}},
		"999 images to train on, 50 held": {Name: cifar.CIFAR10, Sample: true, TrainN: 999, HeldOut: 50, Sets: []string{cifar.TestSet}},
	} {
		must.GetErr(d.Load(context.Background(), 0))(t, want)
	}
}

// A preset fills in the sets that a method has a use for, and leaves those that are given.
func TestSetsOfPresets(t *testing.T) {
	other := []string{cifar.CIFAR100, cifar.SVHNExcerpt}
	for _, c := range []struct {
		name   string
		preset experiment.Preset
		method experiment.Method
		data   cifar.Images
		want   []string
	}{
		{"energies", cifar.Processor, methods.Density, cifar.Images{Name: cifar.CIFAR10}, append([]string{cifar.TestSet, cifar.HeldOutSet}, other...)},
		{"a temperature", cifar.Processor, methods.Deterministic, cifar.Images{Name: cifar.CIFAR10}, append([]string{cifar.TestSet, cifar.HeldOutSet}, other...)},
		{"neither", cifar.Processor, methods.MFVI, cifar.Images{Name: cifar.CIFAR10}, append([]string{cifar.TestSet}, other...)},
		{"the paper's tables", cifar.Paper, methods.MFVI, cifar.Images{Name: cifar.CIFAR100}, []string{cifar.TestSet, cifar.CIFAR10, cifar.SVHNExcerpt, cifar.SVHN}},
		{"choosing", cifar.ProcessorGrid, methods.Density, cifar.Images{Name: cifar.CIFAR10}, []string{cifar.TestSet}},
		{"given", cifar.Paper, methods.Density, cifar.Images{Name: cifar.CIFAR10, Sets: []string{cifar.SVHN}}, []string{cifar.SVHN}},
	} {
		e := must.Get(c.preset(c.data, c.method))(t)
		if got := e.Task.Data.(cifar.Images).Sets; !slices.Equal(got, c.want) {
			t.Errorf("%s: the sets are %v, want %v", c.name, got, c.want)
		}
	}
}

// Scores come from predictions alone: energies far from the held-out ones tell a set.
func TestScores(t *testing.T) {
	const n = 20
	set := func(name string, energy float64, labels bool) experiment.Prediction {
		s := experiment.Prediction{Set: name, PerExample: map[string][]float64{}}
		s.Width = 2
		layer := predict.LayerEnergy{Layer: "conv"}
		for i := range n {
			p := 0.6 + 0.01*float64(i)
			s.Probabilities, s.MutualInformation = append(s.Probabilities, p, 1-p), append(s.MutualInformation, 0)
			layer.Mean = append(layer.Mean, energy+0.1*math.Sin(float64(i)))
			if labels {
				s.Labels = append(s.Labels, i%2)
			}
		}
		s.Energies = []predict.LayerEnergy{layer}
		return s
	}
	p := &experiment.Predictions{Experiment: "x", Sets: []experiment.Prediction{set(cifar.TestSet, 1, true), set(cifar.HeldOutSet, 1, true), set("far", 9, false)}}
	found := must.Get(cifar.Scores(p))(t)
	if found["accuracy"] != 0.5 || found["ood_far_auroc"] != 0.5 || found["ood_far_auroc_energy"] != 1 {
		t.Errorf("accuracy %v, AUROC by probability %v and by energy %v", found["accuracy"], found["ood_far_auroc"], found["ood_far_auroc_energy"])
	}
	must.GetErr(cifar.Scores(&experiment.Predictions{}))(t) // scores without a test set
}
