package train

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/dul/nets"
)

// Images is a training set of labelled images.
type Images struct {
	// Pixels has shape [N, channels, Height, Width], row-major; 0 is black.
	Pixels        []byte
	Height, Width int
	// Labels are the N images' classes, from 0.
	Labels []int
	// Standardization has a mean and a standard deviation for each channel.
	Standardization nets.Standardization
}

// N is the number of images.
func (d Images) N() int { return len(d.Labels) }

func (d Images) channels() int { return len(d.Standardization.Mean) }

// validate says what is wrong with the set for a classifier of so many classes.
func (d Images) validate(classes int) error {
	if d.N() == 0 || d.channels() == 0 || d.Height < 1 || d.Width < 1 {
		return fmt.Errorf("training images: %d labels, %d channel means, %d x %d pixels; none of them may be 0", d.N(), d.channels(), d.Height, d.Width)
	}
	if err := d.Standardization.Check(d.channels()); err != nil {
		return fmt.Errorf("training images: %w", err)
	}
	if want := d.N() * d.channels() * d.Height * d.Width; len(d.Pixels) != want {
		return fmt.Errorf("training images: %d pixels, want %d for %d images of %d x %d with %d channels", len(d.Pixels), want, d.N(), d.Height, d.Width, d.channels())
	}
	for i, label := range d.Labels {
		if label < 0 || label >= classes {
			return fmt.Errorf("training images: image %d has label %d; the classifier has classes 0 to %d", i, label, classes-1)
		}
	}
	return nil
}

// An Augmentation changes the training images anew in every epoch.
type Augmentation interface {
	// Draw says what to do with an image, given by its number in the set, in an
	// epoch: the top row and the left column, from 0 to 2 Classification.Padding,
	// of the window to cut out of the padded image, and whether to mirror the
	// window left to right. It is a pure function, so that a run that was stopped
	// goes on with the same images.
	Draw(seed uint64, epoch, image int) (top, left int, flip bool)
}

// deviceImages is a training set where the backend computes: each step is sent
// the numbers of its images and their shifts, no pixels.
type deviceImages struct {
	pixels *tensors.Tensor // [N, channels, height, width], bytes
	labels *tensors.Tensor // [N], int32
}

func (d Images) toDevice() deviceImages {
	labels := make([]int32, d.N())
	for i, label := range d.Labels {
		labels[i] = int32(label)
	}
	return deviceImages{
		pixels: tensors.FromFlatDataAndDimensions(d.Pixels, d.N(), d.channels(), d.Height, d.Width),
		labels: tensors.FromFlatDataAndDimensions(labels, d.N()),
	}
}

func (d deviceImages) finalize() error {
	return errors.Join(d.pixels.FinalizeAll(), d.labels.FinalizeAll())
}

// The columns of a table of picks: what a step needs to know of each image.
const (
	pickImage   = iota // its number
	pickTop            // of the window
	pickLeft           // of the window
	pickFlip           // 1 or 0
	pickColumns        // their number
)

// pick is the images of a batch, augmented, [batch, channels, height, width], of
// the bytes of all images, [N, channels, height, width], by a table of picks,
// [batch, pickColumns]. Images are padded with so many black pixels.
func pick(pixels, table *graph.Node, padding int) *graph.Node {
	batch := table.Shape().Dim(0)
	column := func(first, end int) *graph.Node { return graph.SliceAxis(table, 1, graph.AxisRange(first, end)) }
	x := graph.Gather(pixels, column(pickImage, pickImage+1))
	dims := x.Shape().Dimensions
	if padding > 0 {
		x = framed(framed(x, 2, padding), 3, padding)
		example := graph.Iota(table.Graph(), shapes.Make(table.DType(), batch, 1), 0)
		corner := graph.Concatenate([]*graph.Node{example, column(pickTop, pickFlip)}, 1)
		x = graph.GatherSlices(x, []int{0, 2, 3}, corner, []int{1, dims[2], dims[3]}, true)
		x = graph.Reshape(x, dims...)
	}
	flip := graph.GreaterThan(column(pickFlip, pickColumns), graph.ScalarZero(table.Graph(), table.DType()))
	flip = graph.BroadcastToDims(graph.Reshape(flip, batch, 1, 1, 1), dims...)
	return graph.Where(flip, graph.Reverse(x, 3), x)
}

// framed puts black pixels before and after an axis.
func framed(x *graph.Node, axis, width int) *graph.Node {
	shape := x.Shape().Clone()
	shape.Dimensions[axis] = width
	black := graph.Zeros(x.Graph(), shape)
	return graph.Concatenate([]*graph.Node{black, x, black}, axis)
}
