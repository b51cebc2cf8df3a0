package datasets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment/must"
)

// svhnVariables returns the images in the form of the file: X is
// row x column x channel x image with the row running fastest, digit 0 is 10.
func svhnVariables(m *Images) (x, y matVariable) {
	data := make([]byte, 0, len(m.Pixels))
	labels := make([]byte, m.N)
	for i := range m.N {
		for c := range ImageChannels {
			for column := range ImageSide {
				for row := range ImageSide {
					data = append(data, channel(m.Image(i), c)[row*ImageSide+column])
				}
			}
		}
		if labels[i] = byte(m.Labels[i]); labels[i] == 0 {
			labels[i] = 10
		}
	}
	return matVariable{name: "X", class: 9, dims: []int{32, 32, 3, m.N}, data: data},
		matVariable{name: "y", class: 6, dims: []int{m.N, 1}, data: labels}
}

func digits() *Images {
	m := someImages(4)
	m.Labels = []int{0, 9, 1, 5}
	return m
}

// tinySVHN describes and names a file as if it were published.
func tinySVHN(data []byte) (svhnFile, testFile) {
	sum := sha256.Sum256(data)
	set := svhnFile{fetch.File{Name: "svhn/tiny_32x32.mat", URL: svhnURL + "tiny_32x32.mat", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}, 4}
	return set, testFile{set.Name, data}
}

func TestSVHN(t *testing.T) {
	want := digits()
	x, y := svhnVariables(want)
	plain := x
	plain.plain = true
	for name, data := range map[string][]byte{
		"labels stored as bytes": matOf(x, y),
		"labels first":           matOf(y, x),
		"not compressed":         matOf(plain, y),
	} {
		t.Run(name, func(t *testing.T) {
			set, file := tinySVHN(data)
			got := must.Get(set.load(context.Background(), folderOf(t, file), "SVHN tiny"))(t)
			requireSameImages(t, want, got)
			if got.Name != "SVHN tiny" || len(got.Classes) != 10 || got.Classes[got.Labels[1]] != "9" {
				t.Errorf("%q, classes %q", got.Name, got.Classes)
			}
		})
	}
}

func TestSVHNRefuses(t *testing.T) {
	x, y := svhnVariables(digits())
	whole := matOf(x, y)
	with := func(v matVariable, change func(*matVariable)) matVariable {
		change(&v)
		return v
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"no MATLAB file", bytes.Repeat([]byte("<html>"), 50), ""},
		{"cut in the images", whole[:5000], ""},
		{"no images", matOf(y), "variable X"},
		{"fewer images", matOf(with(x, func(v *matVariable) { v.dims, v.data = []int{32, 32, 3, 3}, v.data[:3*imageSize] }), y), "variable X"},
		{"more images", matOf(with(x, func(v *matVariable) { v.dims, v.data = []int{32, 32, 3, 5}, make([]byte, 5*imageSize) }), y), "are allowed"},
		{"images of other sides", matOf(with(x, func(v *matVariable) { v.dims = []int{3, 32, 32, 4} }), y), "variable X"},
		{"fewer labels", matOf(x, with(y, func(v *matVariable) { v.dims, v.data = []int{3, 1}, []byte{1, 2, 3} })), "variable y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, file := tinySVHN(c.data)
			_, err := set.load(context.Background(), folderOf(t, file), "SVHN tiny")
			must.Err(t, err, c.want, "/tiny_32x32.mat: ", svhnURL+"tiny_32x32.mat again")
		})
	}
}

func TestSVHNTrainExcerpt(t *testing.T) {
	m := must.Get(SVHNTrainExcerpt(context.Background(), realFiles(t, svhnExcerptFile)))(t)
	if m.N != 1083 || len(m.Pixels) != 1083*imageSize || m.Labels != nil || m.Name != "first 1083 images of SVHN train, no labels" {
		t.Errorf("%q: %d images, labels %v", m.Name, m.N, m.Labels)
	}
}

// Without a file of its own the excerpt is the beginning of the training part.
func TestSVHNTrainExcerptOfTheOfficialFile(t *testing.T) {
	x, y := svhnVariables(someImages(1100))
	set, file := tinySVHN(matOf(x, y))
	set.images = 1100
	whole := must.Get(set.load(t.Context(), folderOf(t, file), ""))(t)
	official, pixels := svhnTrain, svhnExcerptPixels
	defer func() { svhnTrain, svhnExcerptPixels = official, pixels }()
	svhnTrain = set
	sum := sha256.Sum256(whole.Pixels[:1083*imageSize])
	svhnExcerptPixels = hex.EncodeToString(sum[:])
	m := must.Get(SVHNTrainExcerpt(t.Context(), folderOf(t, file)))(t)
	if m.N != 1083 || len(m.Pixels) != 1083*imageSize || m.Labels != nil || m.Name != "first 1083 images of SVHN train, no labels" {
		t.Errorf("%q: %d images, labels %v", m.Name, m.N, m.Labels)
	}
}

// Other images under the excerpt's name are refused.
func TestSVHNTrainExcerptRefuses(t *testing.T) {
	blank := newImages("blank", nil, svhnExcerptImages)
	x, y := svhnVariables(blank)
	for name, data := range map[string][]byte{"other pixels": matOf(x), "another size": matOf(y)} {
		t.Run(name, func(t *testing.T) {
			must.GetErr(SVHNTrainExcerpt(context.Background(), folderOf(t, testFile{svhnExcerptFile, data})))(t, "remove or replace the file")
		})
	}
}
