package cifar

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
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

// Origins says which images these are, a line for each set.
func (p *Pictures) Origins() string {
	var lines []string
	for _, m := range []*datasets.Images{p.Training, p.HeldOut, p.Test, p.CIFAR100, p.SVHN} {
		lines = append(lines, fmt.Sprintf("%s: a sample of %d of %d images, which comes with the program", m.Name, m.N, m.WholeN))
	}
	return strings.Join(lines, "\n")
}

// Some are n images of a set at random, or all of them if there are no more; the seed says which.
func Some(m *datasets.Images, n int, seed uint64) *datasets.Images {
	return m.Take(datasets.Order(seed, 0, m.N)[:min(n, m.N)])
}

// mapRate is the learning rate of Maps.
const mapRate = 0.02

// Maps trains something small on all the images at once, by so many steps of Adam
// at a rate of 0.02, and returns what it shows before and after. build is given
// standardised images, [channels, N, height, width], and returns what is to be
// shown and the loss, a scalar.
func Maps(backend compute.Backend, images *datasets.Images, steps int,
	build func(s *model.Scope, x *graph.Node) (shown, loss *graph.Node)) (before, after []float32, err error) {
	scale := standardization(datasets.FitChannelStats(images, nil))
	exec, err := model.NewExec(backend, model.NewStore(), func(root *model.Scope, pixels *graph.Node) *graph.Node {
		defer nets.PanicWithError("building the maps")
		shown, loss := build(root.In("model"), scale.Images(pixels, dtypes.Float32))
		optimizer.Adam().LearningRate(mapRate).Done().UpdateGraph(root, pixels.Graph(), loss)
		return shown
	})
	if err != nil {
		return nil, nil, fmt.Errorf("cifar: building the graph: %w", err)
	}
	defer exec.Finalize()
	pixels := tensors.FromFlatDataAndDimensions(images.Pixels, images.N, datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide)
	defer func() { err = errors.Join(err, pixels.FinalizeAll()) }()
	for step := range steps + 1 {
		out, err := exec.Call(pixels)
		if err != nil {
			return nil, nil, fmt.Errorf("cifar: step %d: %w", step, err)
		}
		if after, err = tensors.CopyFlatData[float32](out[0]); err != nil {
			return nil, nil, fmt.Errorf("cifar: step %d: %w", step, err)
		}
		if step == 0 {
			before = after
		}
	}
	return before, after, nil
}
