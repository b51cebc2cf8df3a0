package methods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

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

// LaplaceSampler predicts by baselines.Laplace of the last layer of a trained network without noise, the dense layer at the scope
// "output": a regression in closed form, and classes by the probit approximation. The network is trained
// with the experiment's Layers, settings and seed.
type LaplaceSampler struct {
	// PriorPrecision is as in baselines.Laplace; 0 takes the one with the largest marginal likelihood.
	PriorPrecision float64
	// Draws, if not 0, predicts by so many draws of the last layer, each one function, instead of both.
	Draws int
}

// Check implements experiment.Program.
func (l LaplaceSampler) Check(e experiment.Experiment) error {
	if !(l.PriorPrecision >= 0) || math.IsInf(l.PriorPrecision, 1) || l.Draws < 0 {
		return fmt.Errorf("methods.LaplaceSampler has PriorPrecision %g and Draws %d; neither may be negative or infinite", l.PriorPrecision, l.Draws)
	}
	t, err := experiment.MethodTraits(e.Method, e.Task.Likelihood)
	switch e.Task.Likelihood.(type) {
	case likelihood.Gaussian, likelihood.KnownNoise, likelihood.Categorical:
	default:
		t.Noise = true
	}
	if err == nil && (t.Noise || t.Energies || e.Method.IsProcess()) {
		err = fmt.Errorf("methods.LaplaceSampler is for layers without noise, such as baselines.Deterministic, with likelihood.Gaussian, KnownNoise or Categorical, not for %T with %T", e.Method.Layers, e.Task.Likelihood)
	}
	return errors.Join(err, single(e))
}

// CheckData is called by the engine (experiment.Program). It is an error if the network's last layer does not make its outputs.
func (LaplaceSampler) CheckData(ctx context.Context, e experiment.Experiment, d experiment.Data) error {
	_, err := withoutLastLayer(ctx, e, d)
	return err
}

// Identity implements spec.Identifier.
func (l LaplaceSampler) Identity() spec.Identity {
	type fields LaplaceSampler
	return spec.Identity{Type: "methods.Laplace", Value: fields(l)}
}

// Run implements experiment.Program.
func (l LaplaceSampler) Run(ctx context.Context, e experiment.Experiment, d experiment.Data, progress func(float64, string)) (*experiment.Predictions, error) {
	bare, err := withoutLastLayer(ctx, e, d)
	if err != nil {
		return nil, err
	}
	members, err := experiment.FitOne(ctx, e, d, progress, nil) // one
	if err != nil {
		return nil, err
	}
	m := members[0]
	trained, err := predict.Sample(ctx, m.With(bare), d.Train.Inputs, predict.Options{Samples: 1})
	layer, outputs, layerErr := lastLayer(m)
	variances, known := []float64(nil), error(nil)
	switch l := m.Likelihood.(type) {
	case likelihood.Gaussian:
		variances, known = m.NoiseVariances()
	case likelihood.KnownNoise:
		variances = []float64{math.Pow(cmp.Or(l.Std, l.Standardised), 2)}
	}
	if err := errors.Join(err, layerErr, known); err != nil {
		return nil, err
	}
	var last *baselines.LastLayer
	laplace := baselines.Laplace{PriorPrecision: l.PriorPrecision}
	if variances != nil {
		last, err = laplace.Regression(trained.Outputs[0], trained.Width, layer, variances[0])
	} else {
		last, err = laplace.Classification(trained.Outputs[0], trained.Width, layer, outputs)
	}
	if err != nil {
		return nil, err
	}
	return predicted(d, func(set experiment.Set) (*predict.Prediction, error) {
		at, err := predict.Sample(ctx, m.With(bare), set.Inputs, predict.Options{Samples: 1})
		if err != nil {
			return nil, err
		}
		found, features := &predict.Prediction{Likelihood: m.Likelihood, Width: outputs, LastConvolution: -1}, at.Outputs[0]
		var drawn [][]float64
		for draw := range l.Draws { // the same layers for all sets
			drawn = append(drawn, last.Draw(features, rand.New(rand.NewPCG(m.Seeds()[0], uint64(draw))).NormFloat64))
		}
		switch {
		case variances != nil:
			found.Mean = drawn
			if l.Draws == 0 {
				mean, std := last.Moments(features)
				for i, v := range std {
					std[i] = math.Sqrt(v)
				}
				found.Mean, found.Std = [][]float64{mean}, [][]float64{std}
			}
			noise := slices.Repeat([]float64{math.Sqrt(variances[0])}, set.Len())
			found.NoiseStd = slices.Repeat([][]float64{noise}, len(found.Mean))
		case l.Draws > 0:
			found.Probabilities, found.MutualInformation = metrics.MeanProbabilities(drawn, outputs), metrics.MutualInformation(drawn, outputs)
		default:
			found.Probabilities = last.Probit(features)
		}
		return found, nil
	})
}

// lastLayer are the weights of the dense layer at nets.HeadScope, the biases in the last row, [(width+1)*outputs] row-major.
func lastLayer(m *nets.Model) (layer []float64, outputs int, err error) {
	weights, _, err := params.Values(m.Store, model.JoinPath(nets.HeadScope, "weights"))
	bias, _, biasErr := params.Values(m.Store, model.JoinPath(nets.HeadScope, "bias"))
	return append(weights, bias...), len(bias), errors.Join(err, biasErr)
}

// withoutLastLayer is an experiment's network that returns the input of its last layer. It is an error if the untrained network
// changes this layer's outputs, also with other parameters, as a trained factor that starts at 1, or with large weights of the
// layer, as a bound such as baselines.SpectralNormed's.
func withoutLastLayer(ctx context.Context, e experiment.Experiment, d experiment.Data) (nets.Network, error) {
	network, err := e.Task.Network.Over(e.Method.Layers)
	backend, backendErr := spec.Backend()
	if err := errors.Join(err, backendErr); err != nil {
		return nil, err
	}
	m, err := nets.New(backend, network, e.Task.Likelihood, 1)
	if err != nil {
		return nil, err
	}
	bare, x, one := nets.Headless{Network: network}, nets.First(d.Train.Inputs, 10), predict.Options{Samples: 1}
	_, err = predict.Sample(ctx, m.With(network), x, one) // initialises the weights
	w, failed := parameters(m)
	rng := rand.New(rand.NewPCG(1, 0))
	for i, v := range w {
		w[i] += 0.1 * (1 + rng.Float64()) * cmp.Or(v, 1)
	}
	if err := errors.Join(err, failed, setParameters(m, w)); err != nil {
		return nil, err
	}
	for range 2 {
		layer, outputs, err := lastLayer(m)
		whole, wholeErr := predict.Sample(ctx, m.With(network), x, one)
		features, bareErr := predict.Sample(ctx, m.With(bare), x, one)
		linear := errors.Join(err, wholeErr, bareErr) == nil && whole.Width == outputs
		if linear {
			last, err := baselines.Laplace{PriorPrecision: 1}.Classification(features.Outputs[0], features.Width, layer, outputs)
			if linear = err == nil; linear {
				mean, _ := last.Moments(features.Outputs[0])
				linear = floats.Distance(mean, whole.Outputs[0], math.Inf(1)) <= 1e-4*floats.Norm(whole.Outputs[0], math.Inf(1))
			}
		}
		if !linear {
			return nil, fmt.Errorf("methods.LaplaceSampler: the outputs of %T are not those of one dense layer at the scope %s; build its last layer by layers.Dense(s.In(\"output\"), ...), do nothing with its result, and take layers that do not bound its weights", e.Task.Network, nets.HeadScope)
		}
		v := m.Store.GetVariable(model.JoinPath(nets.HeadScope, "weights"))
		floats.Scale(1000, layer[:v.Shape().Size()])
		if err := v.SetValue(params.FromFloat64(v.Shape(), layer[:v.Shape().Size()])); err != nil {
			return nil, err
		}
	}
	return bare, nil
}

// SWAGSampler predicts by networks that are drawn from baselines.SWAG. After the part Start of the training steps the learning
// rate stays what the recipe's schedule has there, and the parameters after each epoch from there on count; all that are trained,
// with the observation noise. Statistics of batch normalisation are made anew for each draw.
type SWAGSampler struct {
	Start       float64 // from 0 to below 1
	Rank, Draws int     // the Rank of baselines.SWAG, and the number of networks, each with Recipe.Samples
}

// Check implements experiment.Program.
func (s SWAGSampler) Check(e experiment.Experiment) error {
	if !(s.Start >= 0 && s.Start < 1) || s.Rank < 2 || s.Draws < 1 {
		return fmt.Errorf("methods.SWAGSampler has Start %g, Rank %d and Draws %d; they must be from 0 to below 1, and at least 2 and 1", s.Start, s.Rank, s.Draws)
	}
	switch left := e.Recipe.Epochs - s.first(e); {
	case left < 2:
		return fmt.Errorf("methods.SWAGSampler has %d epochs of Recipe.Epochs after Start %g; at least 2 are needed", left, s.Start)
	case e.Method.IsProcess():
		return errors.New("methods.SWAGSampler draws networks, and a Gaussian process is finished once, after training, for the parameters that it has then; give other Method.Layers")
	case e.Recipe.EarlyStopping:
		return errors.New("methods.SWAGSampler is for the last epochs of a training; leave Recipe.EarlyStopping out")
	}
	return single(e)
}

// first is the epoch after which parameters count.
func (s SWAGSampler) first(e experiment.Experiment) int {
	return int(s.Start * float64(e.Recipe.Epochs))
}

// Identity implements spec.Identifier.
func (s SWAGSampler) Identity() spec.Identity {
	type fields SWAGSampler
	return spec.Identity{Type: "methods.SWAG", Value: fields(s)}
}

// thenConstant is a schedule that stays what it is after a part of the steps.
type thenConstant struct {
	train.Schedule
	start float64
}

// Rate implements train.Schedule.
func (c thenConstant) Rate(t, total int) float64 {
	return c.Schedule.Rate(min(t, int(c.start*float64(total))), total)
}

// Run implements experiment.Program.
func (s SWAGSampler) Run(ctx context.Context, e experiment.Experiment, d experiment.Data, progress func(float64, string)) (*experiment.Predictions, error) {
	swag, failed, of := baselines.SWAG{Rank: s.Rank}, error(nil), e
	of.Recipe.Schedule = thenConstant{e.Recipe.Schedule, s.Start}
	members, err := experiment.FitOne(ctx, of, d, progress, func(m *nets.Model, at train.Progress) {
		if at.EndsEpoch() && at.Epoch > e.Recipe.PretrainEpochs+s.first(e) {
			w, err := parameters(m)
			failed = errors.Join(failed, err)
			swag.Add(w)
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	m := members[0]
	rng, drawn := rand.New(rand.NewPCG(m.Seeds()[0], 0x73776167)), map[string][]*predict.Prediction{}
	options := predict.Options{Samples: e.Recipe.Samples, BatchSize: e.Recipe.PredictBatch, Coherent: e.Recipe.Coherent}
	for draw := range s.Draws {
		if options.Coherent {
			options.Seed = new(uint64(draw))
		}
		w, err := swag.Draw(rng.NormFloat64)
		if err == nil {
			err = setParameters(m, w)
		}
		if err == nil {
			err = remakeStatistics(ctx, m, d.Train.Inputs, e.Recipe.BatchSize)
		}
		for _, set := range d.Sets {
			if err == nil && !e.Recipe.SharedNoise {
				err = m.StartNoise(fmt.Sprintf("%s, draw %d", set.Name, draw))
			}
			if err != nil {
				return nil, err
			}
			p, err := predict.Sample(ctx, m, set.Inputs, options)
			if err != nil {
				return nil, err
			}
			drawn[set.Name] = append(drawn[set.Name], p)
		}
	}
	return predicted(d, func(set experiment.Set) (*predict.Prediction, error) { return predict.Ensemble(drawn[set.Name]...) })
}

// parameters are all that are trained, one after the other.
func parameters(m *nets.Model) (all []float64, err error) {
	for _, v := range spec.Trained(m.Store) {
		values, _, failed := params.Values(m.Store, v.Path())
		all, err = append(all, values...), errors.Join(err, failed)
	}
	return all, err
}

// setParameters gives the model the parameters of a draw.
func setParameters(m *nets.Model, w []float64) (err error) {
	for _, v := range spec.Trained(m.Store) {
		size := v.Shape().Size()
		err, w = errors.Join(err, v.SetValue(params.FromFloat64(v.Shape(), w[:size]))), w[size:]
	}
	return err
}

// remadeBatches is after how many batches a running statistic has forgotten what it was: all but .9^100 of it, see params.Follow.
const remadeBatches = 100

// remakeStatistics passes training inputs through a network that has running statistics, as in training, to make these anew.
func remakeStatistics(ctx context.Context, m *nets.Model, x nets.Inputs, batch int) error {
	isRunning := func(v *model.Variable) bool { return params.RoleOf(v, m.Store) == params.Running }
	if !slices.ContainsFunc(slices.Collect(m.Store.IterVariables()), isRunning) {
		return nil
	}
	for done := 0; done < remadeBatches; done += (x.Len() + batch - 1) / batch {
		if _, err := predict.Sample(ctx, m, x, predict.Options{Samples: 1, BatchSize: batch, Training: true}); err != nil {
			return err
		}
	}
	return nil
}

// single refuses experiments of several networks.
func single(e experiment.Experiment) error {
	if e.Method.Members > 1 {
		return fmt.Errorf("a %T is for a single network; leave Members out", e.Method.Program)
	}
	return nil
}

// predicted are predictions of all sets.
func predicted(d experiment.Data, by func(experiment.Set) (*predict.Prediction, error)) (*experiment.Predictions, error) {
	all := &experiment.Predictions{}
	for _, set := range d.Sets {
		p, err := by(set)
		if err != nil {
			return nil, err
		}
		all.Sets = append(all.Sets, experiment.Prediction{Set: set.Name, Targets: set.Targets, Labels: set.Labels, Prediction: *p})
	}
	return all, nil
}
