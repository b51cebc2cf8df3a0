package experiment

import (
	"context"
	"errors"

	"densityuncertainty/dul/train"
)

// carryOutBy has a Program carry out all experiments.
func (f *fit) carryOutBy(ctx context.Context, program Program) []*Predictions {
	all, failed := program.Run(ctx, f.experiments(), f.data, func(done float64, note string) { f.report(f.unit, done, note) })
	f.failed = failed
	for i, e := range f.list {
		if failed[i] != nil {
			all[i] = &Predictions{}
		}
		if p := all[i]; errors.Is(failed[i], train.ErrDiverged) {
			p.diverge(failed[i].Error())
		}
		all[i].Experiment, all[i].Split, all[i].Unit, all[i].Zero = e.id, e.Split, f.data[i].Unit, f.data[i].Zero
	}
	return all
}
