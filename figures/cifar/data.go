package cifar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"densityuncertainty/datasets"
	"densityuncertainty/datasets/fetch"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/results"
)

// The sets out of distribution, by their names in predictions and metrics. Of the two CIFARs the one that the model
// was not trained on is a third.
const (
	svhnTest    = "svhn"           // the official test part, 26,032 images: the paper's
	svhnExcerpt = "svhn-first1083" // the first 1,083 images of the training part
)

// excerptFile has the images of svhnExcerpt.
const excerptFile = "train_first1083_32x32.mat"

// imageFiles gets images; a test has others than the official files.
type imageFiles struct {
	// cifar returns a set's training and test images.
	cifar func(ctx context.Context, dataset string) (train, test *datasets.Images, err error)
	// svhn returns SVHN's test part, with download from its official address if need be; excerpt the beginning of its
	// training part. Both return nil without an error where a file that may not be downloaded is not there.
	svhn    func(ctx context.Context, download bool) (*datasets.Images, error)
	excerpt func(ctx context.Context) (*datasets.Images, error)
}

var officialFiles = imageFiles{
	cifar: func(ctx context.Context, name string) (train, test *datasets.Images, err error) {
		set, err := datasetNamed(name)
		if err != nil {
			return nil, nil, err
		}
		return set.load(ctx, nil)
	},
	svhn: func(ctx context.Context, download bool) (*datasets.Images, error) {
		if here, err := isHere("test_32x32.mat"); err != nil || !here && !download {
			return nil, err
		}
		return datasets.SVHN(ctx, nil, datasets.SVHNTest)
	},
	excerpt: func(ctx context.Context) (*datasets.Images, error) {
		if here, err := isHere(excerptFile); err != nil || !here {
			return nil, err
		}
		return datasets.SVHNTrainExcerpt(ctx, nil)
	},
}

// sampleSize is how many images to train on and to test on there are in the sample of CIFAR-10.
const sampleSize = 1000

// sampleImages are those that come with the program.
var sampleImages = imageFiles{
	cifar: func(_ context.Context, name string) (train, test *datasets.Images, err error) {
		if name == CIFAR100 {
			test, err = datasets.CIFAR100Sample()
			return &datasets.Images{Name: "CIFAR-100 train"}, test, err
		}
		return datasets.CIFAR10Sample()
	},
	svhn:    func(context.Context, bool) (*datasets.Images, error) { return nil, nil },
	excerpt: func(context.Context) (*datasets.Images, error) { return datasets.SVHNSample() },
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

// imageCache keeps decoded images from one experiment to the next: training images of one set, test images of all.
// The zero value takes them from the official files.
type imageCache struct {
	files   imageFiles
	dataset string // of train
	train   *datasets.Images
	tests   map[string]*datasets.Images
	missing map[string]error // what could not be had, so that it is not tried for every experiment
}

// open makes the zero value ready.
func (c *imageCache) open() {
	if c.files.cifar == nil {
		c.files = officialFiles
	}
	if c.tests == nil {
		c.tests, c.missing = make(map[string]*datasets.Images), make(map[string]error)
	}
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

// The images that are held out are the same for every method and every seed, so that these differ in nothing but
// themselves.
const heldOutSeed = 0

// of takes the images of an experiment. Of a set that cannot be had and without which the experiment is still worth
// doing, it tells note; SVHN is one of them for the experiments of the table of out-of-distribution detection only
// withoutSVHN.
func (c *imageCache) of(ctx context.Context, e results.Experiment, stats ChannelStats, withoutSVHN bool, note func(string)) (imageData, error) {
	c.open()
	all, test, err := c.cifar(ctx, e.Dataset)
	if err != nil {
		return imageData{}, err
	}
	if err := enough(e.TrainN, e.HeldOut, e.TestN, all.N, test.N); err != nil {
		return imageData{}, err
	}
	rows, held := datasets.HoldOut(all.N, e.HeldOut, heldOutSeed)
	if e.TrainN > 0 {
		rows = rows[:e.TrainN]
	}
	slices.Sort(rows)
	d := imageData{train: all.Take(rows), test: first(test, e.TestN)}
	d.stats = standardization(d.train, stats)
	if e.HeldOut > 0 {
		d.heldOut = all.Take(held)
	}
	if e.OnHeldOut() {
		d.test, d.heldOut = d.heldOut, nil
		return d, nil
	}
	// The sets are predicted with one stream of noise, one after the other, so that what comes later depends on what is
	// there before. The runs in the repository were made without SVHN's test part, and with it come out the same.
	for _, name := range []string{otherDataset(e.Dataset), svhnExcerpt, svhnTest} {
		images, err := c.test(ctx, name, e.Scale == results.Full)
		var damaged *datasets.FileError
		switch {
		case errors.As(err, &damaged), ctx.Err() != nil:
			return imageData{}, err
		case images == nil && name == svhnTest && !withoutSVHN && needsSVHN(e):
			return imageData{}, fmt.Errorf("the table ood-svhn needs the test part of SVHN, which is not there (%w): put test_32x32.mat into the folder of data, %s, "+
				"or go on without it for good, with columns of SVHN that stay empty: by the flag --without-svhn of \"reproduce run\", in Go by Protocol.WithoutSVHN",
				cmp.Or(err, errNoFile), fetch.EnvData)
		case err != nil, images == nil && name == svhnExcerpt && isCompared(e):
			note(fmt.Sprintf("%v goes on without %s, whose columns stay empty: %v", e, name, cmp.Or(err, errNoExcerpt)))
		case images != nil:
			d.others = append(d.others, otherImages{name, first(images, e.TestN)})
		}
	}
	return d, nil
}

// enough returns an error if more images are asked for than there are: all to train on and hold out, and test to test on.
func enough(trainN, heldOut, testN, all, test int) error {
	if heldOut+max(trainN, 1) > all || testN > test {
		return fmt.Errorf("%d images to train on, %d held out and %d to test on were asked for, of %d and %d that there are", trainN, heldOut, testN, all, test)
	}
	return nil
}

var (
	errNoFile    = errors.New("there is no such file")
	errNoExcerpt = fmt.Errorf("there is no %s in the folder of data, %s", excerptFile, fetch.EnvData)
)

// isCompared says whether an experiment is one of those whose tables have a column for every set that is at hand.
func isCompared(e results.Experiment) bool {
	return slices.ContainsFunc(comparisons, func(c comparison) bool { return c.Scale == e.Scale })
}

// needsSVHN says whether the table of out-of-distribution detection is made of an experiment. Without SVHN it would
// lose a number for good, which nobody would notice before the end of a long run.
func needsSVHN(e results.Experiment) bool { return detectionIDs()[e.ID()] }

// detectionIDs are the identities of the full experiments of that table.
var detectionIDs = sync.OnceValue(func() map[string]bool {
	ids := make(map[string]bool)
	for _, e := range results.Union(detectionSet(), gaussianProcessSet()) {
		if e.Scale == results.Full {
			ids[e.ID()] = true
		}
	}
	return ids
})

// standardization is by the images to train on, or by the constants of the released code.
func standardization(train *datasets.Images, by ChannelStats) nets.Standardization {
	stats := datasets.ReleasedChannelStats()
	if by != ReleasedStats {
		stats = datasets.FitChannelStats(train, nil)
	}
	return nets.Standardization{Mean: stats.Mean[:], Std: stats.Std[:]}
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
