package predictions

import (
	"math"
	"slices"
)

// Numbers are stored in two or three bytes. What that changes in the metrics is measured in the tests.
//
// A probability is not stored by its distance from 0 alone, since most predictions are so certain that
// the largest probability is 1 in two bytes, and the order of those examples, which AUROC is about, would
// be lost. What is stored is small wherever precision is wanted: of the test set all probabilities but
// each row's largest, which is what the others leave of 1, and of the other sets 1 - max_c p_c.

// The grid of small numbers, in [0, 1]: code 0 is 0, code 1 is 1, and every further code is smaller by
// the same factor, first a fine one (relative error below 1.2e-4), below 2^-16 a coarse one (below 3e-3)
// that reaches beyond the smallest float32, so that only 0 is 0.
const (
	fineOctaves   = 16
	fineSteps     = 3072 // codes of an octave
	coarseSteps   = 122
	coarseOctaves = 134
	lastCode      = 1 + fineOctaves*fineSteps + coarseOctaves*coarseSteps
)

// encodeSmall returns the code nearest to x; what is outside of [0, 1] by rounding is taken as its end.
func encodeSmall(x float64) uint16 {
	if x <= 0 {
		return 0
	}
	octaves := max(0, -math.Log2(x))
	steps := octaves * fineSteps
	if octaves > fineOctaves {
		steps = fineOctaves*fineSteps + (octaves-fineOctaves)*coarseSteps
	}
	return uint16(min(1+math.Round(steps), lastCode))
}

// decodeSmall is the number of a code.
func decodeSmall(code uint16) float64 { return small[code] }

var small = func() []float64 {
	table := make([]float64, 1<<16)
	for code := range table[1:] {
		octaves := float64(code) / fineSteps
		if octaves > fineOctaves {
			octaves = fineOctaves + float64(code-fineOctaves*fineSteps)/coarseSteps
		}
		table[code+1] = math.Exp2(-octaves)
	}
	return table
}()

// kind is how the numbers of a column are stored.
type kind int

const (
	probability kind = iota // of the predicted class: 1 - p on the grid of small numbers
	nats                    // entropy and mutual information: x/8 on the grid
	fraction                // from 0 to 1, on the grid
	energy                  // float32 rounded to 24 bits: relative error below 2^-16
)

// natsScale is above the entropy log C of C <= 256 classes.
const natsScale = 8

// domain is the range of a kind's numbers, with room for rounding in float32.
func (k kind) domain() (low, high float64) {
	const room = 1e-4
	switch k {
	case probability, fraction:
		return 0, 1 + room
	case nats:
		return -room, natsScale
	}
	return -1e38, 1e38
}

// bytes is the size of one stored number.
func (k kind) bytes() int {
	if k == energy {
		return 3
	}
	return 2
}

// append adds the stored form of values: all first bytes, then all second ones, and so on, since the
// first bytes compress well.
func (k kind) append(stored []byte, values []float64) []byte {
	codes := make([]uint32, len(values))
	for i, v := range values {
		switch k {
		case probability:
			codes[i] = uint32(encodeSmall(1 - v))
		case nats:
			codes[i] = uint32(encodeSmall(v / natsScale))
		case fraction:
			codes[i] = uint32(encodeSmall(v))
		case energy:
			codes[i] = (math.Float32bits(float32(v)) + 1<<7) >> 8
		}
	}
	return appendPlanes(stored, codes, k.bytes())
}

// values reads n numbers.
func (k kind) values(stored []byte, n int) []float64 {
	values := make([]float64, n)
	for i, code := range readPlanes(stored, n, k.bytes()) {
		switch k {
		case probability:
			values[i] = 1 - decodeSmall(uint16(code))
		case nats:
			values[i] = natsScale * decodeSmall(uint16(code))
		case fraction:
			values[i] = decodeSmall(uint16(code))
		case energy:
			values[i] = float64(math.Float32frombits(code << 8))
		}
	}
	return values
}

// appendPlanes adds the codes' bytes, the highest plane first.
func appendPlanes(stored []byte, codes []uint32, bytes int) []byte {
	for plane := bytes - 1; plane >= 0; plane-- {
		for _, code := range codes {
			stored = append(stored, byte(code>>(8*plane)))
		}
	}
	return stored
}

// readPlanes is the inverse of appendPlanes.
func readPlanes(stored []byte, n, bytes int) []uint32 {
	codes := make([]uint32, n)
	for plane := range bytes {
		for i, b := range stored[plane*n : (plane+1)*n] {
			codes[i] = codes[i]<<8 | uint32(b)
		}
	}
	return codes
}

// encodeRow returns the class of the largest of a row's probabilities, the first of equals, and the codes
// of the others in order. decodeRow finds the same class.
func encodeRow(probs []float64, codes []uint32) (top int) {
	top = firstLargest(probs)
	for c, p := range probs {
		if c < top {
			codes[c] = uint32(encodeSmall(p))
		} else if c > top {
			codes[c-1] = uint32(encodeSmall(p))
		}
	}
	// Rounding can lift another class over the top one when they are nearly equal. It is lowered until
	// it is not, which takes a step or two.
	row := make([]float64, len(probs))
	for {
		decodeRow(row, top, codes)
		rival := firstLargest(row)
		if rival == top {
			return top
		}
		if rival > top {
			codes[rival-1]++
		} else {
			codes[rival]++
		}
	}
}

// decodeRow sets the row's probabilities: the largest is what the others leave of 1.
func decodeRow(row []float64, top int, codes []uint32) {
	row[top] = 1
	for c := range row {
		if c == top {
			continue
		}
		k := c
		if c > top {
			k--
		}
		row[c] = decodeSmall(uint16(codes[k]))
		row[top] -= row[c]
	}
}

// firstLargest is the place of the largest value, the first of equals.
func firstLargest(values []float64) int {
	return slices.Index(values, slices.Max(values))
}
