package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// someImages makes n images of pseudo-random pixels.
func someImages(n int) *Images {
	m := newImages("some", []string{"even", "odd"}, n)
	for i := range m.Pixels {
		m.Pixels[i] = byte(scramble(uint64(i)))
	}
	for i := range m.Labels {
		m.Labels[i] = i % 2
	}
	return m
}

func TestTake(t *testing.T) {
	m := someImages(5)
	got := m.Take([]int{4, 0, 4})
	if got.N != 3 || got.Name != "some" || !slices.Equal(got.Labels, []int{0, 0, 0}) || !slices.Equal(got.Classes, m.Classes) {
		t.Errorf("got %d images %q with labels %v", got.N, got.Name, got.Labels)
	}
	for to, from := range []int{4, 0, 4} {
		if !slices.Equal(got.Image(to), m.Image(from)) {
			t.Errorf("image %d is not image %d of the set", to, from)
		}
	}
	got.Pixels[0]++
	if got.Pixels[0] == m.Image(4)[0] {
		t.Error("the images were not copied")
	}
	m.Labels = nil
	if got := m.Take(nil); got.N != 0 || got.Labels != nil {
		t.Errorf("got %+v", got)
	}
	large := &Images{N: 2, Side: 40, Pixels: make([]byte, 2*ImageChannels*40*40)}
	large.Pixels[len(large.Pixels)-1] = 7
	if image := large.Take([]int{1}).Image(0); image[len(image)-1] != 7 {
		t.Error("an image of 40 x 40 pixels was not taken")
	}
}

func TestChannelStatsOfNoImages(t *testing.T) {
	must.Panic(t, func() { FitChannelStats(someImages(3), []int{}) }, "datasets: FitChannelStats: no images")
}

// Mean and standard deviation against sums over all pixels, written out.
func TestFitChannelStats(t *testing.T) {
	m := someImages(4)
	for i := range channel(m.Image(1), 2) {
		channel(m.Image(1), 2)[i] = 51
	}
	for _, rows := range [][]int{nil, {1, 3}, {1}} {
		s := FitChannelStats(m, rows)
		if rows == nil {
			rows = []int{0, 1, 2, 3}
		}
		for c := range ImageChannels {
			var n, sum, squares float64
			for _, i := range rows {
				for _, v := range channel(m.Image(i), c) {
					n++
					sum += float64(v) / 255
					squares += float64(v) / 255 * float64(v) / 255
				}
			}
			mean := sum / n
			std := math.Sqrt(squares/n - mean*mean)
			if len(rows) == 1 && c == 2 {
				std = 1 // constant
			}
			must.Near(t, s.Mean[c], mean, 1e-12, "rows %v, channel %d: the mean", rows, c)
			must.Near(t, s.Std[c], std, 1e-10, "rows %v, channel %d: the deviation", rows, c)
		}
	}
}

func TestHoldOut(t *testing.T) {
	for _, c := range []struct{ n, held int }{{0, 0}, {5, 0}, {5, 5}, {50000, 5000}} {
		train, held := HoldOut(c.n, c.held, 7)
		if len(held) != c.held {
			t.Errorf("%d held out of %d, want %d", len(held), c.n, c.held)
		}
		requirePartition(t, fmt.Sprint(c), Split{Train: train, Test: held}, c.n)
	}
	_, small := HoldOut(100, 10, 3)
	_, large := HoldOut(100, 30, 3)
	if !slices.Equal(small, large[20:]) {
		t.Errorf("%v is not the end of %v", small, large)
	}
	if _, other := HoldOut(100, 10, 4); slices.Equal(small, other) {
		t.Error("the seed has no effect")
	}
	train, held := HoldOut(100, 10, 3)
	again, _ := HoldOut(100, 10, 3)
	if cap(train) != len(train) || !slices.Equal(train, again) || !slices.Equal(held, small) {
		t.Error("not the same again")
	}
}

// What a seed gives must not change, or results recorded with it could not be
// had again.
func TestSeedsAreForEver(t *testing.T) {
	train, held := HoldOut(10, 4, 1)
	if want := []int{4, 1, 8, 0, 2, 7, 6, 5, 9, 3}; !slices.Equal(append(train, held...), want) {
		t.Errorf("HoldOut: %v + %v, want %v", train, held, want)
	}
	if got, want := Order(1, 2, 10), []int{3, 2, 7, 5, 6, 8, 0, 9, 1, 4}; !slices.Equal(got, want) {
		t.Errorf("Order: %v, want %v", got, want)
	}
	var got []int
	for i := range 6 {
		dy, dx, flip := Augmentation{Pad: 4, Flip: true}.Draw(1, 2, i)
		got = append(got, dy, dx, btoi(flip))
	}
	if want := []int{3, 3, 0, 1, 0, 0, 8, 6, 0, 8, 0, 1, 6, 8, 0, 1, 3, 1}; !slices.Equal(got, want) {
		t.Errorf("Draw: %v, want %v", got, want)
	}
}

func TestOrder(t *testing.T) {
	n := 1000
	first := Order(5, 0, n)
	requirePartition(t, "order", Split{Train: first}, n)
	if !slices.Equal(first, Order(5, 0, n)) {
		t.Error("not the same again")
	}
	for _, other := range [][]int{Order(5, 1, n), Order(6, 0, n)} {
		same := 0
		for i := range other {
			same += btoi(other[i] == first[i])
		}
		// The number of agreements of two random permutations has mean and
		// variance 1.
		if same > 8 {
			t.Errorf("%d of %d places agree with those of another epoch or seed", same, n)
		}
	}
}

// The published statistics of the training pixels, and those of other loaders.
func TestChannelStatsOfCIFAR(t *testing.T) {
	for _, c := range []struct {
		folder string
		load   loadCIFAR
		want   ChannelStats
	}{
		{"cifar-10-batches-py", CIFAR10, ChannelStats{[3]float64{0.491400, 0.482158, 0.446531}, [3]float64{0.247032, 0.243485, 0.261588}}},
		{"cifar-100-python", CIFAR100, ChannelStats{[3]float64{0.507076, 0.486549, 0.440918}, [3]float64{0.267334, 0.256438, 0.276150}}},
	} {
		t.Run(c.folder, func(t *testing.T) {
			train, _ := must.Get2(c.load(context.Background(), realFiles(t, c.folder)))(t)
			got := FitChannelStats(train, nil)
			for i := range ImageChannels {
				must.Near(t, got.Mean[i], c.want.Mean[i], 1e-6, "channel %d: the mean", i)
				must.Near(t, got.Std[i], c.want.Std[i], 1e-6, "channel %d: the deviation", i)
			}
		})
	}
}

// Where the released values come from, to the four digits they have.
func TestReleasedChannelStats(t *testing.T) {
	train, _ := must.Get2(CIFAR10(context.Background(), realFiles(t, "cifar-10-batches-py")))(t)
	const n = ImageSide * ImageSide
	released, whole := ReleasedChannelStats(), FitChannelStats(train, nil)
	for c := range ImageChannels {
		var within float64
		for i := range train.N {
			var sum, squares int
			for _, v := range channel(train.Image(i), c) {
				sum += int(v)
				squares += int(v) * int(v)
			}
			within += math.Sqrt(float64(n*squares-sum*sum)/(n*(n-1))) / 255
		}
		must.Near(t, within/float64(train.N), released.Std[c], 5.1e-5, "channel %d: the mean deviation within an image", c)
		must.Near(t, whole.Mean[c], released.Mean[c], 5.1e-5, "channel %d: the mean", c)
	}
}

// Windows are uniform, mirroring is a fair coin, and neither tells of the other
// nor of neighbouring examples, epochs and seeds.
func TestDrawDistribution(t *testing.T) {
	a := Augmentation{Pad: 4, Flip: true}
	const side, n = 9, 81 * 2000
	for _, test := range []struct {
		name string
		draw func(i int) (dy, dx int, flip bool)
	}{
		{"examples", func(i int) (int, int, bool) { return a.Draw(1, 0, i) }},
		{"epochs", func(i int) (int, int, bool) { return a.Draw(1, i, 0) }},
		{"seeds", func(i int) (int, int, bool) { return a.Draw(uint64(i), 0, 0) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var counts [side * side][2]float64
			var agree, flipsAgree float64 // with the one before
			var lastWindow int
			var lastFlip bool
			for i := range n {
				dy, dx, flip := test.draw(i)
				if dy < 0 || dx < 0 || dy >= side || dx >= side {
					t.Fatalf("%s: window (%d, %d)", test.name, dy, dx)
				}
				window := dy*side + dx
				counts[window][btoi(flip)]++
				if i > 0 {
					agree += float64(btoi(window == lastWindow))
					flipsAgree += float64(btoi(flip == lastFlip))
				}
				lastWindow, lastFlip = window, flip
			}
			// Pearson's statistic of all 162 outcomes has mean 161 and variance 322.
			expected := float64(n) / float64(2*len(counts))
			var chi2, flips float64
			for _, c := range counts {
				for _, count := range c {
					chi2 += (count - expected) * (count - expected) / expected
				}
				flips += c[1]
			}
			df := float64(2*len(counts) - 1)
			must.Z(t, (chi2-df)/math.Sqrt(2*df), "uniform outcomes")
			must.Z(t, (flips-n/2)/math.Sqrt(n/4.0), "flips")
			must.Z(t, binomialZ(agree, n-1, 1/float64(len(counts))), "windows of neighbours")
			must.Z(t, binomialZ(flipsAgree, n-1, 0.5), "directions of neighbours")
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func binomialZ(count, n, p float64) float64 { return (count - n*p) / math.Sqrt(n*p*(1-p)) }

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

// The pixels are as packed, labels are balanced, numbers ascend, and the training images are held out.
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
