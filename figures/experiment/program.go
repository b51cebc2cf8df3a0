package experiment

import (
	"context"
	"errors"

	"densityuncertainty/dul/train"
)

// carryOutBy has a Program carry out the experiment.
func (f *fit) carryOutBy(ctx context.Context, program Program) *Predictions {
	e, d := f.list[0], f.data[0]
	p, err := program.Run(ctx, e.Experiment, d, func(done float64, note string) { f.report(f.unit, done, note) })
	if err != nil {
		p = &Predictions{}
	}
	if errors.Is(err, train.ErrDiverged) {
		p.diverge(err.Error())
	}
	f.failed = []error{err}
	p.Experiment, p.Split, p.Unit, p.Zero = e.id, e.Split, d.Unit, d.Zero
	return p
}
