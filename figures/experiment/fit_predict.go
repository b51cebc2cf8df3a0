package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
)

// predictions predicts all sets of all experiments.
func (f *fit) predictions(ctx context.Context) ([]*Predictions, error) {
	all := make([]*Predictions, len(f.list))
	for i, e := range f.list {
		all[i] = &Predictions{Experiment: e.id, Split: e.Split, Diverged: f.diverged[i], Unit: f.data[i].unit(), Zero: f.data[i].Zero, probed: e.Task.Probe != nil}
	}
	if !f.group.replicas && f.diverged[0] {
		return all, nil
	}
	if err := f.inspect(all); err != nil {
		return nil, err
	}
	extra, err := f.probe(ctx)
	if err != nil {
		if errors.Is(err, metrics.ErrValue) {
			all[0].Diverged = true
			return all, nil
		}
		return nil, fmt.Errorf("probing the networks: %w", err)
	}
	for k, set := range f.data[0].Sets {
		f.report(f.unit(), 1, fmt.Sprintf("predicting the set %q", set.Name))
		found, err := f.keptSet(k, func() ([]Prediction, error) { return f.predictSet(ctx, k, extra) })
		if errors.Is(err, metrics.ErrValue) && !f.group.replicas {
			all[0].Diverged = true
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the set %q: %w", set.Name, err)
		}
		for i := range found {
			all[i].Sets = append(all[i].Sets, found[i])
			all[i].Diverged = all[i].Diverged || !found[i].finite()
		}
	}
	return all, nil
}

// inspect measures the networks. An experiment with a number that is not finite fails alone.
func (f *fit) inspect(all []*Predictions) error {
	inspect := f.first().Task.Inspect
	if inspect == nil {
		return nil
	}
	for i, p := range all {
		if p.Diverged {
			continue
		}
		var err error
		if p.Inspected, err = inspect(f.models, i*f.members(), f.members()); err != nil {
			return fmt.Errorf("inspecting the networks: %w", err)
		}
		if p.Inspected == nil { // says that they were inspected
			p.Inspected = map[string]float64{}
		}
		for _, name := range slices.Sorted(maps.Keys(p.Inspected)) {
			if v := p.Inspected[name]; math.IsNaN(v) || math.IsInf(v, 0) {
				f.failed[i] = fmt.Errorf("Task.Inspect returned %v as %q; its numbers must be finite", v, name)
			}
		}
	}
	return nil
}

// probe prepares the task's Probe; nil for none.
func (f *fit) probe(ctx context.Context) (func(ctx context.Context, set Set) (map[string][]float64, error), error) {
	probe := f.first().Task.Probe
	if probe == nil {
		return nil, nil
	}
	return probe(ctx, f.models, f.data[0])
}

// predictSet predicts set number k of all experiments.
func (f *fit) predictSet(ctx context.Context, k int, extra func(ctx context.Context, set Set) (map[string][]float64, error)) ([]Prediction, error) {
	sets := forEachNetwork(f, func(d Data) train.Dataset { return d.Sets[k].Dataset })
	seeds := f.seeds()
	var drawn []*Prediction
	for i, m := range f.models {
		sets, seeds := sets, seeds
		if !f.group.replicas {
			sets, seeds = sets[i:i+1], seeds[i:i+1]
		}
		if !f.first().Recipe.SharedNoise {
			if err := startNoise(m, seeds, f.data[0].Sets[k].Name); err != nil {
				return nil, err
			}
		}
		found, err := f.draw(ctx, m, sets)
		if err != nil {
			return nil, err
		}
		drawn = append(drawn, found...)
	}
	all := make([]Prediction, len(f.list))
	for i := range all {
		p, err := mixture(drawn[i*f.members() : (i+1)*f.members()])
		if err != nil {
			return nil, err
		}
		p.Set = f.data[i].Sets[k].Name
		if extra != nil {
			if p.Extra, err = extra(ctx, f.data[i].Sets[k]); err != nil {
				return nil, fmt.Errorf("probing the networks: %w", err)
			}
		}
		all[i] = *p
	}
	return all, nil
}

// startNoise lets the noise of a model begin anew, with draws that depend on its seeds and a name alone.
func startNoise(m *nets.Model, seeds []uint64, name string) error {
	own := make([]uint64, len(seeds))
	for i, seed := range seeds {
		sum := sha256.Sum256(fmt.Appendf(nil, "noise of %q by %d", name, seed))
		own[i] = binary.LittleEndian.Uint64(sum[:])
	}
	if m.Host == nil {
		return m.Store.SetRNGStateFromSeed(int64(own[0]))
	}
	state, err := stochastic.NewReplicatedHostSampler(own).State()
	if err != nil {
		return err
	}
	return m.Host.SetState(state)
}

// ImageBatch is how many images a model predicts at once: 128 on the pure Go backend, and 500 on any other.
func ImageBatch(m *nets.Model) int {
	if m.Host != nil {
		return 128
	}
	return 500
}

// draw predicts sets by a model: of replicas each its own, and else one.
func (f *fit) draw(ctx context.Context, m *nets.Model, sets []train.Dataset) ([]*Prediction, error) {
	e := f.first()
	options := predict.Options{Samples: e.Recipe.Samples, BatchSize: e.Recipe.PredictBatch, Energies: f.group.traits.Energies, KeepOutputs: f.keepOutputs}
	if f.group.images && options.BatchSize == 0 {
		options.BatchSize = min(ImageBatch(m), sets[0].Len())
	}
	var drawn []*predict.Prediction
	var err error
	switch {
	case closedForm(e):
		drawn, err = marginals(ctx, m, floatsOf(sets))
	case f.group.replicas:
		drawn, err = predict.SampleReplicas(ctx, m, floatsOf(sets), options)
	default:
		drawn = make([]*predict.Prediction, 1)
		drawn[0], err = predict.Sample(ctx, m, sets[0].Inputs, options)
	}
	if err != nil {
		return nil, err
	}
	all := make([]*Prediction, len(drawn))
	for i, p := range drawn {
		all[i] = &Prediction{Targets: sets[i].Targets, Labels: sets[i].Labels, Prediction: *p, likelihood: m.Likelihood}
	}
	return all, f.addDensities(m, sets, all)
}

// marginals are the predictions of a Gaussian process in closed form.
func marginals(ctx context.Context, m *nets.Model, x []nets.Floats) ([]*predict.Prediction, error) {
	found, err := predict.Marginals(ctx, m, x...)
	if err != nil {
		return nil, err
	}
	var all []*predict.Prediction
	for _, mixture := range found {
		all = append(all, &predict.Prediction{Mixture: mixture, Width: 1, LastConvolution: -1})
	}
	return all, nil
}
