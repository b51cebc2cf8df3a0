package datasets

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"densityuncertainty/datasets/fetch"
)

// CIFAR10 returns CIFAR-10 (Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images; no licence is
// stated): 50000 training and 10000 test images of 10 classes, in the official order (the five training batches one
// after the other).
//
// It reads the official Python version, cifar-10-python.tar.gz (170 MB), or its unpacked folder cifar-10-batches-py/ in
// the local folder, as torchvision keeps them. The error names a file that is wrong or missing. The result takes 184 MB
// of memory, and as much again while reading.
func CIFAR10(ctx context.Context, f *fetch.Fetcher) (train, test *Images, err error) {
	return cifar10.load(ctx, f)
}

// CIFAR100 returns CIFAR-100: 50000 training and 10000 test images of 100 classes (the fine labels), in the official
// order. It reads cifar-100-python/ or cifar-100-python.tar.gz (169 MB) as [CIFAR10] does.
func CIFAR100(ctx context.Context, f *fetch.Fetcher) (train, test *Images, err error) {
	return cifar100.load(ctx, f)
}

// CIFARClasses returns the names of the n classes of CIFAR-10 or CIFAR-100, indexed by label. It is an error if n is
// neither 10 nor 100.
func CIFARClasses(n int) ([]string, error) {
	for _, set := range []cifarSet{cifar10, cifar100} {
		if len(set.classes) == n {
			return slices.Clone(set.classes), nil
		}
	}
	return nil, fmt.Errorf("datasets: there is no CIFAR set of %d classes; there are those of %d and %d", n, len(cifar10.classes), len(cifar100.classes))
}

// cifarSet is one of the two sets, with the published facts on its files.
type cifarSet struct {
	name     string
	classes  []string
	labelKey string // of the classes in a file
	archive  fetch.File
	folder   string // in the archive, and where that was unpacked
	files    []cifarFile
}

type cifarFile struct {
	name, md5 string
	images    int
	test      bool
}

// load finds the set and reads it.
func (s *cifarSet) load(ctx context.Context, f *fetch.Fetcher) (train, test *Images, err error) {
	folder, found, err := f.Local(s.folder)
	if err != nil {
		return nil, nil, fmt.Errorf("datasets: looking for %s: %w", s.folder, err)
	}
	var contents [][]byte // of the files
	if found {
		if contents, err = s.unpacked(folder); err != nil {
			return nil, nil, fmt.Errorf("datasets: reading %s: %w; get %s from %s and unpack it again into the folder that %s names", s.name, err, s.archive.Name, s.archive.URL, fetch.EnvData)
		}
	} else {
		path, err := f.Get(ctx, s.archive)
		if err != nil {
			return nil, nil, fmt.Errorf("datasets: getting %s (the folder %s/ will also do): %w", s.name, s.folder, err)
		}
		if contents, err = s.archived(path); err != nil {
			return nil, nil, fmt.Errorf("datasets: reading %s: %w", path, err)
		}
	}
	train, test = newImages(s.name+" train", s.classes, 0), newImages(s.name+" test", s.classes, 0)
	for i, file := range s.files {
		to := train
		if file.test {
			to = test
		}
		s.read(contents[i], file.images, to)
	}
	return train, test, nil
}

// unpacked are the contents of the files in a folder.
func (s *cifarSet) unpacked(folder string) (contents [][]byte, err error) {
	for _, file := range s.files {
		content, err := os.ReadFile(filepath.Join(folder, file.name))
		if err != nil {
			return nil, err
		}
		if sum := md5.Sum(content); hex.EncodeToString(sum[:]) != file.md5 {
			return nil, fmt.Errorf("%s has the MD5 %x, published is %s", filepath.Join(folder, file.name), sum, file.md5)
		}
		contents = append(contents, content)
	}
	return contents, nil
}

// archived are the contents of the files in an archive whose checksum is right.
func (s *cifarSet) archived(path string) (contents [][]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	contents = make([][]byte, len(s.files))
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return contents, nil
		}
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(s.files, func(file cifarFile) bool { return header.Name == s.folder+"/"+file.name }); i >= 0 {
			if contents[i], err = io.ReadAll(archive); err != nil {
				return nil, err
			}
		}
	}
}

// read appends the images of a file, a pickled dictionary. A pickle is a
// program, but these are known byte for byte by their checksums, so two look-ups do: the
// pixels are the string of their length (opcode T), the labels the list that follows
// its key (opcode U), numbers of one byte (opcode K) in batches of 1000, each between
// "(" and "e".
func (s *cifarSet) read(file []byte, images int, to *Images) {
	const batch = 1000
	_, list, _ := bytes.Cut(file, append([]byte{'U', byte(len(s.labelKey))}, s.labelKey...))
	_, list, _ = bytes.Cut(list, []byte("(K"))
	_, pixels, _ := bytes.Cut(file, binary.LittleEndian.AppendUint32([]byte{'T'}, uint32(images*imageSize)))
	for i := range images {
		to.Labels = append(to.Labels, int(list[2*(i+i/batch)]))
	}
	to.Pixels, to.N = append(to.Pixels, pixels[:images*imageSize]...), to.N+images
}

var cifar10 = cifarSet{
	name: "CIFAR-10", labelKey: "labels",
	archive: cifarArchive("cifar-10-python.tar.gz", 170498071, "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"),
	folder:  "cifar-10-batches-py",
	files: []cifarFile{
		{"data_batch_1", "c99cafc152244af753f735de768cd75f", 10000, false},
		{"data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec", 10000, false},
		{"data_batch_3", "54ebc095f3ab1f0389bbae665268c751", 10000, false},
		{"data_batch_4", "634d18415352ddfa80567beed471001a", 10000, false},
		{"data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb", 10000, false},
		{"test_batch", "40351d587109b95175f43aff81a1287e", 10000, true},
	},
	classes: []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
}

var cifar100 = cifarSet{
	name: "CIFAR-100", labelKey: "fine_labels",
	archive: cifarArchive("cifar-100-python.tar.gz", 169001437, "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"),
	folder:  "cifar-100-python",
	files: []cifarFile{
		{"train", "16019d7e3df5f24257cddd939b257f8d", 50000, false},
		{"test", "f0ef6b0ae62326f3e7ffdfab6717acfc", 10000, true},
	},
	classes: []string{
		"apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle",
		"bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle",
		"chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur",
		"dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard",
		"lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain",
		"mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree",
		"plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket",
		"rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider",
		"squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
		"train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm",
	},
}

func cifarArchive(name string, size int64, sha256 string) fetch.File {
	return fetch.File{Name: name, URL: "https://www.cs.toronto.edu/~kriz/" + name, Size: size, SHA256: sha256}
}
