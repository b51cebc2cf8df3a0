package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"densityuncertainty/datasets"
	"densityuncertainty/datasets/fetch"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
)

// The sets out of distribution, by their names in predictions and metrics. Of the
// two CIFARs the one that the model was not trained on is a third.
const (
	svhnTest    = "svhn"           // the official test part, 26,032 images: the paper's
	svhnExcerpt = "svhn-first1083" // the first 1,083 images of the training part
)

// imageFiles gets images; a test has others than the official files.
type imageFiles struct {
	// cifar returns a set's training and test images.
	cifar func(ctx context.Context, dataset string) (train, test *datasets.Images, err error)
	// svhn returns SVHN's test part, with download from its official address if
	// need be; excerpt the beginning of its training part. Both return nil without
	// an error where a file that may not be downloaded is not there.
	svhn    func(ctx context.Context, download bool) (*datasets.Images, error)
	excerpt func(ctx context.Context) (*datasets.Images, error)
}

func officialFiles() imageFiles {
	return imageFiles{
		cifar: func(ctx context.Context, dataset string) (train, test *datasets.Images, err error) {
			if dataset == experiment.CIFAR100 {
				return datasets.CIFAR100(ctx, nil)
			}
			return datasets.CIFAR10(ctx, nil)
		},
		svhn: func(ctx context.Context, download bool) (*datasets.Images, error) {
			if here, err := isHere("test_32x32.mat"); err != nil || !here && !download {
				return nil, err
			}
			return datasets.SVHN(ctx, nil, datasets.SVHNTest)
		},
		excerpt: func(ctx context.Context) (*datasets.Images, error) {
			if here, err := isHere("train_first1083_32x32.mat"); err != nil || !here {
				return nil, err
			}
			return datasets.SVHNTrainExcerpt(ctx, nil)
		},
	}
}

// isHere reports whether a file of SVHN is in the local folder.
func isHere(name string) (bool, error) {
	var local *fetch.Fetcher
	for _, path := range []string{name, "svhn/" + name} {
		if _, found, err := local.Local(path); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// imageCache keeps decoded images from one experiment to the next: training
// images of one set, test images of all.
type imageCache struct {
	files   imageFiles
	dataset string // of train
	train   *datasets.Images
	tests   map[string]*datasets.Images
	missing map[string]error // what could not be had, so that it is not tried for every experiment
}

func newImageCache(files imageFiles) imageCache {
	return imageCache{files: files, tests: make(map[string]*datasets.Images), missing: make(map[string]error)}
}

// cifar returns a set's training and test images.
func (c *imageCache) cifar(ctx context.Context, dataset string) (train, test *datasets.Images, err error) {
	if c.dataset == dataset {
		return c.train, c.tests[dataset], nil
	}
	c.dataset, c.train = "", nil // before there are two
	train, test, err = c.files.cifar(ctx, dataset)
	if err != nil {
		return nil, nil, err
	}
	c.dataset, c.train, c.tests[dataset] = dataset, train, test
	return train, test, nil
}

// test returns a set's test images, or nil if optional ones are not there.
func (c *imageCache) test(ctx context.Context, name string, download bool) (m *datasets.Images, err error) {
	if m, found := c.tests[name]; found {
		return m, nil
	}
	if err, failed := c.missing[name]; failed {
		return nil, err
	}
	switch name {
	case svhnTest:
		m, err = c.files.svhn(ctx, download)
	case svhnExcerpt:
		m, err = c.files.excerpt(ctx)
	default:
		_, m, err = c.files.cifar(ctx, name)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		c.missing[name] = err
	case m != nil:
		c.tests[name] = m
	}
	return m, err
}

// imageData are the images of one experiment.
type imageData struct {
	train, test *datasets.Images
	heldOut     *datasets.Images // nil for none
	others      []otherImages
	stats       nets.Standardization
}

// otherImages are a set out of distribution.
type otherImages struct {
	name   string
	images *datasets.Images
}

// The images that are held out are the same for every method and every seed, so
// that these differ in nothing but themselves.
const heldOutSeed = 0

// imageDataOf takes the images of an experiment. Of a set that cannot be had and
// without which the experiment is still worth doing, it tells note; SVHN is one of
// them for the experiments of the table of out-of-distribution detection only
// withoutSVHN.
func (c *imageCache) imageDataOf(ctx context.Context, e experiment.Experiment, recipe ImageRecipe, withoutSVHN bool, note func(string)) (imageData, error) {
	all, test, err := c.cifar(ctx, e.Dataset)
	if err != nil {
		return imageData{}, err
	}
	if e.HeldOut+max(e.TrainN, 1) > all.N || e.TestN > test.N {
		return imageData{}, fmt.Errorf("experiment %v: %d images to train on, %d held out and %d to test on, of %d and %d", e, e.TrainN, e.HeldOut, e.TestN, all.N, test.N)
	}
	rows, held := datasets.HoldOut(all.N, e.HeldOut, heldOutSeed)
	if e.TrainN > 0 {
		rows = rows[:e.TrainN]
	}
	slices.Sort(rows)
	d := imageData{train: all.Take(rows), test: first(test, e.TestN)}
	stats := datasets.FitChannelStats(d.train, nil)
	if recipe.ReleasedStats {
		stats = datasets.ReleasedChannelStats()
	}
	d.stats = nets.Standardization{Mean: stats.Mean[:], Std: stats.Std[:]}
	if e.HeldOut > 0 {
		d.heldOut = all.Take(held)
	}
	if e.Scale == experiment.Grid {
		// Hyperparameters are chosen without a look at the test images.
		d.test, d.heldOut = d.heldOut, nil
		return d, nil
	}
	other := experiment.CIFAR100
	if e.Dataset == other {
		other = experiment.CIFAR10
	}
	for _, name := range []string{other, svhnTest, svhnExcerpt} {
		images, err := c.test(ctx, name, e.Scale == experiment.Full)
		var damaged *datasets.FileError
		switch {
		case errors.As(err, &damaged), ctx.Err() != nil:
			return imageData{}, err
		case images == nil && name == svhnTest && !withoutSVHN && needsSVHN(e):
			return imageData{}, fmt.Errorf("the table ood-svhn needs the test part of SVHN, which is not there (%w): put test_32x32.mat into the folder of data, %s, or give \"reproduce run\" the flag --without-svhn to go on without it for good, with columns of SVHN that stay empty",
				cmp.Or(err, errNoFile), fetch.EnvData)
		case err != nil:
			note(fmt.Sprintf("%v goes on without %s, whose columns stay empty: %v", e, name, err))
		case images != nil:
			d.others = append(d.others, otherImages{name, first(images, e.TestN)})
		}
	}
	return d, nil
}

// oodSets are the catalogue's sets of which the table of out-of-distribution
// detection with SVHN is made.
func oodSets() []string { return []string{"ood-svhn", "cifar-gp"} }

var errNoFile = errors.New("there is no such file")

// needsSVHN says whether the table of out-of-distribution detection is made of an
// experiment. Without SVHN it would lose a number for good, which nobody would
// notice before the end of a long run.
func needsSVHN(e experiment.Experiment) bool {
	return slices.ContainsFunc(oodSets(), func(name string) bool {
		set, found := experiment.SetByName(name)
		return found && slices.ContainsFunc(set.At(experiment.Full), func(of experiment.Experiment) bool { return of.ID() == e.ID() })
	})
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

// trainingSet are the images to train on.
func (d imageData) trainingSet() train.Dataset {
	return train.Dataset{Inputs: d.inputs(d.train), Labels: d.train.Labels}
}

// inputs are images as a network sees them.
func (d imageData) inputs(m *datasets.Images) nets.Pixels {
	return nets.Pixels{Bytes: m.Pixels, Height: datasets.ImageSide, Width: datasets.ImageSide, Standardization: d.stats}
}
