package train

import (
	"bytes"
	"math/rand/v2"
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

// The graph must cut out the windows that package datasets draws, as its formula
// has them, for the same seed, epoch and images.
func TestPickEqualsDatasets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	augmentation := datasets.Augmentation{Pad: 4, Flip: true}
	images := &datasets.Images{N: 50, Labels: make([]int, 50), Pixels: make([]byte, 50*datasets.ImageSize)}
	for i := range images.Pixels {
		images.Pixels[i] = byte(rng.Uint32())
	}
	const seed, epoch = 11, 2
	rows := datasets.Order(seed, epoch, images.N)
	var want []byte
	for _, i := range rows {
		top, left, flip := augmentation.Draw(seed, epoch, i)
		for at := range datasets.ImageSize {
			c, y, x := at/1024, at/32%32, at%32
			if flip {
				x = 31 - x
			}
			y, x = y+top-augmentation.Pad, x+left-augmentation.Pad
			pixel := byte(0)
			if 0 <= y && y < 32 && 0 <= x && x < 32 {
				pixel = images.Image(i)[c*1024+y*32+x]
			}
			want = append(want, pixel)
		}
	}

	s := &pixelSource{run: &run{
		Trainer: Trainer{BatchSize: images.N, Augmentation: augmentation, Padding: augmentation.Pad},
		orders:  []*order{newOrder(seed, images.N, datasets.Order)},
	}}
	tables := must.Get(s.next(block{executionShape{rows: images.N, count: 1}, epoch, 0}))(t)
	result := must.Get(model.CallOnce(fixtures.Backend(t), model.NewStore(), func(_ *model.Scope, pixels, table *graph.Node) *graph.Node {
		return pick(pixels, graph.Reshape(table, images.N, pickColumns), augmentation.Pad)
	}, tensors.FromFlatDataAndDimensions(images.Pixels, images.N, 3, 32, 32), tables[0]))(t)
	got := must.Get(tensors.CopyFlatData[uint8](result))(t)
	if !bytes.Equal(got, want) {
		t.Error("the graph's images are not the windows that package datasets draws")
	}
}
