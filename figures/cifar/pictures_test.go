package cifar

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/methods"
)

// refusing refuses every request, and ends the context of the one who asks.
type refusing struct{ end context.CancelCauseFunc }

func (r refusing) RoundTrip(*http.Request) (*http.Response, error) {
	err := errors.New("no downloads in tests")
	r.end(err)
	return nil, err
}

// Without the official files the pictures are those of the sample, and say so; those that are held out are no training
// images, and none that the protocols train on.
func TestPicturesOfTheSample(t *testing.T) {
	t.Setenv(fetch.EnvData, t.TempDir())
	cache := t.TempDir()
	p := must.Get(OpenPictures(func() (context.Context, *fetch.Fetcher) {
		ctx, cancel := context.WithCancelCause(t.Context())
		return ctx, &fetch.Fetcher{Cache: cache, Client: &http.Client{Transport: refusing{cancel}}}
	}))(t)
	if p.Training.N != 800 || p.HeldOut.N != 200 || p.Test.N != 1000 || p.CIFAR100.N != 500 || p.SVHN.N != 500 {
		t.Errorf("%d, %d, %d, %d and %d images", p.Training.N, p.HeldOut.N, p.Test.N, p.CIFAR100.N, p.SVHN.N)
	}
	if got := p.Origins(); strings.Count(got, "a sample of") != 5 {
		t.Errorf("it says:\n%s", got)
	}
	trained, _ := datasets.HoldOut(trainingImages, Protocol{}.WithHeldOut().HeldOut, heldOutSeed)
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

func onSample(p Protocol) Protocol {
	p.Sample = true
	return p
}

// Run with the sample needs no files, and what it has too few of it says.
func TestRunOnTheSample(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	t.Setenv(fetch.EnvData, t.TempDir())
	p := tinyProtocol()
	p.Sample, p.Epochs = true, 1
	lines, err := Run(t.Context(), p, methods.Deterministic)
	if err != nil || lines[0].Metrics["ood_cifar100_auroc"] == 0 || lines[0].Metrics["ood_svhn-first1083_auroc"] == 0 {
		t.Errorf("%v, error %v", lines, err)
	}
	if full := Paper(CIFAR10, ResNet14); lines[0].Experiment.Options["sample"] != "true" || full.Experiments(methods.MFVI)[0].ID() == onSample(full).Experiments(methods.MFVI)[0].ID() {
		t.Errorf("runs on the sample have the options %v, and the identity of runs on all images", lines[0].Experiment.Options)
	}
	p.TrainN = 999
	fails(t, "too many images", errorOf(Run(t.Context(), p, methods.Deterministic)), "999 images to train on", "of 1000")
	p.TrainN, p.Dataset = 16, CIFAR100
	fails(t, "training images of CIFAR-100", errorOf(Run(t.Context(), p, methods.Deterministic)), "16 images to train on", "of 0")
}
