package cifar

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/report"
)

// An Interval is a number with the bounds between which it would lie, 95 times in
// a hundred, for other test images of the same kind. It does not hold the spread
// over training runs.
type Interval struct{ Value, Low, High float64 }

// String prints "0.893 [0.880, 0.906]".
func (i Interval) String() string { return fmt.Sprintf("%.3f [%.3f, %.3f]", i.Value, i.Low, i.High) }

const (
	replicates    = 1000
	level         = 0.95
	bootstrapSeed = 1
)

// Detect says how well a score, larger for images out of distribution, tells images out of
// distribution from those inside: metrics.AUROC and metrics.AUPRC, the images out
// of distribution being the positive ones, with intervals by
// metrics.Bootstrap.
func Detect(inside, outside []float64) (auroc, auprc Interval, err error) {
	positive := slices.Concat(make([]bool, len(inside)), slices.Repeat([]bool{true}, len(outside)))
	ranks, err := metrics.NewRanks(slices.Concat(inside, outside), positive)
	if err != nil {
		return auroc, auprc, fmt.Errorf("cifar: %w", err)
	}
	of := func(number func(metrics.Sweep) float64) Interval {
		at := func(indices []int) (float64, error) {
			s, err := ranks.Sweep(indices)
			if err != nil {
				return 0, err
			}
			return number(s), nil
		}
		var i Interval
		if err == nil {
			i.Value, err = at(nil)
		}
		if err == nil {
			i.Low, i.High, err = metrics.Bootstrap([]int{len(inside), len(outside)}, replicates, bootstrapSeed, level, at)
		}
		return i
	}
	auroc, auprc = of(metrics.Sweep.AUROC), of(metrics.Sweep.AUPRC)
	if err != nil {
		return auroc, auprc, fmt.Errorf("cifar: %w", err)
	}
	return auroc, auprc, nil
}

// DetectByLayer is a table of the AUROC of Detect for the paper's statistic
// (metrics.EnergyOOD), a row for each layer and a column for each set of images
// out of distribution; the means are those of the held-out images at the layer.
// The largest of each column is bold. All predictions are of one model with energies.
func DetectByLayer(heldOut, inside Predictions, outside ...Predictions) (report.Table, error) {
	t := report.Table{
		Name:    "ood-layers",
		Caption: fmt.Sprintf("AUROC of the energy statistic at each layer, against %s, with 95 %% intervals over images.", inside.Images.Name),
		Columns: []string{"Input of the layer"},
	}
	for _, layer := range heldOut.Energies {
		t.Rows = append(t.Rows, report.Row{Name: layer.Layer})
	}
	if len(heldOut.Energies) == 0 {
		return report.Table{}, errors.New("cifar: detection by layer: the predictions have no energies; they must be of density layers")
	}
	for _, out := range outside {
		best, largest := 0, 0.0
		for l, layer := range heldOut.Energies {
			auroc, err := detectAt(l, heldOut, inside, out)
			if err != nil {
				return report.Table{}, fmt.Errorf("cifar: layer %s, %s: %w", layer.Layer, out.Images.Name, err)
			}
			if auroc.Value > largest {
				best, largest = l, auroc.Value
			}
			t.Rows[l].Cells = append(t.Rows[l].Cells, report.TextCell(auroc.String()))
		}
		t.Rows[best].Cells[len(t.Columns)-1][0].Bold = true
		t.Columns = append(t.Columns, out.Images.Name)
	}
	return t, nil
}

// detectAt is the AUROC at layer l.
func detectAt(l int, heldOut, inside, outside Predictions) (Interval, error) {
	if l >= len(inside.Energies) || l >= len(outside.Energies) {
		return Interval{}, fmt.Errorf("energies of %d, %d and %d layers; the predictions must be of one model",
			len(heldOut.Energies), len(inside.Energies), len(outside.Energies))
	}
	reference := heldOut.Energies[l].Mean
	in, err := metrics.EnergyOOD(inside.Energies[l].Mean, reference)
	if err != nil {
		return Interval{}, err
	}
	out, err := metrics.EnergyOOD(outside.Energies[l].Mean, reference)
	if err != nil {
		return Interval{}, err
	}
	auroc, _, err := Detect(in, out)
	return auroc, err
}

// withoutHead is a family whose Dense returns its input: the outputs of a network of it are the features before the
// last layer.
type withoutHead struct{ nets.ConvLayers }

// Dense implements nets.Layers.
func (withoutHead) Dense(_ *model.Scope, x *graph.Node, _ int) *graph.Node { return x }

// Features are those before the last layer of the classifier, of a sample of its first member, [N*width] row-major.
func (c *Classifier) Features(ctx context.Context, m *datasets.Images) (features []float64, width int, err error) {
	member := c.members[0]
	network, is := member.Network.(nets.ResNet)
	if !is {
		return nil, 0, fmt.Errorf("cifar: features of a network of type %T, which is no nets.ResNet", member.Network)
	}
	network.Layers = withoutHead{network.Layers}
	batch := min(deviceBatch, m.N)
	if member.Host != nil {
		batch = min(hostBatch, m.N)
	}
	found, err := predict.Sample(ctx, member.With(network), c.inputs(m), predict.Options{Samples: 1, BatchSize: batch})
	if err != nil {
		return nil, 0, fmt.Errorf("cifar: features of %s: %w", m.Name, err)
	}
	return found.Outputs[0], found.Width, nil
}

// A featureGaussian is a mixture of Gaussians with a common covariance S, fitted to features by maximum likelihood:
// one for each class (Lee et al. 2018, "A simple unified framework for detecting out-of-distribution samples"), or a
// single one.
type featureGaussian struct {
	means      [][]float64
	covariance mat.Cholesky
}

// ridge is added to the diagonal of the covariance, as a part of its mean: features that are always 0 have no
// variance.
const ridge = 1e-6

// fitGaussian fits to features, [N*width] row-major, of which each has a label below classes. There must be more of
// them than their width and the classes, or the covariance is singular; a class without features has no Gaussian.
func fitGaussian(features []float64, width int, labels []int, classes int) (*featureGaussian, error) {
	n := len(labels)
	if n <= width+classes || len(features) != n*width {
		return nil, fmt.Errorf("cifar: fitting Gaussians of %d classes in %d dimensions to %d numbers with %d labels; more than %d features are needed",
			classes, width, len(features), n, width+classes)
	}
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
	g := new(featureGaussian)
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
		return nil, fmt.Errorf("cifar: the covariance of the features is not positive definite (trace %v)", trace)
	}
	return g, nil
}

// distances are (f - m)^T S^-1 (f - m) of features, [N*width], from the nearest mean m, [N].
func (g *featureGaussian) distances(features []float64) ([]float64, error) {
	width := len(g.means[0])
	found := make([]float64, len(features)/width)
	for i := range found {
		f := mat.NewVecDense(width, features[i*width:(i+1)*width])
		found[i] = math.Inf(1)
		for _, mean := range g.means {
			difference, solved := mat.NewVecDense(width, nil), mat.NewVecDense(width, nil)
			difference.SubVec(f, mat.NewVecDense(width, mean))
			if err := g.covariance.SolveVecTo(solved, difference); err != nil {
				return nil, fmt.Errorf("cifar: distance of feature %d: %w", i, err)
			}
			found[i] = min(found[i], mat.Dot(difference, solved))
		}
	}
	return found, nil
}

// afterwards are the Gaussians that are fitted to the features of a trained network.
type afterwards struct{ one, class *featureGaussian }

// fitAfterwards fits to the features of the training images, without augmentation; nil where there are too few.
func (x *experimentRun) fitAfterwards(ctx context.Context) (*afterwards, error) {
	images, c := x.data.train, x.classifier
	if !c.Method.FitsGaussian {
		return nil, nil
	}
	features, width, err := c.Features(ctx, images)
	if err != nil || images.N <= width+len(c.Classes) {
		return nil, err
	}
	if i := slices.IndexFunc(features, notFinite); i >= 0 {
		return nil, fmt.Errorf("feature %d of training image %d is %v: %w", i%width, i/width, features[i], train.ErrDiverged)
	}
	fitted := new(afterwards)
	if fitted.one, err = fitGaussian(features, width, make([]int, images.N), 1); err != nil {
		return nil, err
	}
	if fitted.class, err = fitGaussian(features, width, images.Labels, len(c.Classes)); err != nil {
		return nil, err
	}
	return fitted, nil
}

// distances are those of images; none without Gaussians.
func (a *afterwards) distances(ctx context.Context, c *Classifier, m *datasets.Images) (predictions.Distances, error) {
	var d predictions.Distances
	if a == nil {
		return d, nil
	}
	features, _, err := c.Features(ctx, m)
	if err != nil {
		return d, err
	}
	if d.One, err = a.one.distances(features); err != nil {
		return d, err
	}
	d.Class, err = a.class.distances(features)
	return d, err
}
