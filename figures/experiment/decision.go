package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"

	"densityuncertainty/dul/train"
)

var errDiverged, errStopped = errors.New("the networks of a round diverged"), errors.New("another experiment failed")

// A deciding is the Decision of one experiment, which stops where it calls learn.
type deciding struct {
	next    func() (observed train.Dataset, more bool) // goes on to the next call of learn
	stop    func()
	found   []Prediction // what learn returns
	err     error
	numbers map[string]float64 // what Decide returned, if there is no more
	failed  error
}

// newDeciding begins the Decision of an experiment.
func newDeciding(e *planned, d Data) *deciding {
	of := &deciding{}
	of.next, of.stop = iter.Pull(func(yield func(train.Dataset) bool) {
		of.numbers, of.failed = e.Task.Decision.Decide(d, rand.New(rand.NewPCG(e.Seed, uint64(e.Split))), func(observed train.Dataset) ([]Prediction, error) {
			if !yield(observed) {
				return nil, errStopped
			}
			return of.found, of.err
		})
	})
	return of
}

// decide carries out the Decisions of all experiments, round by round, so that they can be replicas of one graph. It keeps
// their numbers, and no predictions.
func (f *fit) decide(ctx context.Context) ([]*Predictions, error) {
	var all []*deciding
	for i, e := range f.list {
		all = append(all, newDeciding(e, f.data[i]))
		defer all[i].stop()
	}
	for ; ; f.round++ {
		one := &fit{run: f.run, unit: unit{group: f.group}, backend: f.backend, info: f.info, round: f.round}
		var asking []*deciding
		for i, d := range all {
			if observed, asks := d.next(); asks {
				data := f.data[i]
				data.Train = observed
				one.list, one.data, asking = append(one.list, f.list[i]), append(one.data, data), append(asking, d)
			}
		}
		if len(asking) == 0 {
			break
		}
		if err := one.train(ctx); err != nil {
			return nil, fmt.Errorf("training in round %d: %w", f.round, err)
		}
		found, err := one.predictions(ctx)
		if err != nil {
			return nil, fmt.Errorf("predicting in round %d: %w", f.round, err)
		}
		for k, d := range asking {
			if d.found, d.err = found[k].Sets, one.failed[k]; found[k].Diverged {
				d.err = errDiverged
			}
		}
		f.speed = one.speed
	}
	var kept []*Predictions
	f.failed = make([]error, len(f.list))
	for i, d := range all {
		p := &Predictions{Experiment: f.list[i].id, Split: f.list[i].Split, Unit: f.data[i].Unit, Zero: f.data[i].Zero, Inspected: d.numbers}
		if errors.Is(d.failed, errDiverged) {
			p.diverge(errDiverged.Error())
		} else {
			f.failed[i] = cmp.Or(d.failed, finiteNumbers("Task.Decision", d.numbers))
		}
		kept = append(kept, p)
	}
	return kept, nil
}
