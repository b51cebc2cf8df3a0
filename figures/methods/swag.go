package methods

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/spec"
)

// SWAGSampler predicts by networks that are drawn from baselines.SWAG. After the part Start of the training steps the learning
// rate stays what the recipe's schedule has there, and the parameters after each epoch from there on count; all that are trained,
// with the observation noise. Statistics of batch normalisation are made anew for each draw.
type SWAGSampler struct {
	Start       float64 // from 0 to below 1
	Rank, Draws int     // the Rank of baselines.SWAG, and the number of networks
}

// Check says which settings cannot be.
func (s SWAGSampler) Check() error {
	if !(s.Start >= 0 && s.Start < 1) || s.Rank < 2 || s.Draws < 1 {
		return fmt.Errorf("methods.SWAGSampler has Start %g, Rank %d and Draws %d; they must be from 0 to below 1, and at least 2 and 1", s.Start, s.Rank, s.Draws)
	}
	return nil
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
	if e.Method.Members > 1 || e.Recipe.EarlyStopping {
		return nil, errors.New("methods.SWAGSampler takes the last epochs of one training; leave Members and EarlyStopping out")
	}
	kind := environment.SmallNetworks
	if _, is := d.Train.Inputs.(nets.Pixels); is {
		kind = environment.Images
	}
	backend, _, err := environment.OpenFor(kind)
	if err != nil {
		return nil, err
	}
	defer backend.Finalize()
	network, err := e.Task.Network.Over(e.Method.Layers)
	if err != nil {
		return nil, err
	}
	l := e.Task.Likelihood
	if r, is := l.(likelihood.Rescaler); is {
		l = r.Rescale(d.Unit, d.Zero)
	}
	split := e.Split
	if e.Recipe.SeedWithoutSplit {
		split = 0
	}
	m, err := nets.New(backend, network, l, nets.SeedOf(e.Seed, split, 0))
	if err != nil {
		return nil, err
	}
	swag, failed := baselines.SWAG{Rank: s.Rank}, error(nil)
	t := train.Trainer{Settings: e.Recipe.Settings, Progress: func(at train.Progress) {
		progress(0.9*float64(at.Step)/float64(at.Steps), fmt.Sprintf("training, epoch %d of %d", at.Epoch, at.Epochs))
		first := e.Recipe.PretrainEpochs + int(s.Start*float64(e.Recipe.Epochs))
		if whole := at.Step*at.Epochs%at.Steps == 0; !whole || at.Epoch <= first || failed != nil {
			return
		}
		var all []float64
		for _, v := range trainedVariables(m.Store) {
			values, _, err := params.Values(m.Store, v.Path())
			if err != nil {
				failed = err
				return
			}
			all = append(all, values...)
		}
		swag.Add(all)
	}}
	t.Schedule = thenConstant{t.Schedule, s.Start}
	if err := errors.Join(t.Fit(ctx, m, d.Train), failed); err != nil {
		return nil, err
	}
	return s.predict(ctx, m, &swag, d, e.Recipe)
}

// trainedVariables are the parameters that are drawn, always in one order.
func trainedVariables(store *model.Store) (all []*model.Variable) {
	for v := range store.IterVariables() {
		if role := params.RoleOf(v, store); v.Trainable && role != "" {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *model.Variable) int { return strings.Compare(a.Path(), b.Path()) })
	return all
}

// predict predicts all sets by draws of a network.
func (s SWAGSampler) predict(ctx context.Context, m *nets.Model, swag *baselines.SWAG, d experiment.Data, r experiment.Recipe) (*experiment.Predictions, error) {
	rng, drawn := rand.New(rand.NewPCG(m.Seeds()[0], 0x73776167)), make([][]*predict.Prediction, len(d.Sets))
	for range s.Draws {
		w, err := swag.Draw(rng.NormFloat64)
		if err != nil {
			return nil, err
		}
		if err := setParameters(m, w); err != nil {
			return nil, err
		}
		if err := remakeStatistics(ctx, m, d.Train.Inputs, r.BatchSize); err != nil {
			return nil, err
		}
		for k, set := range d.Sets {
			p, err := predict.Sample(ctx, m, set.Inputs, predict.Options{Samples: 1, BatchSize: r.PredictBatch})
			if err != nil {
				return nil, err
			}
			drawn[k] = append(drawn[k], p)
		}
	}
	all := &experiment.Predictions{}
	for k, set := range d.Sets {
		mixed, err := predict.Ensemble(drawn[k]...)
		if err != nil {
			return nil, err
		}
		all.Sets = append(all.Sets, experiment.Prediction{Set: set.Name, Targets: set.Targets, Labels: set.Labels, Prediction: *mixed})
	}
	return all, nil
}

// setParameters gives the model the parameters of a draw.
func setParameters(m *nets.Model, w []float64) error {
	for _, v := range trainedVariables(m.Store) {
		size := v.Shape().Size()
		if err := v.SetValue(params.FromFloat64(v.Shape(), w[:size])); err != nil {
			return err
		}
		w = w[size:]
	}
	return nil
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
