package datasets

import (
	"bytes"
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"strconv"

	"golang.org/x/image/webp"
)

// The sample of images that is part of the program; sample/NOTICE.md says where it comes from and on what terms.
//
//go:embed sample/*.webp sample/sample.csv
var sampleFiles embed.FS

// CIFAR10Sample returns the part of CIFAR-10 that is in the program: 1000 training and 1000 test images, as many of
// each class, unchanged and in the official order. The training images are among the 5000 that HoldOut(50000, 5000, 0)
// holds out.
func CIFAR10Sample() (train, test *Images, err error) {
	train, err1 := sampleOf("cifar10-train", "CIFAR-10 train", cifar10.classes)
	test, err2 := sampleOf("cifar10-test", "CIFAR-10 test", cifar10.classes)
	return train, test, errors.Join(err1, err2)
}

// CIFAR100Sample returns the 500 test images of CIFAR-100 that are in the program, five of each class.
func CIFAR100Sample() (test *Images, err error) {
	return sampleOf("cifar100-test", "CIFAR-100 test", cifar100.classes)
}

// SVHNSample returns 500 of the first 1083 images of SVHN's training part, which are in the program, without labels.
func SVHNSample() (*Images, error) {
	return sampleOf("svhn", "SVHN train", svhnClasses())
}

// sampleRows is the list of the sample: the images' numbers in the official sets and their labels.
func sampleRows(file string) (official, labels []int, err error) {
	text, err := sampleFiles.ReadFile("sample/sample.csv")
	if err != nil {
		return nil, nil, err
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows[1:] {
		if row[0] != file {
			continue
		}
		number, err := strconv.Atoi(row[1])
		if err != nil {
			return nil, nil, err
		}
		official = append(official, number)
		if label, err := strconv.Atoi(row[2]); err == nil { // else there is none
			labels = append(labels, label)
		}
	}
	return official, labels, nil
}

// sampleOf decodes a sheet of the sample: images side by side, row by row.
func sampleOf(file, name string, classes []string) (*Images, error) {
	fail := func(err error) (*Images, error) { return nil, fmt.Errorf("datasets: the sample of %s: %w", name, err) }
	official, labels, err := sampleRows(file)
	if err != nil {
		return fail(err)
	}
	packed, err := sampleFiles.ReadFile("sample/" + file + ".webp")
	if err != nil {
		return fail(err)
	}
	decoded, err := webp.Decode(bytes.NewReader(packed))
	if err != nil {
		return fail(err)
	}
	m := newImages(name, classes, len(official))
	m.Official, m.Labels = official, labels
	columns := decoded.Bounds().Dx() / ImageSide
	sheet := image.NewNRGBA(decoded.Bounds())
	draw.Draw(sheet, sheet.Rect, decoded, decoded.Bounds().Min, draw.Src)
	for i := range m.N {
		pixels := m.Image(i)
		for k := range ImageSide * ImageSide {
			at := sheet.PixOffset(i%columns*ImageSide+k%ImageSide, i/columns*ImageSide+k/ImageSide)
			for channel := range ImageChannels {
				pixels[channel*ImageSide*ImageSide+k] = sheet.Pix[at+channel]
			}
		}
	}
	return m, nil
}
