package cifar

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
)

// mapRate is the learning rate of Maps.
const mapRate = 0.02

// Maps trains something small on all the images at once, by so many steps of Adam
// at a rate of 0.02, and returns what it shows before and after. build is given
// standardised images, [channels, N, height, width], and returns what is to be
// shown and the loss, a scalar.
func Maps(backend compute.Backend, images *datasets.Images, steps int,
	build func(s *model.Scope, x *graph.Node) (shown, loss *graph.Node)) (before, after []float32, err error) {
	stats := datasets.FitChannelStats(images, nil)
	scale := nets.Standardization{Mean: stats.Mean[:], Std: stats.Std[:]}
	exec, err := model.NewExec(backend, model.NewStore(), func(root *model.Scope, pixels *graph.Node) *graph.Node {
		shown, loss := build(root.In("model"), scale.Images(pixels, dtypes.Float32))
		optimizer.Adam().LearningRate(mapRate).Done().UpdateGraph(root, pixels.Graph(), loss)
		return shown
	})
	if err != nil {
		return nil, nil, fmt.Errorf("cifar: building the graph: %w", err)
	}
	defer exec.Finalize()
	pixels := tensors.FromFlatDataAndDimensions(images.Pixels, images.N, datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide)
	defer func() { err = errors.Join(err, pixels.FinalizeAll()) }()
	for step := range steps + 1 {
		out, err := exec.Call(pixels)
		if err != nil {
			return nil, nil, fmt.Errorf("cifar: step %d: %w", step, err)
		}
		if after, err = tensors.CopyFlatData[float32](out[0]); err != nil {
			return nil, nil, fmt.Errorf("cifar: step %d: %w", step, err)
		}
		if step == 0 {
			before = after
		}
	}
	return before, after, nil
}
