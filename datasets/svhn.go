package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"densityuncertainty/datasets/fetch"
)

const (
	svhnURL = "http://ufldl.stanford.edu/housenumbers/"

	svhnExcerptFile   = "svhn/train_first1083_32x32.mat"
	svhnExcerptImages = 1083
)

// svhnExcerptPixels is the SHA-256 of the excerpt's pixels: image, channel, row, column. A test replaces it.
var svhnExcerptPixels = "0262ac544c6e4be84856419914e2f4b5fcd1d2e414be72bedaf86c24f8eae40c"

// svhnFile is the file of a part, with what is published on it.
type svhnFile struct {
	fetch.File
	images int
}

var (
	svhnTrain = svhnFile{fetch.File{Name: "svhn/train_32x32.mat", URL: svhnURL + "train_32x32.mat", SHA256: "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8", Size: 182040794}, 73257}
	svhnTest  = svhnFile{fetch.File{Name: "svhn/test_32x32.mat", URL: svhnURL + "test_32x32.mat", SHA256: "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b", Size: 64275384}, 26032}
)

func svhnClasses() []string { return []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} }

// SVHNTest returns the 26032 test images of SVHN's cropped digits ("format 2"; Netzer et al. 2011, Reading Digits in
// Natural Images with Unsupervised Feature Learning; for non-commercial use only), in the order of the file. A label is
// the digit.
//
// It reads svhn/test_32x32.mat (64 MB). The result takes 80 MB of memory.
func SVHNTest(ctx context.Context, f *fetch.Fetcher) (*Images, error) {
	return svhnTest.load(ctx, f, "SVHN test")
}

func (s svhnFile) load(ctx context.Context, f *fetch.Fetcher, name string) (*Images, error) {
	path, err := f.Get(ctx, s.File)
	if err != nil {
		return nil, fmt.Errorf("datasets: getting %s: %w", name, err)
	}
	m, err := readSVHN(path, s.images)
	if err != nil {
		return nil, fmt.Errorf("datasets: %s: %w; get %s again", path, err, s.URL)
	}
	m.Name = name
	return m, nil
}

// SVHNTrainExcerpt returns the first 1083 images of SVHN's training part, without labels. They are enough for a look at
// out-of-distribution scores. Neighbours are often digits of one house number, so they are worth fewer than 1083
// independent images.
//
// It reads svhn/train_first1083_32x32.mat in the local folder, or else the beginning of the training part,
// svhn/train_32x32.mat (182 MB).
func SVHNTrainExcerpt(ctx context.Context, f *fetch.Fetcher) (*Images, error) {
	m, err := svhnBeginning(ctx, f)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(m.Pixels)
	if got := hex.EncodeToString(sum[:]); got != svhnExcerptPixels {
		return nil, fmt.Errorf("datasets: the first %d images of SVHN train: the SHA-256 of the pixels is %s, not %s; remove or replace the file", m.N, got, svhnExcerptPixels)
	}
	m.Name, m.Labels = "first 1083 images of SVHN train, no labels", nil
	return m, nil
}

// svhnBeginning reads the excerpt's images from the local file, or else from the training part.
func svhnBeginning(ctx context.Context, f *fetch.Fetcher) (*Images, error) {
	path, found, err := f.Local(svhnExcerptFile)
	if err != nil {
		return nil, fmt.Errorf("datasets: %w", err)
	}
	if found {
		m, err := readSVHN(path, svhnExcerptImages)
		if err != nil {
			return nil, fmt.Errorf("datasets: %s: %w; remove or replace the file", path, err)
		}
		return m, nil
	}
	m, err := svhnTrain.load(ctx, f, "SVHN train")
	if err != nil {
		return nil, err
	}
	m.N, m.Pixels = svhnExcerptImages, slices.Clone(m.Pixels[:svhnExcerptImages*imageSize])
	return m, nil
}

// readSVHN reads a file of n images.
func readSVHN(path string, n int) (m *Images, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return parseSVHN(f, n)
}

// parseSVHN reads the variables X, the images as row x column x channel x image,
// and y, the labels, if there is one, both of bytes in column-major order.
func parseSVHN(file io.Reader, n int) (*Images, error) {
	arrays, err := readMAT(file, int64(n)*imageSize+1024) // pixels, and what describes them
	if err != nil {
		return nil, err
	}
	x := arrays["X"]
	if !slices.Equal(x.dims, []int{ImageSide, ImageSide, ImageChannels, n}) || len(x.data) != n*imageSize {
		return nil, fmt.Errorf("variable X has dimensions %v and %d bytes, expected 32 x 32 x 3 x %d", x.dims, len(x.data), n)
	}
	pixels := x.data
	// Column-major with the image last is the wanted order but for rows and
	// columns of each channel.
	for plane := 0; plane < len(pixels); plane += ImageSide * ImageSide {
		transpose(pixels[plane : plane+ImageSide*ImageSide])
	}
	m := &Images{Classes: svhnClasses(), Pixels: pixels, N: n}
	y, labelled := arrays["y"]
	if labelled && len(y.data) != n {
		return nil, fmt.Errorf("variable y has %d bytes, expected %d labels", len(y.data), n)
	}
	for _, digit := range y.data {
		m.Labels = append(m.Labels, int(digit)%10)
	}
	return m, nil
}

// transpose exchanges rows and columns of one channel of an image.
func transpose(plane []byte) {
	for row := range ImageSide {
		for column := range row {
			i, j := row*ImageSide+column, column*ImageSide+row
			plane[i], plane[j] = plane[j], plane[i]
		}
	}
}
