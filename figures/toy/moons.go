package toy

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// The problem of two moons, which the paper does not have.
const (
	moonsN, moonsTestN = 500, 2000
	moonsNoise         = 0.1
	moonsClasses       = 2
	// A point is an image of one pixel, whose two channels are its coordinates in
	// the square of this side with this corner.
	moonsLeft, moonsLow, moonsSide = -2.5, -2.75, 6.0
	// The map has a point at every so many of the 256 values of a coordinate.
	moonsStride = 5
	// Points at least this far from all training points count as far away.
	moonsFar = 1.0
)

// planar is a network of points as a network of images of one pixel.
type planar struct{ nets.Network }

// Apply maps [coordinates, batch, 1, 1] to [batch, classes].
func (n planar) Apply(s *model.Scope, x *graph.Node, classes int) *graph.Node {
	points := graph.Transpose(graph.Reshape(x, x.Shape().Dim(0), x.Shape().Dim(1)), 0, 1)
	return n.Network.Apply(s, points, classes)
}

// moons trains classifiers of two moons one after the other.
func (r Runner) moons(ctx context.Context, p Protocol, m methods.Method, batch []results.Experiment, progress func(done float64, note string)) (found []results.Result, err error) {
	for i, e := range batch {
		line, err := r.oneMoons(ctx, p, m, e, func(done float64, note string) { progress((float64(i)+done)/float64(len(batch)), note) })
		if err != nil {
			return found, fmt.Errorf("%v: %w", e, err)
		}
		found = append(found, line)
	}
	return found, nil
}

// oneMoons trains one classifier and maps the entropy of its predictions.
func (r Runner) oneMoons(ctx context.Context, p Protocol, m methods.Method, e results.Experiment, progress func(done float64, note string)) (results.Result, error) {
	watch := jobs.StartStopwatch()
	points, labels := datasets.TwoMoons(moonsN, moonsNoise, e.Seed)
	unseen, answers := datasets.TwoMoons(moonsTestN, moonsNoise, ^e.Seed)
	data := train.Images{Pixels: pixelsOf(points), Height: 1, Width: 1, Labels: labels}
	data.Standardization = standardizationOf(data.Pixels)
	var axis []byte
	for v := 0; v <= math.MaxUint8; v += moonsStride {
		axis = append(axis, byte(v))
	}
	asked := slices.Concat(gridOf(axis), data.Pixels, pixelsOf(unseen))
	probabilities, err := r.classifyMoons(ctx, p, m, e, data, asked, progress)
	if err != nil {
		return results.Result{}, err
	}
	entropy, err := metrics.Entropy(probabilities, moonsClasses)
	if err != nil {
		return results.Result{}, err
	}
	cells := len(axis) * len(axis)
	accuracy, err := metrics.Accuracy(probabilities[(cells+moonsN)*moonsClasses:], moonsClasses, answers)
	if err != nil {
		return results.Result{}, err
	}
	line := r.Line(e, 1)
	line.Metrics = map[string]float64{
		results.MetricAccuracy:    accuracy,
		results.MetricEntropyData: stat.Mean(entropy[cells:cells+moonsN], nil),
		results.MetricEntropyFar:  stat.Mean(farOf(entropy[:cells], axis, points), nil),
	}
	line.Series = map[string][]float64{
		results.SeriesX: coordinates(axis, moonsLeft), results.SeriesY: coordinates(axis, moonsLow),
		results.SeriesEntropy: make([]float64, cells),
		results.SeriesTrainX:  make([]float64, moonsN), results.SeriesTrainY: make([]float64, moonsN),
		results.SeriesLabel: make([]float64, moonsN),
	}
	for i, h := range entropy[:cells] { // what a picture shows, in few digits
		line.Series[results.SeriesEntropy][i] = math.Round(h*1e4) / 1e4
	}
	for i, label := range labels {
		line.Series[results.SeriesTrainX][i], line.Series[results.SeriesTrainY][i] = points[2*i], points[2*i+1]
		line.Series[results.SeriesLabel][i] = float64(label)
	}
	watch.Stop(&line)
	return line, nil
}

// classifyMoons trains the method's classifier, for an ensemble all its members, and
// returns the probabilities at the points that are asked for, [N*2].
func (r Runner) classifyMoons(ctx context.Context, p Protocol, m methods.Method, e results.Experiment, data train.Images, asked []byte, progress func(done float64, note string)) ([]float64, error) {
	members := m.Networks()
	var all [][]float64
	for member := range members {
		c, err := r.fitMoons(ctx, p, m, methods.Seed(e, member), data, func(at train.ClassificationProgress) {
			done := float64(at.Step) / float64(at.Steps)
			progress((float64(member)+done)/float64(members), fmt.Sprintf("step %d of %d, loss %.3g", at.Step, at.Steps, at.Losses.Total))
		})
		if err != nil {
			return nil, err
		}
		images := asInputs(data)
		images.Pixels = asked
		classes, err := predict.Classification(ctx, c, images, predict.Sampling{Samples: m.SamplesOf(e.Samples), BatchSize: moonsN})
		if err != nil {
			return nil, fmt.Errorf("predicting: %w", err)
		}
		all = append(all, classes.Probabilities)
	}
	probabilities, _, err := baselines.MixClasses(all, moonsClasses)
	return probabilities, err
}

// fitMoons trains one classifier.
func (r Runner) fitMoons(ctx context.Context, p Protocol, m methods.Method, seed uint64, data train.Images, progress func(train.ClassificationProgress)) (*nets.Classifier, error) {
	network := m.Network(p.Options, p.Width, p.HiddenLayers)
	finish := func(*nets.Classifier) error { return nil }
	if m.Process != nil {
		task := methods.Task{Kind: methods.Points, Examples: data.N(), Inputs: 2, Classes: moonsClasses, Seeds: []uint64{seed}}
		task.Features = func() ([][]float64, int, error) {
			untrained, err := nets.NewClassifier(r.Backend, planar{methods.WithHead(network, baselines.Headless{})}, moonsClasses, seed, dtypes.Float32)
			if err != nil {
				return nil, 0, err
			}
			features, width, err := predict.ImageFeatures(ctx, untrained, untrained.Network, asInputs(data), data.N())
			if err != nil {
				return nil, 0, fmt.Errorf("features of the untrained network: %w", err)
			}
			return [][]float64{features}, width, nil
		}
		head, err := m.Process.Head(task)
		if err != nil {
			return nil, err
		}
		network = methods.WithHead(network, head.Layers)
		finish = func(c *nets.Classifier) error { return head.Finish(c.Store) }
	}
	c, err := nets.NewClassifier(r.Backend, planar{network}, moonsClasses, seed, dtypes.Float32)
	if err != nil {
		return nil, err
	}
	like := p.training(m, data.N()) // a classifier is trained as a regression is
	run := train.Classification{
		Epochs: like.Epochs, BatchSize: like.BatchSize, PretrainEpochs: like.PretrainEpochs,
		Groups: like.Groups, Schedule: like.Schedule, LogLikelihoodScale: like.LogLikelihoodScale,
		Seed: seed, Order: datasets.Order, Progress: progress,
	}
	if err := run.Fit(ctx, c, data); err != nil {
		return nil, err
	}
	return c, finish(c)
}

func asInputs(data train.Images) predict.Images {
	return predict.Images{Pixels: data.Pixels, Height: data.Height, Width: data.Width, Standardization: data.Standardization}
}

// pixelsOf rounds points, [N*2], to bytes.
func pixelsOf(points []float64) []byte {
	pixels := make([]byte, len(points))
	for i, v := range points {
		low := moonsLeft
		if i%2 == 1 {
			low = moonsLow
		}
		pixels[i] = byte(math.Round(math.MaxUint8 * min(max((v-low)/moonsSide, 0), 1)))
	}
	return pixels
}

// coordinates are those of bytes, along the axis that begins at low.
func coordinates(pixels []byte, low float64) []float64 {
	values := make([]float64, len(pixels))
	for i, v := range pixels {
		values[i] = low + moonsSide*float64(v)/math.MaxUint8
	}
	return values
}

// gridOf are all points of the map, row by row from below.
func gridOf(axis []byte) []byte {
	var grid []byte
	for _, y := range axis {
		for _, x := range axis {
			grid = append(grid, x, y)
		}
	}
	return grid
}

// standardizationOf is that of points as pixels.
func standardizationOf(pixels []byte) nets.Standardization {
	var s nets.Standardization
	for c := range 2 {
		var values []float64
		for i := c; i < len(pixels); i += 2 {
			values = append(values, float64(pixels[i])/math.MaxUint8)
		}
		mean, std := stat.PopMeanStdDev(values, nil)
		s.Mean, s.Std = append(s.Mean, mean), append(s.Std, std)
	}
	return s
}

// farOf are the values of the map at points far from all of the given ones.
func farOf(values []float64, axis []byte, points []float64) []float64 {
	xs, ys := coordinates(axis, moonsLeft), coordinates(axis, moonsLow)
	var far []float64
	for i, v := range values {
		nearest := math.Inf(1)
		for k := 0; k < len(points); k += 2 {
			nearest = min(nearest, math.Hypot(xs[i%len(xs)]-points[k], ys[i/len(xs)]-points[k+1]))
		}
		if nearest >= moonsFar {
			far = append(far, v)
		}
	}
	return far
}
