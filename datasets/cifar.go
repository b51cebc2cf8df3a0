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
	"strings"

	"densityuncertainty/datasets/fetch"
)

// CIFAR10 returns CIFAR-10 (Krizhevsky 2009, Learning Multiple Layers of Features
// from Tiny Images; no licence is stated): 50000 training and 10000 test images of
// 10 classes, in the official order (the five training batches one after the other).
//
// They are read from the official Python version: from the unpacked folder
// cifar-10-batches-py/, or else from the archive cifar-10-python.tar.gz, in the folder
// named by the environment variable DENSITYUNCERTAINTY_DATA. Both are what torchvision
// keeps. Otherwise the archive (170 MB) is taken from the cache or from its official
// address. f sets these places; nil means the defaults. See [fetch.Fetcher] for the
// details and its errors.
//
// The archive is held to its SHA-256, unpacked files to their published MD5. The error
// names a file that is wrong or missing.
//
// The result takes 184 MB of memory.
func CIFAR10(ctx context.Context, f *fetch.Fetcher) (train, test *Images, err error) {
	return cifar10.load(ctx, f)
}

// CIFAR100 returns CIFAR-100: 50000 training and 10000 test images of 100 classes
// (the fine labels), in the official order.
//
// What [CIFAR10] says of files, places, checks and errors holds here for
// cifar-100-python/ and cifar-100-python.tar.gz (169 MB).
func CIFAR100(ctx context.Context, f *fetch.Fetcher) (train, test *Images, err error) {
	return cifar100.load(ctx, f)
}

// CIFARClasses are the names of the classes of CIFAR-10 or CIFAR-100, by their number.
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
	paths, err := s.unpacked(f)
	if err != nil {
		return nil, nil, err
	}
	if paths != nil {
		return s.readFolder(paths)
	}
	path, err := f.Get(ctx, s.archive)
	if err != nil {
		return nil, nil, fmt.Errorf("datasets: getting %s (the folder %s/ will also do): %w", s.name, s.folder, err)
	}
	return s.readArchive(path)
}

// unpacked returns the paths of the files in the local folder, in their order;
// nil if none of them is there.
func (s *cifarSet) unpacked(f *fetch.Fetcher) ([]string, error) {
	var paths, missing []string
	for _, file := range s.files {
		path, found, err := f.Local(s.folder + "/" + file.name)
		if err != nil {
			return nil, fmt.Errorf("datasets: looking for %s: %w", s.folder, err)
		}
		if found {
			paths = append(paths, path)
		} else {
			missing = append(missing, file.name)
		}
	}
	if len(paths) > 0 && len(missing) > 0 {
		return nil, fmt.Errorf("datasets: %s: files are missing: %s; %s", filepath.Dir(paths[0]), strings.Join(missing, ", "), s.advice())
	}
	return paths, nil
}

// advice says how to replace unpacked files.
func (s *cifarSet) advice() string {
	return fmt.Sprintf("get %s from %s and unpack it again into the folder that %s names", s.archive.Name, s.archive.URL, fetch.EnvData)
}

// room makes the two sets, and returns each file's part of them.
func (s *cifarSet) room() (train, test *Images, parts []*Images) {
	count := map[bool]int{}
	for _, file := range s.files {
		count[file.test] += file.images
	}
	train, test = newImages(s.name+" train", s.classes, count[false]), newImages(s.name+" test", s.classes, count[true])
	filled := map[bool]int{}
	for _, file := range s.files {
		whole := train
		if file.test {
			whole = test
		}
		from, to := filled[file.test], filled[file.test]+file.images
		filled[file.test] = to
		parts = append(parts, &Images{Pixels: whole.Pixels[from*ImageSize : to*ImageSize], Labels: whole.Labels[from:to]})
	}
	return train, test, parts
}

// read reads a file, a pickled dictionary. A pickle is a
// program, but these are known byte for byte by their checksums, so two look-ups do: the
// pixels are the string of their length (opcode T), the labels the list that follows
// its key (opcode U), numbers of one byte (opcode K) in batches of 1000, each between
// "(" and "e".
func (s *cifarSet) read(file []byte, part *Images) {
	const batch = 1000
	_, list, _ := bytes.Cut(file, append([]byte{'U', byte(len(s.labelKey))}, s.labelKey...))
	_, list, _ = bytes.Cut(list, []byte("(K"))
	_, image, _ := bytes.Cut(file, binary.LittleEndian.AppendUint32([]byte{'T'}, uint32(len(part.Pixels))))
	for i := range part.Labels {
		part.Labels[i] = int(list[2*(i+i/batch)])
	}
	copy(part.Pixels, image)
}

// readFolder reads the files at the given paths.
func (s *cifarSet) readFolder(paths []string) (train, test *Images, err error) {
	train, test, parts := s.room()
	for i, file := range s.files {
		contents, err := os.ReadFile(paths[i])
		if err != nil {
			return nil, nil, fmt.Errorf("datasets: reading %s: %w", s.name, err)
		}
		if sum := md5.Sum(contents); hex.EncodeToString(sum[:]) != file.md5 {
			return nil, nil, fmt.Errorf("datasets: %s has not the published MD5: %x, published is %s; %s", paths[i], sum, file.md5, s.advice())
		}
		s.read(contents, parts[i])
	}
	return train, test, nil
}

// readArchive reads the files out of an archive whose checksum is right.
func (s *cifarSet) readArchive(path string) (train, test *Images, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("datasets: opening %s: %w", s.name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, nil, fmt.Errorf("datasets: reading %s: %w", path, err)
	}
	train, test, parts := s.room()
	archive := tar.NewReader(unzipped)
	for read := 0; read < len(s.files); {
		header, err := archive.Next()
		if err != nil {
			return nil, nil, fmt.Errorf("datasets: reading %s: %w", path, err)
		}
		i := slices.IndexFunc(s.files, func(file cifarFile) bool { return header.Name == s.folder+"/"+file.name })
		if i < 0 {
			continue
		}
		contents, err := io.ReadAll(archive)
		if err != nil {
			return nil, nil, fmt.Errorf("datasets: reading %s: %w", path, err)
		}
		s.read(contents, parts[i])
		read++
	}
	return train, test, nil
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
