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
	"sync"

	"densityuncertainty/datasets/fetch"
)

// CIFAR10 returns CIFAR-10 (Krizhevsky 2009, Learning Multiple Layers of Features
// from Tiny Images; no licence is stated): 50000 training and 10000 test images of
// 10 classes, in the official order (the five training batches one after the other).
//
// The folder named by the environment variable DENSITYUNCERTAINTY_DATA may hold
// any one of
//
//	cifar-10-batches-bin/    the unpacked binary version
//	cifar-10-batches-py/     the unpacked Python version
//	cifar-10-binary.tar.gz   the archive of the one
//	cifar-10-python.tar.gz   the archive of the other
//
// and the first of these that is there is used. Otherwise cifar-10-binary.tar.gz
// (170 MB) is taken from the cache or from its official address. f sets these
// places; nil means the defaults. See [fetch.Fetcher] for the details and its
// errors.
//
// Archives are held to their published SHA-256, unpacked files to their published
// size and MD5. A file that is wrong or missing is reported as a [*FileError].
//
// The result takes 184 MB of memory, reading it about as much again.
func CIFAR10(ctx context.Context, f *fetch.Fetcher) (train, test *Images, err error) {
	return cifar10.load(ctx, f)
}

// CIFAR100 returns CIFAR-100: 50000 training and 10000 test images of 100 classes
// (the fine labels), in the official order.
//
// What [CIFAR10] says of files, places, checks and errors holds here for
// cifar-100-binary/, cifar-100-python/, cifar-100-binary.tar.gz (169 MB) and
// cifar-100-python.tar.gz.
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
	name       string
	classes    []string
	labelBytes int            // of an image in the binary version; the last is its class
	labelKey   string         // of the classes in the Python version
	versions   []cifarVersion // in order of preference; the first is downloaded
}

// cifarVersion is a set in one of the official formats.
type cifarVersion struct {
	archive fetch.File
	folder  string // in the archive, and where that was unpacked
	read    func(set *cifarSet, file, pixels []byte, labels []int)
	files   []cifarFile
}

type cifarFile struct {
	name, md5 string
	size      int64
	images    int
	test      bool
}

// load finds the set and reads it.
func (s *cifarSet) load(ctx context.Context, f *fetch.Fetcher) (train, test *Images, err error) {
	for _, v := range s.versions {
		paths, err := v.unpacked(f)
		if err != nil {
			return nil, nil, err
		}
		if paths != nil {
			return s.readFolder(ctx, v, paths)
		}
	}
	v := s.versions[0]
	for _, other := range s.versions {
		_, found, err := f.Local(other.archive.Name)
		if err != nil {
			return nil, nil, fmt.Errorf("datasets: looking for %s: %w", s.name, err)
		}
		if found {
			v = other
			break
		}
	}
	path, err := f.Get(ctx, v.archive)
	if err != nil {
		return nil, nil, fmt.Errorf("datasets: getting %s (any of %s will do): %w", s.name, s.forms(), err)
	}
	return s.readArchive(ctx, v, path)
}

// forms lists what a folder may hold.
func (s *cifarSet) forms() string {
	var folders, archives []string
	for _, v := range s.versions {
		folders = append(folders, v.folder+"/")
		archives = append(archives, v.archive.Name)
	}
	return strings.Join(append(folders, archives...), ", ")
}

// unpacked returns the paths of the files in the local folder, in their order;
// nil if none of them is there.
func (v *cifarVersion) unpacked(f *fetch.Fetcher) ([]string, error) {
	var paths, missing []string
	for _, file := range v.files {
		path, found, err := f.Local(v.folder + "/" + file.name)
		if err != nil {
			return nil, fmt.Errorf("datasets: looking for %s: %w", v.folder, err)
		}
		if found {
			paths = append(paths, path)
		} else {
			missing = append(missing, file.name)
		}
	}
	if len(paths) > 0 && len(missing) > 0 {
		folder := filepath.Dir(paths[0])
		return nil, &FileError{File: folder, Err: fmt.Errorf("%w: %s", errLacking, strings.Join(missing, ", ")), Advice: v.advice()}
	}
	return paths, nil
}

// advice says how to replace unpacked files.
func (v *cifarVersion) advice() string {
	return fmt.Sprintf("get %s from %s and unpack it again into the folder that %s names", v.archive.Name, v.archive.URL, fetch.EnvData)
}

// room is where the images of the files go: each file's part of the two sets.
type room struct {
	train, test *Images
	parts       []*Images
}

func (s *cifarSet) room(v cifarVersion) room {
	count := map[bool]int{}
	for _, file := range v.files {
		count[file.test] += file.images
	}
	r := room{
		train: newImages(s.name+" train", s.classes, count[false]),
		test:  newImages(s.name+" test", s.classes, count[true]),
	}
	filled := map[bool]int{}
	for _, file := range v.files {
		whole := r.train
		if file.test {
			whole = r.test
		}
		from, to := filled[file.test], filled[file.test]+file.images
		filled[file.test] = to
		r.parts = append(r.parts, &Images{Pixels: whole.Pixels[from*ImageSize : to*ImageSize], Labels: whole.Labels[from:to]})
	}
	return r
}

// binary reads a file of the binary version: for each image its labels, one byte
// each, then its pixels. The file's checksum is right, as is that of one of python.
func (s *cifarSet) binary(file, pixels []byte, labels []int) {
	for i := range labels {
		image := file[i*(s.labelBytes+ImageSize):]
		labels[i] = int(image[s.labelBytes-1])
		copy(pixels[i*ImageSize:(i+1)*ImageSize], image[s.labelBytes:])
	}
}

// python reads a file of the Python version, a pickled dictionary. A pickle is a
// program, but these are known byte for byte by their checksums, so two look-ups do: the
// pixels are the string of their length (opcode T), the labels the list that follows
// its key (opcode U), numbers of one byte (opcode K) in batches of 1000, each between
// "(" and "e".
func (s *cifarSet) python(file, pixels []byte, labels []int) {
	const batch = 1000
	_, list, _ := bytes.Cut(file, append([]byte{'U', byte(len(s.labelKey))}, s.labelKey...))
	_, list, _ = bytes.Cut(list, []byte("(K"))
	_, image, _ := bytes.Cut(file, binary.LittleEndian.AppendUint32([]byte{'T'}, uint32(len(pixels))))
	for i := range labels {
		labels[i] = int(list[2*(i+i/batch)])
	}
	copy(pixels, image)
}

// readFolder reads the files at the given paths, all at once.
func (s *cifarSet) readFolder(ctx context.Context, v cifarVersion, paths []string) (train, test *Images, err error) {
	r := s.room(v)
	errs := make([]error, len(paths))
	var wg sync.WaitGroup
	for i, file := range v.files {
		wg.Go(func() {
			contents, err := readChecked(ctx, paths[i], file)
			if err != nil {
				errs[i] = &FileError{File: paths[i], Err: err, Advice: v.advice()}
				return
			}
			v.read(s, contents, r.parts[i].Pixels, r.parts[i].Labels)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return r.train, r.test, nil
}

// readChecked reads a file of known size and MD5.
func readChecked(ctx context.Context, path string, file cifarFile) ([]byte, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() != file.size {
		return nil, fmt.Errorf("%w: %d bytes, published are %d", errFileSize, info.Size(), file.size)
	}
	contents, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := md5.Sum(contents)
	if got := hex.EncodeToString(sum[:]); got != file.md5 {
		return nil, fmt.Errorf("%w: %s, published is %s", ErrChecksum, got, file.md5)
	}
	return contents, nil
}

// readArchive reads the files out of an archive.
func (s *cifarSet) readArchive(ctx context.Context, v cifarVersion, path string) (train, test *Images, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("datasets: opening %s: %w", s.name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := s.room(v)
	if err := s.unpack(ctx, v, f, r); err != nil {
		return nil, nil, &FileError{File: path, Err: err, Advice: fmt.Sprintf("remove %s, and get %s from %s again", path, v.archive.Name, v.archive.URL)}
	}
	return r.train, r.test, nil
}

// unpack reads the files of a compressed archive, in any order, until it has all.
func (s *cifarSet) unpack(ctx context.Context, v cifarVersion, f io.Reader, r room) error {
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	archive := tar.NewReader(unzipped)
	wanted := map[string]int{}
	for i, file := range v.files {
		wanted[v.folder+"/"+file.name] = i
	}
	for len(wanted) > 0 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		header, err := archive.Next()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(header.Name, "./")
		i, known := wanted[name]
		if !known {
			continue
		}
		delete(wanted, name)
		contents := make([]byte, header.Size)
		if _, err := io.ReadFull(archive, contents); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		v.read(s, contents, r.parts[i].Pixels, r.parts[i].Labels)
	}
	return nil
}

var cifar10 = cifarSet{
	name: "CIFAR-10", labelBytes: 1, labelKey: "labels",
	classes: []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
	versions: []cifarVersion{
		{
			archive: cifarArchive("cifar-10-binary.tar.gz", 170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
			folder:  "cifar-10-batches-bin",
			read:    (*cifarSet).binary,
			files: []cifarFile{
				{"data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25", 30730000, 10000, false},
				{"data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692", 30730000, 10000, false},
				{"data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421", 30730000, 10000, false},
				{"data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb", 30730000, 10000, false},
				{"data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d", 30730000, 10000, false},
				{"test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d", 30730000, 10000, true},
			},
		},
		{
			archive: cifarArchive("cifar-10-python.tar.gz", 170498071, "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"),
			folder:  "cifar-10-batches-py",
			read:    (*cifarSet).python,
			files: []cifarFile{
				{"data_batch_1", "c99cafc152244af753f735de768cd75f", 31035704, 10000, false},
				{"data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec", 31035320, 10000, false},
				{"data_batch_3", "54ebc095f3ab1f0389bbae665268c751", 31035999, 10000, false},
				{"data_batch_4", "634d18415352ddfa80567beed471001a", 31035696, 10000, false},
				{"data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb", 31035623, 10000, false},
				{"test_batch", "40351d587109b95175f43aff81a1287e", 31035526, 10000, true},
			},
		},
	},
}

var cifar100 = cifarSet{
	name: "CIFAR-100", labelBytes: 2, labelKey: "fine_labels",
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
	versions: []cifarVersion{
		{
			archive: cifarArchive("cifar-100-binary.tar.gz", 168513733, "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"),
			folder:  "cifar-100-binary",
			read:    (*cifarSet).binary,
			files: []cifarFile{
				{"train.bin", "6172c7755cfe09b2fe270c85cebc1b15", 153700000, 50000, false},
				{"test.bin", "4499cfba6c016c1be1438163640a0898", 30740000, 10000, true},
			},
		},
		{
			archive: cifarArchive("cifar-100-python.tar.gz", 169001437, "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"),
			folder:  "cifar-100-python",
			read:    (*cifarSet).python,
			files: []cifarFile{
				{"train", "16019d7e3df5f24257cddd939b257f8d", 155249918, 50000, false},
				{"test", "f0ef6b0ae62326f3e7ffdfab6717acfc", 31049707, 10000, true},
			},
		},
	},
}

// CIFAR10Archive is the official archive that [CIFAR10] downloads, with its size and SHA-256.
func CIFAR10Archive() fetch.File { return cifar10.versions[0].archive }

// CIFAR100Archive is the official archive that [CIFAR100] downloads, with its size and SHA-256.
func CIFAR100Archive() fetch.File { return cifar100.versions[0].archive }

func cifarArchive(name string, size int64, sha256 string) fetch.File {
	return fetch.File{Name: name, URL: "https://www.cs.toronto.edu/~kriz/" + name, Size: size, SHA256: sha256}
}
