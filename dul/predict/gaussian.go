package predict

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/nets"
)

// Marginals are the posterior of a regression's mean function at N inputs, each
// by itself, where it is Gaussian: the posterior predictive distribution is
// N(Mean_i, Std_i^2 + NoiseStd^2).
type Marginals struct {
	// Mean and Std are those of the function, without observation noise, [N].
	Mean, Std []float64
	// NoiseStd is the trained standard deviation of the observation noise.
	NoiseStd float64
}

// Gaussian returns the marginals of a model whose network has Moments, such as a
// nets.ResidualMLP with a Gaussian process as its head, at inputs x, row-major
// with d features: one set for each replica, or a single one without replicas.
func Gaussian(ctx context.Context, r *nets.Regression, x [][]float64, d int) ([]Marginals, error) {
	network, is := r.Network.(interface {
		Moments(s *model.Scope, x *graph.Node, outputs int) (mean, variance *graph.Node)
	})
	if !is {
		return nil, fmt.Errorf("a network of type %T has no moments; draw from it by predict.Regression", r.Network)
	}
	if len(x) != max(r.Replicas, 1) {
		return nil, fmt.Errorf("%d sets of inputs for a model with %d replicas", len(x), r.Replicas)
	}
	all := make([]Marginals, len(x))
	err := sample(ctx, r, x, d, 1, func(s *model.Scope, x *graph.Node) []*graph.Node {
		mean, variance := network.Moments(s.In("network"), x, 1)
		return []*graph.Node{mean, variance, r.LogVariance(s, x)}
	}, func(out [][]float64) {
		rows := len(out[0]) / len(x)
		for k := range all {
			n := len(x[k]) / d
			all[k].Mean = out[0][k*rows : k*rows+n]
			all[k].Std = make([]float64, n)
			for i := range n {
				all[k].Std[i] = math.Sqrt(out[1][k*rows+i])
			}
			all[k].NoiseStd = math.Exp(out[2][k] / 2)
		}
	})
	return all, err
}

// Features are what another network, such as one without a head, makes of inputs
// with a regression's parameters: x are row-major with d features, one set for
// each replica, or a single one; the result likewise, with width columns.
func Features(ctx context.Context, r *nets.Regression, network nets.Network, x [][]float64, d int) (features [][]float64, width int, err error) {
	if len(x) != max(r.Replicas, 1) {
		return nil, 0, fmt.Errorf("%d sets of inputs for a model with %d replicas", len(x), r.Replicas)
	}
	features = make([][]float64, len(x))
	err = sample(ctx, r, x, d, 1, func(s *model.Scope, x *graph.Node) []*graph.Node {
		y := network.Apply(s.In("network"), x, 1)
		width = y.Shape().Dim(-1)
		return []*graph.Node{y}
	}, func(out [][]float64) {
		stride := len(out[0]) / len(x)
		for k := range features {
			features[k] = out[0][k*stride : k*stride+len(x[k])/d*width]
		}
	})
	return features, width, err
}

// ImageFeatures are what another network, such as one without a head, makes of
// images with a classifier's parameters, [N*width], in batches of at most
// batchSize. Batch normalisation uses the statistics of the batch, as in
// training, so that an untrained network can be asked too; the running
// statistics move.
func ImageFeatures(ctx context.Context, c *nets.Classifier, network nets.ImageNetwork, images Images, batchSize int) (features []float64, width int, err error) {
	if err := images.check(); err != nil {
		return nil, 0, err
	}
	if batchSize < 1 {
		return nil, 0, fmt.Errorf("batches of %d images; at least 1 is needed", batchSize)
	}
	run, err := newRun(c.Backend, c.Store, c.Host, func(root *model.Scope, pixels *graph.Node) []*graph.Node {
		root.Store().SetTraining(pixels.Graph(), true)
		x := images.Standardization.Images(pixels, c.DType)
		y := network.Apply(c.Scope(root).In("network"), x, c.Classes)
		width = y.Shape().Dim(-1)
		return []*graph.Node{y}
	})
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, run.close()) }()
	size := images.size()
	for first := 0; first < len(images.Pixels); first += batchSize * size {
		part := images.Pixels[first:min(first+batchSize*size, len(images.Pixels))]
		inputs := tensors.FromFlatDataAndDimensions(part, len(part)/size, images.channels(), images.Height, images.Width)
		if err := run.repeat(ctx, inputs, 1, func(out [][]float64) { features = append(features, out[0]...) }); err != nil {
			return nil, 0, fmt.Errorf("features of image %d and those after it: %w", first/size, err)
		}
	}
	return features, width, nil
}
