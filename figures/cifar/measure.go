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

	"densityuncertainty/datasets"
	"densityuncertainty/dul/metrics"
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
// metrics are those of what is kept. A prediction or a metric that is not finite is train.ErrDiverged, wrapped: to
// measure again would not help.
func (x *experimentRun) measure(ctx context.Context) (map[string]float64, error) {
	e, d, c := x.experiment, x.data, x.classifier
	p := &predictions.Predictions{
		Experiment: e.ID(), Dataset: e.Dataset, Classes: len(c.Classes), Samples: c.Method.SamplesOf(e.Samples) * len(c.members), Labels: d.test.Labels,
	}
	fitted, err := x.fitAfterwards(ctx)
	if err != nil {
		return nil, err
	}
	done := 0.0
	predicted := func(m *datasets.Images) (imagePrediction, error) {
		share := float64(m.N) / float64(x.effort.images)
		found, err := x.predict(ctx, m, func(part float64, note string) { x.report(1, done+share*part, note) })
		if err == nil {
			found.distances, err = fitted.distances(ctx, c, m)
		}
		done += share
		return found, err
	}
	test, err := predicted(d.test)
	if err != nil {
		return nil, err
	}
	p.Probs, p.MutualInformation, p.DempsterShafer, p.Energy = test.probabilities, test.mutualInformation, test.dempsterShafer, test.energies
	p.Distances, p.Layers = test.distances, test.layers
	if x.keepsEnergies() || x.fitsTemperature() {
		held, err := predicted(d.heldOut)
		if err != nil {
			return nil, err
		}
		p.HeldOut = held.energies
		if x.fitsTemperature() {
			p.HeldOutLabels, p.HeldOutProbs = d.heldOut.Labels, held.probabilities
		}
	}
	for _, other := range d.others {
		found, err := predicted(other.images)
		if err != nil {
			return nil, err
		}
		set := predictions.Set{Name: other.name, MutualInformation: found.mutualInformation, DempsterShafer: found.dempsterShafer, Distances: found.distances, Energy: found.energies}
		if set.MaxProbability, err = metrics.MaxProbability(found.probabilities, p.Classes); err != nil {
			return nil, err
		}
		if set.Entropy, err = metrics.Entropy(found.probabilities, p.Classes); err != nil {
			return nil, err
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
	probabilities, mutualInformation []float64
	dempsterShafer                   []float64
	distances                        predictions.Distances
	energies                         predictions.Energies
	layers                           []string // of energies
}

func (x *experimentRun) predict(ctx context.Context, m *datasets.Images, report func(part float64, note string)) (imagePrediction, error) {
	wantLogits := slices.Contains(x.classifier.Method.Detects, methods.ByDempsterShafer)
	found, err := x.classifier.classify(ctx, m, x.experiment.Samples, x.keepsEnergies(), wantLogits, func(done float64) {
		report(done, fmt.Sprintf("predicting %s, %.0f of %d images", m.Name, done*float64(m.N), m.N))
	})
	if errors.Is(err, metrics.ErrValue) { // of logits that are no numbers
		err = fmt.Errorf("%w: %w", train.ErrDiverged, err)
	}
	if err != nil {
		return imagePrediction{}, err
	}
	p := imagePrediction{probabilities: found.Probabilities, mutualInformation: found.MutualInformation, energies: lastEnergies(found)}
	for _, layer := range found.Energies {
		p.layers, p.energies.Layers = append(p.layers, layer.Layer), append(p.energies.Layers, layer.Mean)
	}
	if wantLogits {
		if p.dempsterShafer, err = metrics.DempsterShafer(found.Outputs[0], len(x.classifier.Classes)); err != nil {
			return p, err
		}
	}
	return p, p.check(m.Name)
}

// check reports the first number that is not finite.
func (p imagePrediction) check(set string) error {
	type list struct {
		name   string
		values []float64
	}
	lists := []list{{"probability", p.probabilities}, {"mutual information", p.mutualInformation}, {"energy", p.energies.Mean}, {"energy of one sample", p.energies.Once}}
	for l, layer := range p.layers {
		lists = append(lists, list{"energy at " + layer, p.energies.Layers[l]})
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
