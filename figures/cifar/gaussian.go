package cifar

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
)

// featuresOf are the features before the last layer of a trained network at some images, [N*width] row-major.
func featuresOf(ctx context.Context, m *nets.Model, images train.Dataset) (features []float64, width int, err error) {
	network, is := m.Network.(nets.ResNet)
	if !is {
		return nil, 0, fmt.Errorf("cifar: features of a network of type %T, which is no nets.ResNet", m.Network)
	}
	network.Layers = nets.Headless{Layers: network.Layers}
	found, err := predict.Sample(ctx, m.With(network), images.Inputs, predict.Options{Samples: 1})
	if err != nil {
		return nil, 0, err
	}
	return found.Outputs[0], found.Width, nil
}

// A gaussian is a mixture of Gaussians with a common covariance S, fitted to features by maximum likelihood: one for each
// class (Lee et al. 2018, "A simple unified framework for detecting out-of-distribution samples"), or a single one.
type gaussian struct {
	means      [][]float64
	covariance mat.Cholesky
}

// ridge is added to the diagonal of the covariance, as a part of its mean: features that are always 0 have no variance.
const ridge = 1e-6

// fitGaussian fits to features, [N*width] row-major, of which each has a label below classes. There must be more of them
// than their width and the classes, or the covariance is singular. A class without features has no Gaussian.
func fitGaussian(features []float64, width int, labels []int, classes int) (*gaussian, error) {
	n := len(labels)
	sums, counts := make([][]float64, classes), make([]float64, classes)
	for i, label := range labels {
		if sums[label] == nil {
			sums[label] = make([]float64, width)
		}
		counts[label]++
		for j, v := range features[i*width : (i+1)*width] {
			sums[label][j] += v
		}
	}
	g := new(gaussian)
	for class, sum := range sums {
		for j := range sum {
			sum[j] /= counts[class]
		}
		if sum != nil {
			g.means = append(g.means, sum)
		}
	}
	centred := mat.NewDense(n, width, nil)
	for i, label := range labels {
		for j, v := range features[i*width : (i+1)*width] {
			centred.Set(i, j, v-sums[label][j])
		}
	}
	covariance := mat.NewSymDense(width, nil)
	covariance.SymOuterK(1/float64(n), centred.T())
	trace := mat.Trace(covariance)
	for j := range width {
		covariance.SetSym(j, j, covariance.At(j, j)+ridge*trace/float64(width))
	}
	if !g.covariance.Factorize(covariance) {
		return nil, fmt.Errorf("cifar: the covariance of the features is not positive definite (trace %v): %w", trace, metrics.ErrValue)
	}
	return g, nil
}

// distances are (f - m)^T S^-1 (f - m) of features, [N*width], from the nearest mean m, [N].
func (g *gaussian) distances(features []float64) ([]float64, error) {
	width := len(g.means[0])
	found := make([]float64, len(features)/width)
	for i := range found {
		f := mat.NewVecDense(width, features[i*width:(i+1)*width])
		found[i] = math.Inf(1)
		for _, mean := range g.means {
			distance := stat.Mahalanobis(f, mat.NewVecDense(width, mean), &g.covariance)
			if math.IsNaN(distance) {
				return nil, fmt.Errorf("cifar: features %d have no distance: they are not finite, or their covariance is nearly singular: %w", i, metrics.ErrValue)
			}
			found[i] = min(found[i], distance*distance)
		}
	}
	return found, nil
}
