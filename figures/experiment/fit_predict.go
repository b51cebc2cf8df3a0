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

// predictions predicts all sets of all experiments.
func (f *fit) predictions(ctx context.Context) ([]*Predictions, error) {
	all := make([]*Predictions, len(f.list))
	for i, e := range f.list {
		all[i] = &Predictions{Experiment: e.id, Split: e.Split, Diverged: f.diverged[i] != "", Reason: f.diverged[i], Unit: f.data[i].Unit, Zero: f.data[i].Zero}
	}
	if !slices.Contains(f.diverged, "") {
		return all, nil
	}
	var each map[string]map[string][]float64
	if after := f.first().Task.After; after != nil {
		numbers, found, err := after(ctx, f.models, f.data[0])
		if errors.Is(err, metrics.ErrValue) {
			all[0].diverge("Task.After: " + err.Error())
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("Task.After: %w", err)
		}
		all[0].Inspected, each = map[string]float64{}, found // also without numbers, which says that it was asked
		maps.Copy(all[0].Inspected, numbers)
	}
	for k, set := range f.data[0].Sets {
		f.report(f.unit, 1, fmt.Sprintf("predicting the set %q", set.Name))
		found, err := f.predictSet(ctx, k)
		if errors.Is(err, metrics.ErrValue) && len(all) == 1 {
			all[0].diverge(fmt.Sprintf("predicting the set %q: %v", set.Name, err))
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the set %q: %w", set.Name, err)
		}
		for i := range found {
			found[i].Extra = each[set.Name]
			all[i].Sets = append(all[i].Sets, found[i])
			if text := found[i].notFinite(); text != "" {
				all[i].diverge(text)
			}
		}
	}
	return all, nil
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
