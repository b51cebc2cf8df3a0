// Embedimages makes the sample of images in datasets/sample from the official files, found where package datasets
// finds them:
//
//	go run ./datasets/internal/embedimages FOLDER
//
// writes a sheet of images of each set to the folder, as PNG, and the list sample.csv. The sheets in the repository
// are WebP without loss, a quarter smaller; Go's libraries read that format but do not write it, so that the last step
// is one of Pillow, for each of the sheets:
//
//	from PIL import Image
//	Image.open("cifar10-train.png").save("cifar10-train.webp", lossless=True, quality=100, method=6)
//
// The tests of package datasets compare the pixels with sample.csv, and with the official files where these are.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"densityuncertainty/datasets"
	"densityuncertainty/environment/atomicfile"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: embedimages FOLDER")
		os.Exit(2)
	}
	if err := write(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "embedimages:", err)
		os.Exit(1)
	}
}

// heldOut and heldOutSeed are those of the experiments (package cifar), so that none of the sample's training images
// has a part in the training of the networks in the repository.
const heldOut, heldOutSeed = 5000, 0

// perRow is the number of images in a row of a sheet.
const perRow = 25

// A part is the sample of one set.
type part struct {
	name   string
	images *datasets.Images
	rows   []int // numbers in the official set, ascending
}

// write makes the sheets and the list.
func write(ctx context.Context, folder string) error {
	train, test, err := datasets.CIFAR10(ctx, nil)
	if err != nil {
		return err
	}
	_, hundred, err := datasets.CIFAR100(ctx, nil)
	if err != nil {
		return err
	}
	svhn, err := datasets.SVHNTrainExcerpt(ctx, nil)
	if err != nil {
		return err
	}
	_, held := datasets.HoldOut(train.N, heldOut, heldOutSeed)
	list := [][]string{{"set", "official_index", "label"}}
	for _, p := range []part{
		{"cifar10-train", train, balanced(train, held, 100)},
		{"cifar10-test", test, balanced(test, shuffled(test.N), 100)},
		{"cifar100-test", hundred, balanced(hundred, shuffled(hundred.N), 5)},
		{"svhn", svhn, first(shuffled(svhn.N), 500)}, // without labels
	} {
		picked := p.images.Take(p.rows)
		if err := atomicfile.Write(filepath.Join(folder, p.name+".png"), func(w io.Writer) error { return png.Encode(w, sheet(picked)) }); err != nil {
			return err
		}
		sum := sha256.Sum256(picked.Pixels)
		fmt.Println(p.name, picked.N, "images, SHA-256 of the pixels", hex.EncodeToString(sum[:]))
		for i, row := range p.rows {
			label := ""
			if picked.Labels != nil {
				label = strconv.Itoa(picked.Labels[i])
			}
			list = append(list, []string{p.name, strconv.Itoa(row), label})
		}
	}
	return atomicfile.Write(filepath.Join(folder, "sample.csv"), func(file io.Writer) error {
		w := csv.NewWriter(file)
		return errors.Join(w.WriteAll(list), w.Error())
	})
}

// shuffled are the numbers below n in an order that depends on n alone.
func shuffled(n int) []int { return rand.New(rand.NewPCG(0, uint64(n))).Perm(n) }

// balanced are the first rows of each class, so many of them, in ascending order.
func balanced(m *datasets.Images, rows []int, each int) []int {
	count, picked := make([]int, len(m.Classes)), []int(nil)
	for _, row := range rows {
		if label := m.Labels[row]; count[label] < each {
			count[label]++
			picked = append(picked, row)
		}
	}
	slices.Sort(picked)
	return picked
}

// first are the first n rows in ascending order.
func first(rows []int, n int) []int {
	picked := slices.Clone(rows[:n])
	slices.Sort(picked)
	return picked
}

// sheet is the images side by side, row by row.
func sheet(m *datasets.Images) image.Image {
	const side, plane = datasets.ImageSide, datasets.ImageSide * datasets.ImageSide
	picture := image.NewNRGBA(image.Rect(0, 0, perRow*side, m.N/perRow*side))
	for i := range m.N {
		for k := range plane {
			pixels := m.Image(i)
			picture.SetNRGBA(i%perRow*side+k%side, i/perRow*side+k/side, color.NRGBA{R: pixels[k], G: pixels[plane+k], B: pixels[2*plane+k], A: 255})
		}
	}
	return picture
}
