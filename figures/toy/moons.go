package runner

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

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
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/render"
	"densityuncertainty/figures/results"
)

// The problem of two moons, which the paper does not have.
const (
	moonsN, moonsTestN = 500, 2000
	moonsNoise         = 0.1
	moonsClasses       = 2
	moonsRate          = 1e-2
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

// runMoons trains classifiers of two moons one after the other.
func (r *Runner) runMoons(ctx context.Context, batch []experiment.Experiment, progress func(done float64, note string)) (found []results.Result, err error) {
	for i, e := range batch {
		line, err := r.moons(ctx, e, func(done float64, note string) { progress((float64(i)+done)/float64(len(batch)), note) })
		if err != nil {
			return found, fmt.Errorf("%v: %w", e, err)
		}
		found = append(found, line)
	}
	return found, nil
}

// moons trains one method and maps the entropy of its predictions.
func (r *Runner) moons(ctx context.Context, e experiment.Experiment, progress func(done float64, note string)) (results.Result, error) {
	wall, cpu := time.Now(), cpuTime()
	recipe, err := RecipeOf(e)
	if err != nil {
		return results.Result{}, err
	}
	points, labels := datasets.TwoMoons(moonsN, moonsNoise, e.Seed)
	unseen, answers := datasets.TwoMoons(moonsTestN, moonsNoise, ^e.Seed)
	data := train.Images{Pixels: pixelsOf(points), Height: 1, Width: 1, Labels: labels}
	data.Standardization = standardizationOf(data.Pixels)
	var axis []byte
	for v := 0; v <= math.MaxUint8; v += moonsStride {
		axis = append(axis, byte(v))
	}
	asked := slices.Concat(gridOf(axis), data.Pixels, pixelsOf(unseen))
	probabilities, err := r.classifyMoons(ctx, recipe, e, data, asked, progress)
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
	line := results.Result{
		ID: e.ID(), Experiment: e, Backend: r.info.Backend, Device: r.info.Device, Version: r.info.Version, Batched: 1,
		Metrics: map[string]float64{
			"accuracy":     accuracy,
			"entropy_data": stat.Mean(entropy[cells:cells+moonsN], nil),
			"entropy_far":  stat.Mean(farOf(entropy[:cells], axis, points), nil),
		},
		Series: map[string][]float64{
			render.SeriesX: coordinates(axis, moonsLeft), render.SeriesY: coordinates(axis, moonsLow),
			render.SeriesEntropy: make([]float64, cells),
			render.SeriesTrainX:  make([]float64, moonsN), render.SeriesTrainY: make([]float64, moonsN),
			render.SeriesLabel: make([]float64, moonsN),
		},
	}
	for i, h := range entropy[:cells] { // what a picture shows, in few digits
		line.Series[render.SeriesEntropy][i] = math.Round(h*1e4) / 1e4
	}
	for i, label := range labels {
		line.Series[render.SeriesTrainX][i], line.Series[render.SeriesTrainY][i] = points[2*i], points[2*i+1]
		line.Series[render.SeriesLabel][i] = float64(label)
	}
	line.WallSeconds, line.CPUSeconds = time.Since(wall).Seconds(), (cpuTime() - cpu).Seconds()
	line.Finished = time.Now().UTC().Truncate(time.Second)
	return line, nil
}

// classifyMoons trains the method's classifier, for an ensemble all its members, and
// returns the probabilities at the points that are asked for, [N*2].
func (r *Runner) classifyMoons(ctx context.Context, recipe Recipe, e experiment.Experiment, data train.Images, asked []byte, progress func(done float64, note string)) ([]float64, error) {
	members := membersOf(e)
	var all [][]float64
	for m := range members {
		c, err := r.fitMoons(ctx, recipe, e, memberSeed(e, m), data, func(p train.ClassificationProgress) {
			done := float64(p.Step) / float64(p.Steps)
			progress((float64(m)+done)/float64(members), fmt.Sprintf("step %d of %d, loss %.3g", p.Step, p.Steps, p.Losses.Total))
		})
		if err != nil {
			return nil, err
		}
		images := asInputs(data)
		images.Pixels = asked
		classes, err := predict.Classification(ctx, c, images, predict.Sampling{Samples: drawsOf(e), BatchSize: moonsN})
		if err != nil {
			return nil, fmt.Errorf("predicting: %w", err)
		}
		all = append(all, classes.Probabilities)
	}
	probabilities, _, err := baselines.MixClasses(all, moonsClasses)
	return probabilities, err
}

// fitMoons trains one classifier.
func (r *Runner) fitMoons(ctx context.Context, recipe Recipe, e experiment.Experiment, seed uint64, data train.Images, progress func(train.ClassificationProgress)) (*nets.Classifier, error) {
	regression, err := recipe.regression(e) // whose network and groups a classifier has too
	if err != nil {
		return nil, err
	}
	network := regression.Network
	finish := func(*nets.Classifier) error { return nil }
	switch e.Method {
	case experiment.SNGP:
		// Two standardised inputs.
		head := baselines.SNGP{Examples: data.N(), RandomFeatures: randomFeatures, Plain: true,
			LengthScale: math.Sqrt2, FeatureScale: math.Sqrt(float64(randomFeatures) / 2)}
		network = withHead(network, head)
		finish = func(c *nets.Classifier) error { return head.Posterior(c.Store, processHead) }
	case experiment.DUE:
		untrained, err := nets.NewClassifier(r.backend, planar{withHead(network, baselines.Headless{})}, moonsClasses, seed, dtypes.Float32)
		if err != nil {
			return nil, err
		}
		features, width, err := predict.ImageFeatures(ctx, untrained, untrained.Network, asInputs(data), data.N())
		if err != nil {
			return nil, fmt.Errorf("features of the untrained network: %w", err)
		}
		start, err := baselines.StartFrom(features, width, toyInducingPoints, seed)
		if err != nil {
			return nil, err
		}
		head := baselines.DUE{Start: []baselines.Inducing{start}}
		network = withHead(network, head)
		finish = func(c *nets.Classifier) error { return head.Check(c.Store, processHead) }
	}
	c, err := nets.NewClassifier(r.backend, planar{network}, moonsClasses, seed, dtypes.Float32)
	if err != nil {
		return nil, err
	}
	run := train.Classification{
		Epochs: e.Epochs, BatchSize: data.N(), PretrainEpochs: regression.PretrainEpochs,
		Groups: regression.Groups, Schedule: train.Cosine(moonsRate), LogLikelihoodScale: 1,
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
