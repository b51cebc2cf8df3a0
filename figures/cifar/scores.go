package cifar

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
)

// The scores by which images out of distribution are told from the test images, by the endings of the metrics' names. See
// Scores.
const (
	byMaxProbability    = ""                   // minus the largest probability, as the paper's baselines
	byEntropy           = "_entropy"           // of the averaged probabilities
	byMutualInformation = "_mutualinformation" // between label and draw
	byDempsterShafer    = "_dempstershafer"    // of the logits, as SNGP
	byGaussian          = "_gaussian"          // squared distance of the features from a Gaussian fitted afterwards
	byClassGaussian     = "_classgaussian"     // the same from the nearest class's
	ByEnergy            = "_energy"            // squared distance from the mean held-out energy, as the paper's method
)

// byLayer is ByEnergy for the input of a layer.
func byLayer(layer string) string { return ByEnergy + "@" + layer }

// Names in Prediction.PerExample. featureGaussians measures the distances. Older results have the others instead of
// probabilities and outputs, or beside rounded probabilities.
const (
	distanceOne, distanceClass = "distance_one", "distance_class"
	logMaxProbability          = "log_max_probability"
	entropy                    = "entropy"
	dempsterShafer             = "dempster_shafer"
)

// A score gives each image of a set a number that is larger for images that are less like the training images. It is nil
// for predictions that do not have it. held is the prediction of the held-out images; nil for none.
type score struct {
	ending, words string
	of            func(s, held *experiment.Prediction) []float64
}

// scores are those of all networks. Scores by the energies of single layers come on top; see scoresOf.
var scores = []score{
	{byMaxProbability, "maximum probability", negativeMaxProbability},
	{byEntropy, "entropy", func(s, _ *experiment.Prediction) []float64 {
		if kept := s.PerExample[entropy]; kept != nil {
			return kept
		}
		return metrics.Entropy(s.Probabilities, s.Width)
	}},
	{byMutualInformation, "mutual information", func(s, _ *experiment.Prediction) []float64 {
		if !slices.ContainsFunc(s.MutualInformation, func(v float64) bool { return v != 0 }) {
			return nil // of a single network without noise it tells nothing
		}
		return s.MutualInformation
	}},
	{byDempsterShafer, "Dempster-Shafer", func(s, _ *experiment.Prediction) []float64 {
		if s.Outputs == nil {
			return s.PerExample[dempsterShafer]
		}
		return metrics.DempsterShafer(s.Outputs[0], s.Width)
	}},
	{byGaussian, "Gaussian of the features", func(s, _ *experiment.Prediction) []float64 { return s.PerExample[distanceOne] }},
	{byClassGaussian, "Gaussian of each class", func(s, _ *experiment.Prediction) []float64 { return s.PerExample[distanceClass] }},
	energyScore(ByEnergy, "energy", func(s *experiment.Prediction) []float64 { return lastEnergy(s.Prediction).Mean }),
}

// lastEnergy is the energies of the last convolution's input, the paper's score for images out of distribution. It is empty
// if there are no energies.
func lastEnergy(p predict.Prediction) predict.LayerEnergy {
	if p.LastConvolution < 0 || p.LastConvolution >= len(p.Energies) {
		return predict.LayerEnergy{}
	}
	return p.Energies[p.LastConvolution]
}

func negativeMaxProbability(s, _ *experiment.Prediction) []float64 {
	if logs := s.PerExample[logMaxProbability]; logs != nil {
		found := make([]float64, len(logs))
		for i, log := range logs {
			found[i] = -math.Exp(log)
		}
		return found
	}
	found := metrics.MaxProbability(s.Probabilities, s.Width)
	floats.Scale(-1, found)
	return found
}

// energyScore is the paper's statistic (metrics.EnergyOOD) with some energies.
func energyScore(ending, words string, energies func(s *experiment.Prediction) []float64) score {
	return score{ending, words, func(s, held *experiment.Prediction) []float64 {
		if held == nil || energies(s) == nil || energies(held) == nil {
			return nil
		}
		return metrics.EnergyOOD(energies(s), energies(held))
	}}
}

// scoresOf are scores and those by the energies of each of some layers.
func scoresOf(layers ...string) []score {
	all := slices.Clone(scores)
	for _, name := range layers {
		all = append(all, energyScore(byLayer(name), "energy, "+name, func(s *experiment.Prediction) []float64 {
			for _, layer := range s.Energies {
				if layer.Layer == name {
					return layer.Mean
				}
			}
			return nil
		}))
	}
	return all
}

// Scores measures classification and calibration on the test images, and how well the sets out of distribution are told
// from them:
//
//	accuracy, nll, brier, ece10, ece15, adaptive_ece15, classwise_ece15   on the test set
//	aurc                                                                  by the largest probability
//	ood_SET_auroc, ood_SET_auprc, ood_SET_ap, ood_SET_fpr95               for each set out of distribution, which has no labels
//
// In the metrics of detection the images out of distribution are the positive ones. The names stand for the score
// by the largest probability. The other scores append their ending, as in ood_svhn_auroc_energy, where the predictions have them.
// Energies of single layers have auroc and auprc alone. Definitions are those of package metrics; auprc is by the
// trapezoidal rule, ap the average precision.
func Scores(p *experiment.Predictions) (map[string]float64, error) {
	test, err := p.Set(TestSet)
	if err != nil {
		return nil, err
	}
	m := measured{}
	m.classes(test)
	held, _ := p.Set(HeldOutSet) // nil for none
	var layers []string
	for _, layer := range test.Energies {
		layers = append(layers, layer.Layer)
	}
	for i := range p.Sets {
		set := &p.Sets[i]
		if set.Set == TestSet || set.Set == HeldOutSet || set.Labels != nil {
			continue
		}
		for _, by := range scoresOf(layers...) {
			inside, outside := by.of(test, held), by.of(set, held)
			if inside != nil && outside != nil {
				m.detection(set.Set, by.ending, inside, outside)
			}
		}
	}
	return m, nil
}

// measured collects numbers by their names.
type measured map[string]float64

// classes adds the metrics of class probabilities on the test set.
func (m measured) classes(test *experiment.Prediction) {
	m["accuracy"] = metrics.Accuracy(test.Probabilities, test.Width, test.Labels)
	m["nll"] = metrics.CategoricalNLL(test.Probabilities, test.Width, test.Labels)
	m["brier"] = metrics.Brier(test.Probabilities, test.Width, test.Labels)
	m["classwise_ece15"] = metrics.ClasswiseECE(test.Probabilities, test.Width, test.Labels, 15)
	outcomes := metrics.NewOutcomes(test.Probabilities, test.Width, test.Labels)
	m["ece10"], m["ece15"] = outcomes.ECE(10), outcomes.ECE(15)
	m["adaptive_ece15"] = outcomes.AdaptiveECE(15)
	m["aurc"] = outcomes.AURC()
}

// detection adds the ranking metrics of one score.
func (m measured) detection(set, ending string, inside, outside []float64) {
	sweep := ranksOf(inside, outside).Sweep()
	m[detectionMetric(set, "auroc")+ending] = sweep.AUROC()
	m[detectionMetric(set, "auprc")+ending] = sweep.AUPRC()
	if !strings.HasPrefix(ending, byLayer("")) {
		m[detectionMetric(set, "ap")+ending] = sweep.AveragePrecision()
		m[detectionMetric(set, "fpr95")+ending] = sweep.FPRAtTPR(0.95)
	}
}

// detectionMetric is the name of a metric of telling the images of a set from the test images.
func detectionMetric(set, metric string) string { return "ood_" + set + "_" + metric }

// rescaled are probabilities of so many classes, with the temperature that is best for others with labels. They are nil
// where no temperature is best.
func rescaled(probabilities []float64, classes int, others []float64, labels []int) (found []float64, temperature float64, err error) {
	temperature, err = metrics.FitTemperature(logits(others), classes, labels)
	if errors.Is(err, metrics.ErrNoTemperature) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return metrics.Softmax(logits(probabilities), classes, temperature), temperature, nil
}

// metricTemperature names the temperature of Tempered, and TemperedEnding ends the names of its other metrics.
const metricTemperature, TemperedEnding = "temperature", "_tempered"

// Tempered measures the NLL, the calibration error and the Brier score of the test images with the temperature that is best
// for the held-out images, if the predictions have these and some temperature is best: for any method, the control that needs
// no noise.
func Tempered(p *experiment.Predictions) (map[string]float64, error) {
	test, err := p.Set(TestSet)
	held, _ := p.Set(HeldOutSet)
	if err != nil || held == nil {
		return nil, err
	}
	probabilities, temperature, err := rescaled(test.Probabilities, test.Width, held.Probabilities, held.Labels)
	if err != nil || probabilities == nil {
		return nil, err
	}
	s := newScores(probabilities, test.Width, test.Labels, temperature)
	return map[string]float64{metricTemperature: temperature, "nll" + TemperedEnding: stat.Mean(s.nll, nil), "brier" + TemperedEnding: stat.Mean(s.brier, nil),
		"ece10" + TemperedEnding: s.outcomes.ECE(10)}, nil
}

// logits are those of probabilities, up to a number for each example, which makes no difference. A probability of 0 is
// taken as smallest.
func logits(probabilities []float64) []float64 {
	logs := make([]float64, len(probabilities))
	for i, p := range probabilities {
		logs[i] = math.Log(math.Max(p, smallest))
	}
	return logs
}

// smallest is below all positive numbers of float32, in which networks compute their logits. Means over draws are of
// float64, and a smaller one counts as this.
const smallest = 0x1p-150

// metricPosteriorStd names the number of posteriorStd.
const metricPosteriorStd = "posterior_std"

// posteriorStd is the geometric mean of the standard deviations of the trained posterior: of weights (MFVI), factors (Rank-1
// BNN), or the two noise scales of density layers. Other methods have none.
func posteriorStd(models []*nets.Model) (map[string]float64, error) {
	sum, n := 0.0, 0
	for _, member := range models {
		for v := range member.Store.IterVariables() {
			if params.RoleOf(v, member.Store) != params.Variational || !strings.HasSuffix(v.Path(), "log_variance") {
				continue
			}
			logVariances, _, err := params.Values(member.Store, v.Path())
			if err != nil {
				return nil, err
			}
			sum, n = sum+floats.Sum(logVariances), n+len(logVariances)
		}
	}
	if n == 0 {
		return nil, nil
	}
	return map[string]float64{metricPosteriorStd: math.Exp(sum / float64(n) / 2)}, nil
}

// featureGaussians fits Gaussians to the features of the training images, without augmentation, and gives each example of
// each set its squared distances from them: the control for energy models, which are trained with the network. There are
// none if the covariance would be singular.
func featureGaussians(ctx context.Context, m *nets.Model, d experiment.Data) (map[string]map[string][]float64, error) {
	features, width, err := featuresOf(ctx, m, d.Train)
	if err != nil {
		return nil, err
	}
	labels, classes := d.Train.Labels, m.Likelihood.Outputs()
	if len(labels) <= width+classes {
		return nil, nil
	}
	one, err := fitGaussian(features, width, make([]int, len(labels)), 1)
	if err != nil {
		return nil, err
	}
	each, err := fitGaussian(features, width, labels, classes)
	if err != nil {
		return nil, err
	}
	all := map[string]map[string][]float64{}
	for _, set := range d.Sets {
		features, _, err := featuresOf(ctx, m, set.Dataset)
		if err != nil {
			return nil, fmt.Errorf("features of %s: %w", set.Name, err)
		}
		all[set.Name] = map[string][]float64{}
		for name, g := range map[string]*gaussian{distanceOne: one, distanceClass: each} {
			if all[set.Name][name], err = g.distances(features); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// featuresOf are the features before the last layer of a trained network at some images, [N*width] row-major.
func featuresOf(ctx context.Context, m *nets.Model, images train.Dataset) (features []float64, width int, err error) {
	found, err := predict.Sample(ctx, m.With(nets.Headless{Network: m.Network}), images.Inputs, predict.Options{Samples: 1})
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

// fitGaussian fits Gaussians of one covariance to features, [N*width] row-major, each with a label below classes. The
// covariance is singular unless N exceeds width plus classes. A class without features has no Gaussian.
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

// An Interval is a number with the bounds between which it would lie, 95 times in a hundred, for other test images of the
// same kind. It does not hold the spread over training runs.
type Interval struct{ Value, Low, High float64 }

// String prints "0.893 [0.880, 0.906]".
func (i Interval) String() string { return fmt.Sprintf("%.3f [%.3f, %.3f]", i.Value, i.Low, i.High) }

const (
	replicates    = 1000
	level         = 0.95
	bootstrapSeed = 1
)

// Detect says how well a score tells images out of distribution, which should score higher, from images inside. It
// returns metrics.AUROC and metrics.AUPRC, with the images outside as positives and intervals by metrics.Bootstrap.
func Detect(inside, outside []float64) (auroc, auprc Interval, err error) {
	ranks := ranksOf(inside, outside)
	of := func(number func(metrics.Sweep) float64) Interval {
		i := Interval{Value: number(ranks.Sweep())}
		if !math.IsNaN(i.Value) {
			i.Low, i.High = metrics.Bootstrap([]int{len(inside), len(outside)}, replicates, bootstrapSeed, level, ranks.At(number))
		}
		return i
	}
	if auroc, auprc = of(metrics.Sweep.AUROC), of(metrics.Sweep.AUPRC); math.IsNaN(auroc.Value) {
		err = fmt.Errorf("cifar: detection by %d scores of images inside and %d outside: there are none of one kind, or some are NaN", len(inside), len(outside))
	}
	return auroc, auprc, err
}

// ranksOf ranks images by a score, with those out of distribution as the positive ones.
func ranksOf(inside, outside []float64) *metrics.Ranks {
	positive := slices.Concat(make([]bool, len(inside)), slices.Repeat([]bool{true}, len(outside)))
	return metrics.NewRanks(slices.Concat(inside, outside), positive)
}

// DetectByLayer is a table of the AUROC of Detect for the paper's statistic (metrics.EnergyOOD), with a row for each layer
// and a column for each set of images out of distribution. It takes the mean energy from the held-out images. The
// largest number of each column is bold. All predictions are of one network with energies.
func DetectByLayer(heldOut, inside Predictions, outside ...Predictions) (report.Table, error) {
	t := prose.Table("ood-layers", inside.Images.Name)
	t.Columns = []string{"Input of the layer"}
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
			t.Rows[l].Cells = append(t.Rows[l].Cells, report.Cell{Text: auroc.String()})
		}
		t.Rows[best].Cells[len(t.Columns)-1].Bold = true
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
	auroc, _, err := Detect(metrics.EnergyOOD(inside.Energies[l].Mean, reference), metrics.EnergyOOD(outside.Energies[l].Mean, reference))
	return auroc, err
}
