package datasets

import (
	"math"
	"testing"
)

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
			for _, c := range []struct {
				statistic string
				z         float64
			}{
				{"uniform outcomes", (chi2 - df) / math.Sqrt(2*df)},
				{"flips", (flips - n/2) / math.Sqrt(n/4.0)},
				{"windows of neighbours", binomialZ(agree, n-1, 1/float64(len(counts)))},
				{"directions of neighbours", binomialZ(flipsAgree, n-1, 0.5)},
			} {
				t.Run(c.statistic, func(t *testing.T) {
					if math.Abs(c.z) > 4 {
						t.Errorf("%s: %s: z = %.1f", test.name, c.statistic, c.z)
					}
				})
			}
		})
	}
}

func binomialZ(count, n, p float64) float64 { return (count - n*p) / math.Sqrt(n*p*(1-p)) }

// Seed and epoch must not be interchangeable, nor epoch and example.
func TestDrawKeysAreDistinct(t *testing.T) {
	a := Augmentation{Pad: 1000}
	seen := map[[2]int]bool{}
	for seed := range 10 {
		for epoch := range 10 {
			for index := range 10 {
				dy, dx, _ := a.Draw(uint64(seed), epoch, index)
				seen[[2]int{dy, dx}] = true
			}
		}
	}
	// 1000 draws out of 4 million: 0.12 coincidences are expected.
	if len(seen) < 997 {
		t.Errorf("%d different windows of 1000", len(seen))
	}
}

func TestFlipLeavesWindows(t *testing.T) {
	for i := range 100 {
		dy, dx, flip := Augmentation{Pad: 4}.Draw(1, 2, i)
		dy2, dx2, _ := Augmentation{Pad: 4, Flip: true}.Draw(1, 2, i)
		if flip || dy != dy2 || dx != dx2 {
			t.Fatalf("example %d: (%d, %d) and flip %v, with Flip (%d, %d)", i, dy, dx, flip, dy2, dx2)
		}
	}
}
