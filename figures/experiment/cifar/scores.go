package cifar

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

// Scores measures classification and calibration on the test images, and how well the sets out of distribution are told
// from them, by every score that the predictions have. See predictions.Score for the names.
func Scores(p *experiment.Predictions) (map[string]float64, error) {
	test, err := p.Set(TestSet)
	if err != nil {
		return nil, err
	}
	all := &predictions.Predictions{
		Experiment: p.Experiment, Dataset: "images", Classes: test.Width, Samples: 1, Labels: test.Labels, Probs: test.Probabilities,
		MutualInformation: test.MutualInformation, Distances: distancesOf(test),
	}
	if all.DempsterShafer, err = dempsterShafer(test); err != nil {
		return nil, err
	}
	held, err := p.Set(HeldOutSet)
	hasHeldOut := err == nil
	if hasHeldOut && test.Energies != nil {
		all.Energy, all.HeldOut = energiesOf(test), energiesOf(held)
		for _, layer := range test.Energies {
			all.Layers = append(all.Layers, layer.Layer)
		}
	} else if hasHeldOut {
		all.HeldOutLabels, all.HeldOutProbs = held.Labels, held.Probabilities
	}
	for i := range p.Sets {
		s := &p.Sets[i]
		if s.Set == TestSet || s.Set == HeldOutSet {
			continue
		}
		set := predictions.Set{Name: s.Set, MutualInformation: s.MutualInformation, Distances: distancesOf(s)}
		if hasHeldOut {
			set.Energy = energiesOf(s)
		}
		if set.MaxProbability, err = metrics.MaxProbability(s.Probabilities, test.Width); err != nil {
			return nil, err
		}
		if set.Entropy, err = metrics.Entropy(s.Probabilities, test.Width); err != nil {
			return nil, err
		}
		if set.DempsterShafer, err = dempsterShafer(s); err != nil {
			return nil, err
		}
		all.Others = append(all.Others, set)
	}
	return predictions.Score(all)
}

// energiesOf are the energies of a set: of all layers, and those of the input of the last convolution.
func energiesOf(s *experiment.Prediction) predictions.Energies {
	var e predictions.Energies
	for _, layer := range s.Energies {
		e.Layers = append(e.Layers, layer.Mean)
	}
	if s.Energies != nil && s.LastConvolution >= 0 {
		e.Mean, e.Once = s.Energies[s.LastConvolution].Mean, s.Energies[s.LastConvolution].One
	}
	return e
}

// dempsterShafer is the score by the size of the logits, of methods that keep them; nil for others.
func dempsterShafer(s *experiment.Prediction) ([]float64, error) {
	if s.Outputs == nil {
		return nil, nil
	}
	return metrics.DempsterShafer(s.Outputs[0], s.Width)
}

// inspect measures the networks themselves: the number of "parameters" of all members, the 10^9 operations of a training
// step for one image ("training_gflop"), and the geometric mean of the standard deviations of the posterior
// ("posterior_std"), of methods that train one.
func inspect(network nets.ResNet, m experiment.Method) experiment.Inspect {
	return func(models []*nets.Model, _, _ int) (map[string]float64, error) {
		count, sum, n, operations := 0, 0.0, 0, 0.0
		for _, member := range models {
			for v := range member.Store.IterVariables() {
				role := params.RoleOf(v, member.Store)
				if v.Trainable && role != "" {
					count += v.Shape().Size()
				}
				if role != params.Variational || !strings.HasSuffix(v.Path(), "log_variance") {
					continue
				}
				logVariances, _, err := params.Values(member.Store, v.Path())
				if err != nil {
					return nil, err
				}
				sum, n = sum+floats.Sum(logVariances), n+len(logVariances)
			}
			complete := network
			if layers, has := m.Layers.(nets.ConvLayers); has {
				complete.Layers = layers
			}
			operations += complete.CostOf(datasets.ImageChannels, datasets.ImageSide, datasets.ImageSide, member.Likelihood.Outputs()).Training
		}
		found := map[string]float64{results.MetricParameters: float64(count), results.MetricTrainingGFLOP: operations / 1e9}
		if n > 0 {
			found[results.MetricPosteriorStd] = math.Exp(sum / float64(n) / 2)
		}
		return found, nil
	}
}

// The names of the numbers of featureGaussians.
const oneGaussian, classGaussians = "distance_one", "distance_class"

// distancesOf are the distances of a set, if the networks were probed.
func distancesOf(s *experiment.Prediction) predictions.Distances {
	return predictions.Distances{One: s.Extra[oneGaussian], Class: s.Extra[classGaussians]}
}

// featureGaussians fits Gaussians to the features of the training images, without augmentation, and gives each example
// its squared distances from them: the control for energy models, which are trained with the network.
func featureGaussians(classes int) experiment.Probe {
	return func(ctx context.Context, members []*nets.Model, d experiment.Data) (func(context.Context, experiment.Set) (map[string][]float64, error), error) {
		features, width, err := featuresOf(ctx, members[0], d.Train)
		if err != nil {
			return nil, err
		}
		labels := d.Train.Labels
		if len(labels) <= width+classes { // the covariance would be singular
			return func(context.Context, experiment.Set) (map[string][]float64, error) { return nil, nil }, nil
		}
		one, err := fitGaussian(features, width, make([]int, len(labels)), 1)
		if err != nil {
			return nil, err
		}
		each, err := fitGaussian(features, width, labels, classes)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, set experiment.Set) (map[string][]float64, error) {
			features, _, err := featuresOf(ctx, members[0], set.Dataset)
			if err != nil {
				return nil, fmt.Errorf("features of %s: %w", set.Name, err)
			}
			found := map[string][]float64{}
			for name, g := range map[string]*gaussian{oneGaussian: one, classGaussians: each} {
				if found[name], err = g.distances(features); err != nil {
					return nil, err
				}
			}
			return found, nil
		}, nil
	}
}
