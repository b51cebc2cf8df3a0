package cifar

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/methods"
)

// The pictures that are held out are no training images, and none that presets train on.
func TestPicturesOfTheSample(t *testing.T) {
	p := must.Get(OpenPictures())(t)
	if p.Training.N != 800 || p.HeldOut.N != 200 || p.Test.N != 1000 || p.CIFAR100.N != 500 || p.SVHN.N != 500 {
		t.Errorf("%d, %d, %d, %d and %d images", p.Training.N, p.HeldOut.N, p.Test.N, p.CIFAR100.N, p.SVHN.N)
	}
	trained, _ := datasets.HoldOut(trainingImages, heldOut, heldOutSeed)
	slices.Sort(trained)
	for _, i := range p.HeldOut.Official {
		if _, found := slices.BinarySearch(trained, i); found || slices.Contains(p.Training.Official, i) {
			t.Errorf("image %d is held out and trained on", i)
		}
	}
	if some := Some(p.SVHN, 7, 1); some.N != 7 || Some(some, 9, 2).N != 7 {
		t.Errorf("7 and then 9 of these are %d and %d", some.N, Some(some, 9, 2).N)
	}
}

// An experiment is trained on any images, and predicts any.
func TestTrainAndPredict(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	train, test := must.Get2(datasets.CIFAR10Sample())(t)
	hundred := must.Get(datasets.CIFAR100Sample())(t)
	e := seeded(Paper, 1).Of(ten, methods.Density)[0]
	e.Recipe.Epochs, e.Recipe.BatchSize, e.Recipe.Samples = 1, 16, 2
	said := must.Get(TrainAndPredict(t.Context(), e, nil, Some(train, 32, 1), Some(test, 8, 1), Some(hundred, 5, 1)))(t)
	if len(said) != 2 || len(said[0].Probabilities) != 80 || len(said[1].Probabilities) != 50 || len(said[0].LastEnergies()) != 8 || len(said[0].LayerNames()) != 16 {
		t.Fatalf("it says %+v", said)
	}
	if judged := must.Get(said[0].Judged("test"))(t); len(judged.Outcomes.Right) != 8 {
		t.Errorf("%d outcomes", len(judged.Outcomes.Right))
	}
	fails(t, "images of other classes", errorOf(said[1].Judged("other")), "no labels that the network knows")
	bitmaps := must.Get(said[0].Bitmaps(0, 3))(t)
	label, said3, _ := strings.Cut(bitmaps[1].Caption, "\n")
	if len(bitmaps) != 2 || label != said[0].Names[said[0].Images.Labels[3]] || strings.HasPrefix(said3, "✗ ") == strings.HasPrefix(said3, label) {
		t.Errorf("bitmaps with the captions %q", bitmaps[1].Caption)
	}
	fails(t, "an image that there is not", errorOf(said[0].Bitmaps(8)), "no image 8")
	svhn := must.Get(datasets.SVHNSample())(t)
	fails(t, "images without labels", errorOf(TrainAndPredict(t.Context(), e, nil, svhn, svhn)), "neither Targets nor Labels")
}
