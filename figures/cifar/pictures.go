package cifar

import (
	"context"
	"errors"
	"strings"

	"densityuncertainty/datasets"
	"densityuncertainty/datasets/fetch"
)

// Pictures are real images to look at and to train on for a minute: of the official files where these are at hand, else
// of the sample that comes with the program.
type Pictures struct {
	// Training, HeldOut and Test are of CIFAR-10. HeldOut are training images that neither Training has nor the
	// networks that come with the program were trained on: 5000, or of the sample 200, with 800 to train on.
	Training, HeldOut, Test *datasets.Images
	// CIFAR100 are its test images; SVHN the first of its training part, without labels.
	CIFAR100, SVHN *datasets.Images
}

// sampleHeldOut are the images of the sample that are held out.
const sampleHeldOut = 200

// OpenPictures gets them; open says how the files of each set are to be got, as notebook.Files does.
func OpenPictures(open func() (context.Context, *fetch.Fetcher)) (*Pictures, error) {
	train, test, err := datasets.CIFAR10OrSample(open())
	if err != nil {
		return nil, err
	}
	hundred, err1 := datasets.CIFAR100OrSample(open())
	svhn, err2 := datasets.SVHNOrSample(open())
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	count := Protocol{}.WithHeldOut().HeldOut
	if train.WholeN > 0 {
		count = sampleHeldOut
	}
	rows, held := datasets.HoldOut(train.N, count, heldOutSeed)
	svhn.Name = "SVHN"
	return &Pictures{Training: train.Take(rows), HeldOut: train.Take(held), Test: test, CIFAR100: hundred, SVHN: svhn}, nil
}

// Origins says which images these are, a line for each set.
func (p *Pictures) Origins() string {
	var lines []string
	for _, m := range []*datasets.Images{p.Training, p.HeldOut, p.Test, p.CIFAR100, p.SVHN} {
		lines = append(lines, m.Origin())
	}
	return strings.Join(lines, "\n")
}

// Some are n images of a set at random, or all of them if there are no more; the seed says which.
func Some(m *datasets.Images, n int, seed uint64) *datasets.Images {
	return m.Take(datasets.Order(seed, 0, m.N)[:min(n, m.N)])
}
