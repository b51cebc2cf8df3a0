package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
)

// predict predicts all sets of all experiments.
func (f *fit) predict(ctx context.Context) error {
	if !slices.ContainsFunc(f.said, func(p *Predictions) bool { return !p.Diverged }) {
		return nil
	}
	var each map[string]map[string][]float64
	if after := f.first().Task.After; after != nil {
		numbers, found, err := after(ctx, f.models, f.data[0])
		if errors.Is(err, metrics.ErrValue) {
			f.said[0].diverge("Task.After: " + err.Error())
			return nil
		}
		if err != nil {
			return fmt.Errorf("Task.After: %w", err)
		}
		f.said[0].Inspected, each = map[string]float64{}, found // also without numbers, which says that it was asked
		maps.Copy(f.said[0].Inspected, numbers)
	}
	for k, set := range f.data[0].Sets {
		f.report(1, fmt.Sprintf("predicting the set %q", set.Name))
		found, err := f.predictSet(ctx, k)
		if errors.Is(err, metrics.ErrValue) && len(f.list) == 1 {
			f.said[0].diverge(fmt.Sprintf("predicting the set %q: %v", set.Name, err))
			return nil
		}
		if err != nil {
			return fmt.Errorf("the set %q: %w", set.Name, err)
		}
		for i := range found {
			found[i].Extra = each[set.Name]
			f.said[i].Sets = append(f.said[i].Sets, found[i])
			if text := found[i].notFinite(); text != "" {
				f.said[i].diverge(text)
			}
		}
	}
	return nil
}

// carryOutBy has a Program carry out the experiment.
func (f *fit) carryOutBy(ctx context.Context, program Program) error {
	e, d := f.list[0], f.data[0]
	p, err := program.Run(ctx, e.Experiment, d, func(done float64, note string) { f.report(done, note) })
	if errors.Is(err, train.ErrDiverged) {
		f.said[0].diverge(err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	p.Experiment, p.Split, p.Unit, p.Zero = e.id, e.Split, d.Unit, d.Zero
	f.said[0] = p
	return nil
}

// predictSet predicts set number k of all experiments.
func (f *fit) predictSet(ctx context.Context, k int) ([]Prediction, error) {
	sets := forEachNetwork(f, func(i, _ int) train.Dataset { return f.data[i].Sets[k].Dataset })
	var drawn []*predict.Prediction
	for i, m := range f.models {
		first, end := i*f.together(), (i+1)*f.together()
		if !f.first().Recipe.SharedNoise {
			if err := m.StartNoise(f.data[0].Sets[k].Name); err != nil {
				return nil, err
			}
		}
		found, err := f.draw(ctx, m, sets[first:end])
		if err != nil {
			return nil, err
		}
		drawn = append(drawn, found...)
	}
	all := make([]Prediction, len(f.list))
	for i := range all {
		p, err := predict.Ensemble(drawn[i*f.members() : (i+1)*f.members()]...)
		if err != nil {
			return nil, err
		}
		all[i] = f.prediction(f.data[i].Sets[k], p)
	}
	return all, nil
}
