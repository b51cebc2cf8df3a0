package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// samples are all parts of the sample, with the SHA-256 of their pixels.
func samples(t *testing.T) map[string]*Images {
	t.Helper()
	train, test, err1 := CIFAR10Sample()
	hundred, err2 := CIFAR100Sample()
	svhn, err3 := SVHNSample()
	must.Do(t, errors.Join(err1, err2, err3))
	return map[string]*Images{
		"8695e5694c0b2fcd7bedb312b6e0fffbce6bcae71937d29cd316bb0c7d3ae2ed": train,
		"c9ac2c21aabb6e7ce9c613736e8cf1974a589dca772490f6689095bdc50f4a42": test,
		"4a53e32bd4ef95e6189177cdc7db5e2a9dba4cd64606a9d7084b1b76cef8b9f5": hundred,
		"241b6aee85df28b7a7ea723ab0aee5e5854bbb4e58d4d8dbdfc78087b941ee5b": svhn,
	}
}

// The pixels are those that were packed, labels are balanced, numbers ascend, and the training images are held out.
func TestSample(t *testing.T) {
	_, held := HoldOut(50000, 5000, 0)
	for sum, m := range samples(t) {
		if got := sha256.Sum256(m.Pixels); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s: SHA-256 of the pixels is %x, want %s", m.Name, got, sum)
		}
		if len(m.Official) != m.N || !slices.IsSorted(m.Official) || len(slices.Compact(slices.Clone(m.Official))) != m.N {
			t.Errorf("%s: %d numbers of %d images, from %d to %d", m.Name, len(m.Official), m.N, m.Official[0], m.Official[m.N-1])
		}
		counts := make(map[int]int)
		for _, label := range m.Labels {
			counts[label]++
		}
		if m.Labels != nil && len(counts) != len(m.Classes) {
			t.Errorf("%s: labels of %d classes, want %d", m.Name, len(counts), len(m.Classes))
		}
		for label, n := range counts {
			if n != m.N/len(m.Classes) {
				t.Errorf("%s: %d images of class %d, want %d", m.Name, n, label, m.N/len(m.Classes))
			}
		}
		if m.Name == "CIFAR-10 train" && slices.ContainsFunc(m.Official, func(i int) bool { return !slices.Contains(held, i) }) {
			t.Error("some training images are not among those that the experiments hold out")
		}
		part := m.Take([]int{3, 1})
		if !slices.Equal(part.Official, []int{m.Official[3], m.Official[1]}) || !slices.Equal(part.Image(1), m.Image(1)) {
			t.Errorf("%s: images 3 and 1 are %v", m.Name, part.Official)
		}
	}
}

// Where the official files are, the sample is a part of them.
func TestSampleIsOfficial(t *testing.T) {
	f := realFiles(t, cifar10.folder)
	train, test := must.Get2(CIFAR10(t.Context(), f))(t)
	official := map[string]*Images{"CIFAR-10 train": train, "CIFAR-10 test": test}
	var err error
	if _, official["CIFAR-100 test"], err = CIFAR100(t.Context(), f); err != nil && !strings.Contains(err.Error(), "could not be downloaded") {
		t.Fatal(err)
	}
	if official["SVHN train"], err = SVHNTrainExcerpt(t.Context(), f); err != nil && !strings.Contains(err.Error(), "could not be downloaded") {
		t.Fatal(err)
	}
	for _, m := range samples(t) {
		whole := official[m.Name]
		if whole == nil {
			t.Logf("%s: the official files are not at hand", m.Name)
			continue
		}
		picked := whole.Take(m.Official)
		if !slices.Equal(picked.Pixels, m.Pixels) || !slices.Equal(picked.Labels, m.Labels) || m.Labels != nil && !slices.Equal(picked.Classes, m.Classes) {
			t.Errorf("%s differs from the official files", m.Name)
		}
	}
}
