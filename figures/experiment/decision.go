package experiment

import (
	"context"
	"errors"

	"densityuncertainty/dul/train"
)

// decide has a Decision find the numbers of all experiments. It keeps no predictions.
func (f *fit) decide(ctx context.Context, decision Decision) []*Predictions {
	numbers, failed := decision.Decide(ctx, f.experiments(), f.data, func(done float64, note string) { f.report(f.unit, done, note) })
	all := make([]*Predictions, len(f.list))
	f.failed = failed
	for i, e := range f.list {
		all[i] = &Predictions{Experiment: e.id, Split: e.Split, Unit: f.data[i].Unit, Zero: f.data[i].Zero}
		switch err := failed[i]; {
		case errors.Is(err, train.ErrDiverged):
			all[i].diverge(err.Error())
		case err == nil:
			all[i].Inspected = numbers[i]
			failed[i] = finiteNumbers("Task.Decision", numbers[i])
		}
	}
	return all
}
