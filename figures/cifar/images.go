package cifar

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/spec"
)

// The data sets that classifiers are trained on.
const (
	CIFAR10  = "cifar10"
	CIFAR100 = "cifar100"
)

// The sets that are predicted. Those out of distribution have no labels; of the two CIFARs the one that is not trained on
// is a further one.
const (
	TestSet     = "test"
	HeldOutSet  = "held-out"       // training images that are held out
	SVHN        = "svhn"           // the test part, 26,032 images: the paper's
	SVHNExcerpt = "svhn-first1083" // the first 1,083 images of the training part
)

// Images are images to classify, and sets out of distribution; an experiment.Source. Its files are compared with their
// published checksums when they are read.
type Images struct {
	Name string // CIFAR10 or CIFAR100
	// Sample takes the images that come with the program instead of the official files: of CIFAR-10 1000 to train on
	// and hold out, and 1000 to test on. Of CIFAR-100 there are none to train on.
	Sample bool
	// TrainN and TestN limit the images to train on, and of each predicted set; 0 means all. HeldOut are kept out of
	// training.
	TrainN, TestN, HeldOut int
	// Validation is for choosing hyperparameters without a look at the test images: the held-out images are the one set, in
	// the place of the test images.
	Validation bool
	// Sets are predicted, in this order. A preset fills them in.
	Sets []string
	// ReleasedStats standardises by the constants of the authors' code, instead of the means and deviations of the
	// training images.
	ReleasedStats bool
}

// identity is what decides the numbers of Images.
type identity struct {
	Name, SHA256           string
	TrainN, TestN, HeldOut int
	Validation             bool `experiment:"Choosing"`
	Sets                   []string
	ReleasedStats          bool
}

// sums stand for the images: the SHA-256 of the official archives of the binary version, which has the same images.
var sums = map[string]string{
	CIFAR10:  "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
	CIFAR100: "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
}

// sampleSum stands for the images that come with the program.
const sampleSum = "sample"

// Identity implements spec.Identifier.
func (d Images) Identity() spec.Identity {
	sum := sums[d.Name]
	if d.Sample {
		sum = sampleSum
	}
	return spec.Identity{Type: "cifar.Images", Value: identity{d.Name, sum, d.TrainN, d.TestN, d.HeldOut, d.Validation, d.Sets, d.ReleasedStats}}
}

// Check says what cannot be.
func (d Images) Check() error {
	switch {
	case d.Name != CIFAR10 && d.Name != CIFAR100:
		return fmt.Errorf("there are no images %q; there are %s and %s", d.Name, CIFAR10, CIFAR100)
	case d.Sample && d.Name == CIFAR100:
		return fmt.Errorf("the images that come with the program have none of CIFAR-100 to train on")
	case d.Sample && slices.Contains(d.Sets, SVHN):
		return fmt.Errorf("the images that come with the program have no set %q; use %q", SVHN, SVHNExcerpt)
	case d.TrainN < 0 || d.TestN < 0 || d.HeldOut < 0:
		return fmt.Errorf("cifar.Images has TrainN %d, TestN %d and HeldOut %d; none may be negative", d.TrainN, d.TestN, d.HeldOut)
	case d.HeldOut == 0 && (d.Validation || slices.Contains(d.Sets, HeldOutSet)):
		return fmt.Errorf("cifar.Images predicts held-out images, but HeldOut is 0")
	case d.Validation && len(d.Sets) != 1:
		return fmt.Errorf("cifar.Images with Validation predicts the one set %q; Sets are %v", TestSet, d.Sets)
	case len(d.Sets) == 0:
		return fmt.Errorf("cifar.Images has no Sets to predict")
	}
	for _, name := range d.Sets {
		if !slices.Contains([]string{TestSet, HeldOutSet, SVHN, SVHNExcerpt, d.other()}, name) {
			return fmt.Errorf("there is no set %q; there are %s, %s, %s, %s and %s", name, TestSet, HeldOutSet, SVHN, SVHNExcerpt, d.other())
		}
	}
	return nil
}

// other is the CIFAR that is not trained on.
func (d Images) other() string {
	if d.Name == CIFAR100 {
		return CIFAR10
	}
	return CIFAR100
}

// classes is the number of classes.
func (d Images) classes() int {
	if d.Name == CIFAR100 {
		return 100
	}
	return 10
}

// The numbers of images of both CIFARs, and of the images that come with the program.
const trainingImages, testImages, sampleImages = 50000, 10000, 1000

// trainN is the number of images that are trained on.
func (d Images) trainN() int {
	switch {
	case d.TrainN > 0:
		return d.TrainN
	case d.Sample:
		return sampleImages - d.HeldOut
	}
	return trainingImages - d.HeldOut
}

// testN is the number of test images.
func (d Images) testN() int { return cmp.Or(d.TestN, testImages) }

// Splits implements experiment.Source. Networks of one experiment differ in their seeds.
func (Images) Splits() int { return 1 }

// heldOutSeed chooses the images that are held out: the same for all methods and seeds, so that these differ in nothing
// but themselves.
const heldOutSeed = 0

// Load implements experiment.Source.
func (d Images) Load(ctx context.Context, _ int) (experiment.Data, error) {
	if err := d.Check(); err != nil {
		return experiment.Data{}, err
	}
	all, test, err := read(ctx, d.Name, d.Sample)
	if err != nil {
		return experiment.Data{}, err
	}
	if d.HeldOut+max(d.TrainN, 1) > all.N || d.TestN > test.N {
		return experiment.Data{}, fmt.Errorf("%d images to train on, %d held out and %d to test on were asked for, of %d and %d that there are", d.TrainN, d.HeldOut, d.TestN, all.N, test.N)
	}
	rows, held := datasets.HoldOut(all.N, d.HeldOut, heldOutSeed)
	if d.TrainN > 0 {
		rows = rows[:d.TrainN]
	}
	slices.Sort(rows)
	images := all.Take(rows)
	stats := datasets.ReleasedChannelStats()
	if !d.ReleasedStats {
		stats = datasets.FitChannelStats(images, nil)
	}
	examples := func(m *datasets.Images, labels []int) train.Dataset {
		return train.Dataset{Labels: labels, Inputs: pixels(m, standardization(stats))}
	}
	out := experiment.Data{Train: examples(images, images.Labels)}
	if d.HeldOut > 0 {
		m := all.Take(held)
		out.HeldOut = examples(m, m.Labels)
	}
	for _, name := range d.Sets {
		set := experiment.Set{Name: name}
		switch {
		case name == HeldOutSet, d.Validation:
			set.Dataset = out.HeldOut
		case name == TestSet:
			m := first(test, d.TestN)
			set.Dataset = examples(m, m.Labels)
		default:
			_, m, err := read(ctx, name, d.Sample)
			if err != nil {
				return out, fmt.Errorf("the set %q: %w; leave it out of Images.Sets to go on without it", name, err)
			}
			set.Dataset = examples(first(m, d.TestN), nil)
		}
		out.Sets = append(out.Sets, set)
	}
	return out, nil
}

func standardization(stats datasets.ChannelStats) nets.Standardization {
	return nets.Standardization{Mean: stats.Mean[:], Std: stats.Std[:]}
}

// pixels are images as inputs of a network.
func pixels(m *datasets.Images, s nets.Standardization) nets.Pixels {
	return nets.Pixels{Bytes: m.Pixels, Height: datasets.ImageSide, Width: datasets.ImageSide, Standardization: s}
}

// first is the first n images of a set, or all of them if n is 0 or there are fewer.
func first(m *datasets.Images, n int) *datasets.Images {
	if n == 0 || n >= m.N {
		return m
	}
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return m.Take(rows)
}

// read returns the training images of a set, nil for one that has none, and its test images.
func read(ctx context.Context, name string, sample bool) (all, test *datasets.Images, err error) {
	switch {
	case name == CIFAR10 && sample:
		return datasets.CIFAR10Sample()
	case name == CIFAR10:
		return datasets.CIFAR10(ctx, nil)
	case name == CIFAR100 && sample:
		test, err = datasets.CIFAR100Sample()
	case name == CIFAR100:
		return datasets.CIFAR100(ctx, nil)
	case name == SVHNExcerpt && sample:
		test, err = datasets.SVHNSample()
	case name == SVHNExcerpt:
		test, err = datasets.SVHNTrainExcerpt(ctx, nil)
	default:
		test, err = datasets.SVHNTest(ctx, nil)
	}
	return nil, test, err
}
