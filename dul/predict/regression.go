// Package predict draws from the posterior predictive distribution of trained
// models.
package predict

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/nets"
)

// Draws are M draws of a regression's mean function at N inputs. The posterior
// predictive distribution at input i is the mixture
//
//	p(y | x_i) = 1/M sum_m N(y | Mean[m][i], NoiseStd^2)
//
// (section 2.2 of the paper).
type Draws struct {
	// Mean holds the draws of the mean, [M][N].
	Mean [][]float64
	// NoiseStd is the trained standard deviation of the observation noise.
	NoiseStd float64
}

// Moments are the mean and the standard deviation over the draws of the mean
// function at each input, without observation noise; the deviation is that of
// the population of draws (divided by M).
func (d Draws) Moments() (mean, std []float64) {
	n := len(d.Mean[0])
	mean, std = make([]float64, n), make([]float64, n)
	count := float64(len(d.Mean))
	for _, draw := range d.Mean {
		for i, v := range draw {
			mean[i] += v / count
		}
	}
	for _, draw := range d.Mean {
		for i, v := range draw {
			std[i] += (v - mean[i]) * (v - mean[i]) / count
		}
	}
	for i := range std {
		std[i] = math.Sqrt(std[i])
	}
	return mean, std
}

// Regression draws the mean function of a model without replicas at inputs x,
// row-major with d features, samples times.
func Regression(ctx context.Context, r *nets.Regression, x []float64, d, samples int) (Draws, error) {
	if r.Replicas != 0 {
		return Draws{}, fmt.Errorf("the model has %d replicas; use predict.Replicas", r.Replicas)
	}
	draws, err := draw(ctx, r, [][]float64{x}, d, samples)
	if err != nil {
		return Draws{}, err
	}
	return draws[0], nil
}

// Replicas draws each replica's mean function at its own inputs x[r].
func Replicas(ctx context.Context, r *nets.Regression, x [][]float64, d, samples int) ([]Draws, error) {
	if r.Replicas != len(x) || r.Replicas == 0 {
		return nil, fmt.Errorf("%d sets of inputs for a model with %d replicas", len(x), r.Replicas)
	}
	return draw(ctx, r, x, d, samples)
}

func draw(ctx context.Context, r *nets.Regression, x [][]float64, d, samples int) ([]Draws, error) {
	draws := make([]Draws, len(x))
	build := func(s *model.Scope, x *graph.Node) []*graph.Node {
		mean := r.Mean(s, x)
		return []*graph.Node{mean, r.LogVariance(s, x)}
	}
	err := sample(ctx, r, x, d, samples, build, func(out [][]float64) {
		means, logVariances := out[0], out[1]
		rows := len(means) / len(x)
		for k := range draws {
			n := len(x[k]) / d
			draws[k].Mean = append(draws[k].Mean, means[k*rows:k*rows+n])
			draws[k].NoiseStd = math.Exp(logVariances[k] / 2)
		}
	})
	if err != nil {
		return nil, err
	}
	return draws, nil
}

// sample executes the graph of build, which is given the model's scope and the
// inputs, samples times with fresh noise, and hands each execution's outputs to use.
func sample(ctx context.Context, r *nets.Regression, x [][]float64, d, samples int,
	build func(s *model.Scope, x *graph.Node) []*graph.Node, use func(out [][]float64)) (err error) {
	if samples < 1 {
		return fmt.Errorf("%d samples were asked for; at least 1 is needed", samples)
	}
	inputs, err := inputTensor(r, x, d)
	if err != nil {
		return err
	}
	run, err := newRun(r.Backend, r.Store, r.Host, func(root *model.Scope, x *graph.Node) []*graph.Node {
		return build(r.Scope(root), x)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.close()) }()
	return run.repeat(ctx, inputs, samples, use)
}

// inputTensor packs the replicas' inputs, padding the shorter ones with zeros.
func inputTensor(r *nets.Regression, x [][]float64, d int) (inputs *tensors.Tensor, err error) {
	if d < 1 {
		return nil, fmt.Errorf("inputs have %d features; at least 1 is needed", d)
	}
	rows := 0
	for k, part := range x {
		if len(part) == 0 || len(part)%d != 0 {
			return nil, fmt.Errorf("replica %d has %d input values, which is not a positive multiple of %d features", k, len(part), d)
		}
		rows = max(rows, len(part)/d)
	}
	dims := []int{rows, d}
	if r.Replicas > 0 {
		dims = []int{len(x), rows, d}
	}
	inputs = tensors.FromShape(shapes.Make(r.DType, dims...))
	if r.DType == dtypes.Float64 {
		err = tensors.MutableFlatData(inputs, func(flat []float64) { pack(flat, x, rows*d) })
	} else {
		err = tensors.MutableFlatData(inputs, func(flat []float32) { pack(flat, x, rows*d) })
	}
	return inputs, err
}

func pack[T float32 | float64](flat []T, x [][]float64, stride int) {
	for k, part := range x {
		for i, v := range part {
			flat[k*stride+i] = T(v)
		}
	}
}
