package nets_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/must"
)

// Bytes become standardised values with the channel first.
func TestImages(t *testing.T) {
	// Two images of two channels of 1 x 2 pixels.
	pixels := tensors.FromFlatDataAndDimensions([]uint8{0, 255, 51, 102, 255, 0, 204, 153}, 2, 2, 1, 2)
	p := nets.Standardization{Mean: []float64{0.5, 0.2}, Std: []float64{0.25, 0.1}}
	want := fixtures.Array{Dims: []int{2, 2, 1, 2}, Values: []float64{-2, 2, 2, -2, 0, 2, 6, 4}}
	for dtype, tolerance := range map[dtypes.DType]float64{dtypes.Float64: 1e-15, dtypes.Float32: 1e-6} {
		out := must.Get(graph.CallOnce(fixtures.Backend(t), func(x *graph.Node) *graph.Node { return p.Images(x, dtype) }, pixels))(t)
		if out.DType() != dtype {
			t.Errorf("the images have type %s, want %s", out.DType(), dtype)
		}
		fixtures.Compare(t, "images", fixtures.FromTensor(t, out), want, tolerance)
	}
}

// Floats without the shape of one input are an error, and so are shapes of which no input is.
func TestBadFloats(t *testing.T) {
	for want, f := range map[string]nets.Floats{
		"6 input values without the Shape of one input; give nets.Rows(values, features)": {Values: make([]float64, 6)},
		"6 input values are not a positive number of inputs of shape [-2 -3]":             {Values: make([]float64, 6), Shape: []int{-2, -3}},
		"6 input values are not a positive number of inputs of shape [2 0]":               {Values: make([]float64, 6), Shape: []int{2, 0}},
		"6 input values are not a positive number of inputs of shape [4]":                 {Values: make([]float64, 6), Shape: []int{4}},
	} {
		must.Err(t, nets.CheckInputs(f), want)
	}
	for _, shape := range [][]int{{1}, {3}, {2, 3}} {
		if err := nets.CheckInputs(nets.Floats{Values: make([]float64, 6), Shape: shape}); err != nil {
			t.Errorf("shape %v: %v", shape, err)
		}
	}
}

// A single gray pixel is an image; what has no channel, row or column is none.
func TestPixelsCheck(t *testing.T) {
	one := nets.Pixels{Bytes: []byte{7}, Height: 1, Width: 1, Standardization: nets.Standardization{Mean: []float64{0.5}, Std: []float64{0.25}}}
	if err := one.Check(); err != nil || one.Len() != 1 {
		t.Errorf("%d images, error %v", one.Len(), err)
	}
	for name, change := range map[string]func(p *nets.Pixels){
		"0 x 1 pixels":     func(p *nets.Pixels) { p.Height = 0 },
		"1 x 0 pixels":     func(p *nets.Pixels) { p.Width = 0 },
		"0 channel means":  func(p *nets.Pixels) { p.Standardization = nets.Standardization{} },
		"0 bytes":          func(p *nets.Pixels) { p.Bytes = nil },
		"of 2 bytes each":  func(p *nets.Pixels) { p.Width, p.Bytes = 2, []byte{1, 2, 3} },
		"1 means and 0":    func(p *nets.Pixels) { p.Standardization.Std = nil },
		"deviation 0;":     func(p *nets.Pixels) { p.Standardization.Std = []float64{0} },
		"deviation +Inf;":  func(p *nets.Pixels) { p.Standardization.Std = []float64{math.Inf(1)} },
		"channel 0 is NaN": func(p *nets.Pixels) { p.Standardization.Mean = []float64{math.NaN()} },
	} {
		broken := one
		change(&broken)
		must.Err(t, broken.Check(), name)
	}
}
