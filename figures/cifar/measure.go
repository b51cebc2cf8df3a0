package cifar

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/methods"
)

// keepsEnergies says whether there are energies, and images to compare them with.
func (x *experimentRun) keepsEnergies() bool {
	return x.classifier.Method.HasEnergies && x.data.heldOut != nil
}

// fitsTemperature says whether the method has a temperature, and there are images that it can be fitted on.
func (x *experimentRun) fitsTemperature() bool {
	return x.classifier.Method.FitsTemperature && x.data.heldOut != nil
}

// measure predicts all sets and computes the metrics. With a folder for predictions they are kept there, and the
// metrics are those of what is kept. In the folder for work, "" for none, is each set that was predicted before the run
// was stopped. A prediction or a metric that is not finite is train.ErrDiverged, wrapped: to
// measure again would not help.
func (x *experimentRun) measure(ctx context.Context, folder string) (map[string]float64, error) {
	e, d, c := x.experiment, x.data, x.classifier
	p := &predictions.Predictions{
		Experiment: e.ID(), Dataset: e.Dataset, Classes: len(c.Classes), Samples: c.Method.SamplesOf(e.Samples) * len(c.members), Labels: d.test.Labels,
	}
	fitted, err := x.fitAfterwards(ctx)
	if err != nil {
		return nil, err
	}
	before, err := x.predictedBefore(folder)
	if err != nil {
		return nil, err
	}
	done := 0.0
	predicted := func(m *datasets.Images) (imagePrediction, error) {
		share := float64(m.N) / float64(x.effort.images)
		defer func() { done += share }()
		return before.orNow(m, func() (found imagePrediction, err error) {
			found, err = x.predict(ctx, m, func(part float64, note string) {
				x.report(1, done+share*part, note)
				x.keepTime()
			})
			if err == nil {
				found.Distances, err = fitted.distances(ctx, c, m)
			}
			return found, err
		})
	}
	test, err := predicted(d.test)
	if err != nil {
		return nil, err
	}
	p.Probs, p.MutualInformation, p.DempsterShafer, p.Energy = test.Probabilities, test.MutualInformation, test.DempsterShafer, test.Energies
	p.Distances, p.Layers = test.Distances, test.Layers
	if x.keepsEnergies() || x.fitsTemperature() {
		held, err := predicted(d.heldOut)
		if err != nil {
			return nil, err
		}
		p.HeldOut = held.Energies
		if x.fitsTemperature() {
			p.HeldOutLabels, p.HeldOutProbs = d.heldOut.Labels, held.Probabilities
		}
	}
	for _, other := range d.others {
		found, err := predicted(other.images)
		if err != nil {
			return nil, err
		}
		set := predictions.Set{Name: other.name, MutualInformation: found.MutualInformation, DempsterShafer: found.DempsterShafer, Distances: found.Distances, Energy: found.Energies}
		if set.MaxProbability, err = metrics.MaxProbability(found.Probabilities, p.Classes); err != nil {
			return nil, err
		}
		if set.Entropy, err = metrics.Entropy(found.Probabilities, p.Classes); err != nil {
			return nil, err
		}
		if p.Samples == 1 {
			set.Probs = found.Probabilities
		}
		p.Others = append(p.Others, set)
	}
	scores, err := score(p)
	if err != nil || x.Predictions == "" {
		return scores, err
	}
	return kept(x.Predictions, p)
}

// An imagePrediction is what a run says of a set of images; lists that the method does not have are nil.
type imagePrediction struct {
	Probabilities, MutualInformation []float64
	DempsterShafer                   []float64
	Distances                        predictions.Distances
	Energies                         predictions.Energies
	Layers                           []string // of energies
}

func (x *experimentRun) predict(ctx context.Context, m *datasets.Images, report func(part float64, note string)) (imagePrediction, error) {
	wantLogits := slices.Contains(x.classifier.Method.Detects, methods.ByDempsterShafer)
	found, err := x.classifier.classify(ctx, m, x.experiment.Samples, x.keepsEnergies(), wantLogits, func(done float64) {
		report(done, fmt.Sprintf("predicting %s, %.0f of %d images", m.Name, done*float64(m.N), m.N))
	})
	if err != nil {
		return imagePrediction{}, orDiverged(err)
	}
	p := imagePrediction{Probabilities: found.Probabilities, MutualInformation: found.MutualInformation, Energies: lastEnergies(found)}
	for _, layer := range found.Energies {
		p.Layers, p.Energies.Layers = append(p.Layers, layer.Layer), append(p.Energies.Layers, layer.Mean)
	}
	if wantLogits {
		if p.DempsterShafer, err = metrics.DempsterShafer(found.Outputs[0], len(x.classifier.Classes)); err != nil {
			return p, err
		}
	}
	return p, p.check(m.Name)
}

// orDiverged is an error of a prediction, train.ErrDiverged too if outputs are no numbers.
func orDiverged(err error) error {
	if errors.Is(err, metrics.ErrValue) {
		return fmt.Errorf("%w: %w", train.ErrDiverged, err)
	}
	return err
}

// check reports the first number that is not finite.
func (p imagePrediction) check(set string) error {
	type list struct {
		name   string
		values []float64
	}
	lists := []list{{"probability", p.Probabilities}, {"mutual information", p.MutualInformation}, {"energy", p.Energies.Mean}, {"energy of one sample", p.Energies.Once}}
	for l, layer := range p.Layers {
		lists = append(lists, list{"energy at " + layer, p.Energies.Layers[l]})
	}
	for _, list := range lists {
		if i := slices.IndexFunc(list.values, notFinite); i >= 0 {
			return fmt.Errorf("%s number %d on %s is %v: %w", list.name, i, set, list.values[i], train.ErrDiverged)
		}
	}
	return nil
}

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// score computes the metrics, which must be finite: the negative log-likelihood is not if a label has probability 0.
func score(p *predictions.Predictions) (map[string]float64, error) {
	scores, err := predictions.Score(p)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		if notFinite(scores[name]) {
			return nil, fmt.Errorf("%s is %v: %w", name, scores[name], train.ErrDiverged)
		}
	}
	return scores, nil
}

// kept writes predictions and scores what was written.
func kept(folder string, p *predictions.Predictions) (map[string]float64, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for predictions: %w", err)
	}
	path := filepath.Join(folder, predictions.FileName(p.Experiment))
	if err := predictions.Write(path, p); err != nil {
		return nil, err
	}
	back, err := predictions.Read(path)
	if err != nil {
		return nil, err
	}
	return score(back)
}

// lastEnergies are those of the input of the last convolution; none without energies.
func lastEnergies(c *predict.Prediction) predictions.Energies {
	if c.Energies == nil || c.LastConvolution < 0 {
		return predictions.Energies{}
	}
	layer := c.Energies[c.LastConvolution]
	return predictions.Energies{Mean: layer.Mean, Once: layer.One}
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
		return nil, fmt.Errorf("cifar: the covariance of the features is not positive definite (trace %v): %w", trace, train.ErrDiverged)
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
			distance := stat.Mahalanobis(f, mat.NewVecDense(width, mean), &g.covariance)
			if math.IsNaN(distance) {
				return nil, fmt.Errorf("cifar: features %d have no distance: they are not finite, or their covariance is nearly singular", i)
			}
			found[i] = min(found[i], distance*distance)
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
		return nil, orDiverged(err)
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
		return d, orDiverged(err)
	}
	if d.One, err = a.one.distances(features); err != nil {
		return d, err
	}
	d.Class, err = a.class.distances(features)
	return d, err
}
