package train

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/environment/must"
)

// What the graph makes of a table of picks must be, byte for byte, what
// Augmentation promises, pixel by pixel.
func TestPick(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, channels, height, width, batch = 7, 3, 6, 5, 40
	pixels := make([]byte, n*channels*height*width)
	for i := range pixels {
		pixels[i] = byte(rng.Uint32())
	}
	for _, padding := range []int{0, 2} {
		var table []int32
		var want []byte
		for range batch {
			image, top, left, flip := rng.IntN(n), rng.IntN(2*padding+1), rng.IntN(2*padding+1), rng.IntN(2)
			row := make([]int32, pickColumns)
			row[pickImage], row[pickTop], row[pickLeft], row[pickFlip] = int32(image), int32(top), int32(left), int32(flip)
			table = append(table, row...)
			for c := range channels {
				for y := range height {
					for x := range width {
						if flip == 1 {
							x = width - 1 - x
						}
						fromY, fromX, pixel := y+top-padding, x+left-padding, byte(0)
						if fromY >= 0 && fromY < height && fromX >= 0 && fromX < width {
							pixel = pixels[((image*channels+c)*height+fromY)*width+fromX]
						}
						want = append(want, pixel)
					}
				}
			}
		}
		result := must.Get(model.CallOnce(fixtures.Backend(t), model.NewStore(), func(_ *model.Scope, pixels, table *graph.Node) *graph.Node {
			return pick(pixels, table, padding)
		}, tensors.FromFlatDataAndDimensions(pixels, n, channels, height, width), tensors.FromFlatDataAndDimensions(table, batch, pickColumns)))(t)
		got := must.Get(tensors.CopyFlatData[uint8](result))(t)
		if !bytes.Equal(got, want) {
			t.Errorf("padding %d: %v, want %v", padding, got[:width], want[:width])
		}
	}
}

// byEpoch is the order of datasets.Order.
type byEpoch struct{}

func (byEpoch) Of(seed uint64, epoch, n int) []int { return datasets.Order(seed, epoch, n) }

// The usual order is that of its seed.
func TestOrderOfASeed(t *testing.T) {
	of := func(seed uint64) []int { return slices.Clone(must.Get(newOrder(seed, 50, nil).of(0))(t)) }
	if !slices.Equal(of(1), of(1)) || slices.Equal(of(1), of(2)) {
		t.Error("orders of the seeds 1, 1 and 2")
	}
}

// A table of picks has the images in their order, with the windows that the augmentation draws.
func TestPicksOfAnEpoch(t *testing.T) {
	const seed, epoch, n = 11, 2, 50
	augmentation := datasets.Augmentation{Pad: 4, Flip: true}
	s := &pixelSource{run: &run{
		Trainer: Trainer{Settings: Settings{BatchSize: n, Augmentation: augmentation, Padding: augmentation.Pad}},
		orders:  []*order{newOrder(seed, n, byEpoch{})},
	}}
	tables := must.Get(s.next(batch{n, epoch, 0}))(t)
	got := must.Get(tensors.CopyFlatData[int32](tables[0]))(t)
	for k, i := range datasets.Order(seed, epoch, n) {
		top, left, flip := augmentation.Draw(seed, epoch, i)
		row := got[k*pickColumns : (k+1)*pickColumns]
		if int(row[pickImage]) != i || int(row[pickTop]) != top || int(row[pickLeft]) != left || (row[pickFlip] == 1) != flip {
			t.Errorf("pick %d is %v, want image %d at (%d, %d), mirrored: %t", k, row, i, top, left, flip)
		}
	}
}
