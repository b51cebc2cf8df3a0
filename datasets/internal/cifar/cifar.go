// Package cifar reads the files of CIFAR-10 and CIFAR-100 in both official
// versions, the binary one and the Python one.
package cifar

import (
	"errors"
	"fmt"
	"io"

	"densityuncertainty/datasets/internal/parse"
	"densityuncertainty/datasets/internal/pickle"
)

// ImageSize is the number of bytes of an image: 3 channels (red, green, blue) of
// 32 rows of 32 pixels.
const ImageSize = 3 * 32 * 32

// Causes of errors.
var (
	ErrLabel    = errors.New("label out of range")
	ErrTrailing = errors.New("more data than expected")
	ErrContents = errors.New("unexpected contents")
)

// A Kind is one of the two data sets, as far as their files differ.
type Kind struct {
	// labels lists the labels of an image in the order of the binary version.
	// The last one is that of the class; the one before it, if any, that of a
	// group of classes.
	labels []label
}

type label struct {
	key     string // in the Python version
	classes int
}

// Ten is CIFAR-10.
func Ten() Kind { return Kind{[]label{{"labels", 10}}} }

// Hundred is CIFAR-100.
func Hundred() Kind { return Kind{[]label{{"coarse_labels", 20}, {"fine_labels", 100}}} }

// RecordSize is the number of bytes of an image and its labels in the binary
// version.
func (k Kind) RecordSize() int { return len(k.labels) + ImageSize }

// Binary reads a file of the binary version: for each image its labels, one byte
// each, then its pixels. The file must hold exactly len(labels) images; pixels
// has room for so many. Errors are [*parse.Error].
func (k Kind) Binary(file []byte, pixels []byte, labels []int) error {
	size := k.RecordSize()
	for i := range labels {
		at := i * size
		if len(file)-at < size {
			return parse.Errorf(int64(len(file)), "%w: %d of %d images are there", io.ErrUnexpectedEOF, i, len(labels))
		}
		for j, l := range k.labels {
			v := int(file[at+j])
			if v >= l.classes {
				return parse.Errorf(int64(at+j), "%w: %d is not below %d", ErrLabel, v, l.classes)
			}
			labels[i] = v
		}
		copy(pixels[i*ImageSize:(i+1)*ImageSize], file[at+len(k.labels):])
	}
	if end := len(labels) * size; len(file) > end {
		return parse.Errorf(int64(end), "%w: %d bytes follow the last image", ErrTrailing, len(file)-end)
	}
	return nil
}

// Pickle reads a file of the Python version: a dictionary with the pixels under
// "data" and the labels under the keys of the set. It must hold exactly
// len(labels) images; pixels has room for so many.
func (k Kind) Pickle(file []byte, pixels []byte, labels []int) error {
	value, err := pickle.Load(file)
	if err != nil {
		return err
	}
	dict, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%w: a %T where a dictionary should be", ErrContents, value)
	}
	data, ok := dict["data"].(*pickle.Array)
	if !ok || len(data.Shape) != 2 || data.Shape[0] != len(labels) || data.Shape[1] != ImageSize {
		return fmt.Errorf("%w: \"data\" is not an array of %d x %d bytes", ErrContents, len(labels), ImageSize)
	}
	for _, l := range k.labels {
		list, ok := dict[l.key].(*pickle.List)
		if !ok || len(list.Items) != len(labels) {
			return fmt.Errorf("%w: %q is not a list of %d labels", ErrContents, l.key, len(labels))
		}
		for i, item := range list.Items {
			v, ok := item.(int)
			if !ok || v < 0 || v >= l.classes {
				return fmt.Errorf("%w: %q of image %d is %v, not a number from 0 to %d", ErrLabel, l.key, i, item, l.classes-1)
			}
			labels[i] = v
		}
	}
	copy(pixels, data.Data)
	return nil
}
