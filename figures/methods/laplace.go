package methods

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/spec"
)

// LaplaceSampler predicts by baselines.Laplace of the last layer of a trained network of baselines.Deterministic, the dense layer
// at the scope "output": a regression in closed form, and classes by the probit approximation. The networks are those of
// Deterministic with the same settings and seed. The members of an ensemble are a mixture.
type LaplaceSampler struct {
	// PriorPrecision is that of baselines.Laplace; 0 takes the one with the largest marginal likelihood.
	PriorPrecision float64
	// Draws, if not 0, averages the probabilities of so many draws of the last layer, in the place of the approximation.
	Draws int
}

// Check says which settings cannot be.
func (l LaplaceSampler) Check() error {
	if !(l.PriorPrecision >= 0) || math.IsInf(l.PriorPrecision, 1) || l.Draws < 0 {
		return fmt.Errorf("methods.LaplaceSampler has PriorPrecision %g and Draws %d; neither may be negative or infinite", l.PriorPrecision, l.Draws)
	}
	return nil
}

// Identity implements spec.Identifier.
func (l LaplaceSampler) Identity() spec.Identity {
	type fields LaplaceSampler
	return spec.Identity{Type: "methods.Laplace", Value: fields(l)}
}

// Run implements experiment.Program.
func (l LaplaceSampler) Run(ctx context.Context, e experiment.Experiment, _ experiment.Data, _ func(float64, string)) (*experiment.Predictions, error) {
	if _, plain := Values(e.Method).Layers.(baselines.Deterministic); !plain {
		return nil, fmt.Errorf("methods.LaplaceSampler is for layers of type baselines.Deterministic, not %T", e.Method.Layers)
	}
	bare, err := e.Task.Network.Over(headless{})
	if err != nil {
		return nil, err
	}
	p := &experiment.Predictions{}
	e.Method.Sampler, e.Task.Metrics = nil, nil
	e.Task.After = func(ctx context.Context, members []*nets.Model, d experiment.Data) (map[string]float64, map[string]map[string][]float64, error) {
		drawn := make([][]*predict.Prediction, len(d.Sets))
		for _, m := range members {
			if err := l.member(ctx, m, m.With(bare), d, drawn); err != nil {
				return nil, nil, err
			}
		}
		for k, set := range d.Sets {
			mixed, err := predict.Ensemble(drawn[k]...)
			if err != nil {
				return nil, nil, err
			}
			p.Sets = append(p.Sets, experiment.Prediction{Set: set.Name, Targets: set.Targets, Labels: set.Labels, Prediction: *mixed})
		}
		return nil, nil, nil
	}
	found, err := experiment.Run(ctx, e)
	if err == nil && found[0].Diverged {
		err = fmt.Errorf("%w: %s", train.ErrDiverged, found[0].Reason)
	}
	return p, err
}

// member adds the prediction of each set by one network, of which bare gives the features, to drawn.
func (l LaplaceSampler) member(ctx context.Context, m, bare *nets.Model, d experiment.Data, drawn [][]*predict.Prediction) error {
	featuresOf := func(x nets.Inputs) (*predict.Prediction, error) {
		return predict.Sample(ctx, bare, x, predict.Options{Samples: 1})
	}
	trained, err := featuresOf(d.Train.Inputs)
	if err != nil {
		return err
	}
	weights, _, err := params.Values(m.Store, model.JoinPath(nets.HeadScope, "weights"))
	if err != nil {
		return err
	}
	bias, _, err := params.Values(m.Store, model.JoinPath(nets.HeadScope, "bias"))
	if err != nil {
		return err
	}
	weights = append(weights, bias...)
	laplace, features := baselines.Laplace{PriorPrecision: l.PriorPrecision}, trained.Outputs[0]
	var last *baselines.LastLayer
	var noise float64
	switch m.Likelihood.(type) {
	case likelihood.Gaussian:
		variances, err := m.NoiseVariances()
		if err != nil {
			return err
		}
		noise = math.Sqrt(variances[0])
		last, err = laplace.Regression(features, trained.Width, weights, variances[0])
		if err != nil {
			return err
		}
	case likelihood.Categorical:
		if last, err = laplace.Classification(features, trained.Width, weights, len(bias)); err != nil {
			return err
		}
	default:
		return fmt.Errorf("methods.LaplaceSampler is for likelihood.Gaussian and likelihood.Categorical, not for %T", m.Likelihood)
	}
	for k, set := range d.Sets {
		at, err := featuresOf(set.Inputs)
		if err != nil {
			return err
		}
		found := &predict.Prediction{Likelihood: m.Likelihood, Width: len(bias), LastConvolution: -1}
		if noise == 0 {
			var logits [][]float64
			for draw := range l.Draws { // the same layers for all sets
				logits = append(logits, last.Draw(at.Outputs[0], rand.New(rand.NewPCG(m.Seeds()[0], uint64(draw))).NormFloat64))
			}
			if found.Probabilities = last.Probit(at.Outputs[0]); l.Draws > 0 {
				found.Probabilities, found.MutualInformation = metrics.MeanProbabilities(logits, len(bias)), metrics.MutualInformation(logits, len(bias))
			}
		} else {
			mean, std := last.Moments(at.Outputs[0])
			for i, v := range std {
				std[i] = math.Sqrt(v)
			}
			found.Mixture = predict.Mixture{Mean: [][]float64{mean}, Std: [][]float64{std}, NoiseStd: [][]float64{slices.Repeat([]float64{noise}, len(mean))}}
		}
		drawn[k] = append(drawn[k], found)
	}
	return nil
}

// headless is the family of plain layers without the last one: the outputs of a network are the features before it.
type headless struct{ baselines.Deterministic }

// Dense implements nets.Layers.
func (h headless) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	if s.Scope() == nets.HeadScope {
		return x
	}
	return h.Deterministic.Dense(s, x, units)
}
