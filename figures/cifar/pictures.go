package cifar

import (
	"errors"

	"densityuncertainty/datasets"
)

// Pictures are real images to look at and to train on for a minute, of the sample that comes with the program.
type Pictures struct {
	// Training, HeldOut and Test are of CIFAR-10: 800, 200 and 1000. HeldOut are training images that neither Training has
	// nor the networks that come with the program were trained on.
	Training, HeldOut, Test *datasets.Images
	// CIFAR100 are its test images; SVHN the first of its training part, without labels.
	CIFAR100, SVHN *datasets.Images
}

// sampleHeldOut are the images of the sample that are held out.
const sampleHeldOut = 200

// OpenPictures reads them.
func OpenPictures() (*Pictures, error) {
	train, test, err := datasets.CIFAR10Sample()
	hundred, err1 := datasets.CIFAR100Sample()
	svhn, err2 := datasets.SVHNSample()
	if err := errors.Join(err, err1, err2); err != nil {
		return nil, err
	}
	rows, held := datasets.HoldOut(train.N, sampleHeldOut, heldOutSeed)
	svhn.Name = "SVHN"
	return &Pictures{Training: train.Take(rows), HeldOut: train.Take(held), Test: test, CIFAR100: hundred, SVHN: svhn}, nil
}

// Some are n images of a set at random, or all of them if there are no more; the seed says which.
func Some(m *datasets.Images, n int, seed uint64) *datasets.Images {
	return m.Take(datasets.Order(seed, 0, m.N)[:min(n, m.N)])
}
