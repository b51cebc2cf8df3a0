package imagepack

import "math/bits"

// A plane with room around it for neighbours that do not exist: two rows above,
// one below, two columns to the left, one to the right.
const (
	stride = side + 3
	origin = 2*stride + 2
	room   = (side + 3) * stride
)

// grid holds values of the pixels of a plane.
type grid [room]int32

// startRow fills what row y sees to its left: the pixel above.
func (g *grid) startRow(y int) {
	at := origin + y*stride
	g[at-1], g[at-2] = g[at-stride], g[at-stride]
}

// endRow fills what later rows and planes see to the right of row y, and below
// the last row: the nearest pixel.
func (g *grid) endRow(y int) {
	at := origin + y*stride
	g[at+side] = g[at+side-1]
	if y == side-1 {
		copy(g[at+stride-2:at+stride+side+1], g[at-2:at+side+1])
	}
}

// fillAbove sets the two rows above the first one.
func (g *grid) fillAbove(value int32) {
	for i := range origin - 2 {
		g[i] = value
	}
}

// Neighbours of a pixel, as offsets into a grid.
var (
	// own are known pixels of the same plane: left, above, above left, above
	// right, two left, two above.
	own = [6]int{-1, -stride, -stride - 1, -stride + 1, -2, -2 * stride}
	// before are pixels of an earlier plane: the same, left, above, above left,
	// right, below, above right.
	before = [7]int{0, -1, -stride, -stride - 1, 1, stride, -stride + 1}
)

// weights predict a pixel of each plane: of its own neighbours, then of those in
// red, then of those in green. Fitted by least squares to photographs; the
// unit is 1/4096.
var weights = [planes][]int32{
	{3466, 2803, -1675, 483, -531, -576},
	{3401, 2988, -2453, 237, -48, -61, 3856, -3181, -2816, 2370, -29, 0, -184},
	{3344, 2935, -2369, 288, -57, -62, 371, -210, -395, 277, -240, -48, 236, 3473, -2907, -2373, 2008, 231, 56, -466},
}

// contexts is the number of levels of expected error that have statistics of
// their own; level returns none above.
const contexts = 17

// model predicts, and holds the statistics.
type model struct {
	values [planes]grid // pixels - 128
	errors [planes]grid // absolute errors of the predictions
	labels [maxLabels]tree
	pixels [planes][contexts]tree
}

func (m *model) reset() {
	for i := range m.labels {
		m.labels[i].reset()
	}
	for p := range planes {
		m.errors[p].fillAbove(16)
		for i := range m.pixels[p] {
			m.pixels[p][i].reset()
		}
	}
}

// codePlane codes plane p of an image, of which the planes before are known.
func (m *model) codePlane(c *coder, p int, pixels []byte) {
	values, errors := &m.values[p], &m.errors[p]
	for y := range side {
		values.startRow(y)
		errors.startRow(y)
		for x := range side {
			at := origin + y*stride + x
			guess := m.predict(p, at)
			// The difference is taken modulo 256, with the likely ones in the middle.
			difference := c.symbol(&m.pixels[p][m.context(p, at)], pixels[y*side+x]-guess+128) - 128
			pixels[y*side+x] = guess + difference
			values[at] = int32(pixels[y*side+x]) - 128
			errors[at] = max(values[at]+128-int32(guess), int32(guess)-values[at]-128)
		}
		values.endRow(y)
		errors.endRow(y)
	}
}

// predict returns the likely value of a pixel.
func (m *model) predict(p, at int) byte {
	w := weights[p]
	sum := int32(128<<12 + 1<<11)
	g := &m.values[p]
	for i, offset := range own {
		sum += w[i] * g[at+offset]
	}
	w = w[len(own):]
	for q := range p {
		g := &m.values[q]
		for i, offset := range before {
			sum += w[i] * g[at+offset]
		}
		w = w[len(before):]
	}
	return byte(min(max(sum>>12, 0), 255))
}

// context returns the level of the error to expect, from those nearby.
func (m *model) context(p, at int) int {
	e := &m.errors[p]
	sum := 4*(e[at-1]+e[at-stride]) + 2*e[at-stride-1] + 3*e[at-stride+1] + e[at-2] + e[at-2*stride]
	switch p {
	case 0:
		sum *= 2
	case 1:
		red := &m.errors[0]
		sum += 9*red[at] + 3*red[at+1] + 3*red[at+stride]
	case 2:
		red, green := &m.errors[0], &m.errors[1]
		sum += 3*red[at] + 8*green[at] + 2*green[at+1] + 2*green[at+stride]
	}
	return level(uint32(sum))
}

// level returns the logarithm of an error in steps of half an octave or so, from
// a sum of errors with weights of 30 in all, at most 30 * 255.
func level(sum uint32) int {
	const first = 5 // sums of fewer than 32 are one level
	log := bits.Len32(sum)
	if log <= first {
		return 0
	}
	second := int(sum >> (log - 2) & 1) // the bit below the leading one
	return 1 + 2*(log-first-1) + second
}

// tree holds the probabilities of a symbol's bits, each given those above it.
type tree [256]probability

func (t *tree) reset() {
	for i := range t {
		t[i] = even
	}
}
