package experiment

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
)

// A Program carries out an experiment instead of the engine, such as HMC, which draws networks, or active learning, which chooses what
// they are trained on. FitOne trains networks for it. It may have a method CheckData(ctx, Experiment, Data) error, which the engine
// calls with a network or layers of your own before it trains any experiment.
type Program interface {
	// Check returns an error for invalid settings of the Program, or an experiment that it cannot carry out, before training.
	Check(e Experiment) error
	// Run returns the Sets and Metrics of the predictions. An error that wraps train.ErrDiverged or metrics.ErrValue marks the
	// experiment as diverged. The settings of e.Task.Likelihood are in the data's own unit (likelihood.Rescaler), although the targets of d
	// may be standardised. Call progress with the part that is done, from 0 to 1.
	Run(ctx context.Context, e Experiment, d Data, progress func(done float64, note string)) (*Predictions, error)
}

// carryOutBy has a Program carry out the experiment.
func (j *job) carryOutBy(ctx context.Context, program Program) error {
	e, d := j.first(), j.first().data
	d.by = j
	p, err := program.Run(ctx, e.Experiment, d, j.report)
	switch {
	case errors.Is(err, train.ErrDiverged), errors.Is(err, metrics.ErrValue):
		e.predictions.diverge(err.Error())
	case err != nil:
		return err
	case p == nil:
		return fmt.Errorf("the Method.Program, a %T, returned neither Predictions nor an error", program)
	default:
		p.Experiment, p.Split, p.Unit, p.Zero = e.id, e.Split, e.data.Unit, e.data.Zero
		e.predictions = p
		for i := range p.Sets {
			_ = p.Sets[i].keepDensities() // a metric that needs them says why there are none
		}
	}
	return nil
}

// FitOne trains the networks of an experiment, its members, for a Program, as the engine does for itself: with its checks,
// backend and checkpoints, and members as replicas of one graph where that is possible. e and d are what the engine gave to
// the Program, or changed, such as with other training data or another Seed.
//
// progress is called with the part of training and prediction that is done, from 0 to 1. each, if not nil, is called
// after every step; that training has no checkpoints, since a resumed one would not repeat the calls. Call FitOne and
// PredictOne for one training after the other, in the same order each time. If networks diverge, the error wraps
// train.ErrDiverged.
func FitOne(ctx context.Context, e Experiment, d Data, progress func(done float64, note string), each func(m *nets.Model, at train.Progress)) (members []*nets.Model, err error) {
	j, err := fitOne(ctx, e, d, progress, each)
	for number := 0; err == nil && number < j.members(); number++ {
		members = append(members, nil)
		members[number], err = j.network(number)
	}
	return members, err
}

// PredictOne trains the networks of an experiment as FitOne does, and predicts all sets of the data, as the engine does.
func PredictOne(ctx context.Context, e Experiment, d Data, progress func(done float64, note string)) ([]Prediction, error) {
	j, err := fitOne(ctx, e, d, progress, nil)
	if err == nil {
		err = j.predict(ctx)
	}
	if err != nil {
		return nil, err
	}
	return j.first().predictions.Sets, j.first().failure()
}

func fitOne(ctx context.Context, e Experiment, d Data, progress func(done float64, note string), each func(m *nets.Model, at train.Progress)) (*job, error) {
	by := d.by
	if by == nil {
		return nil, errors.New("experiment: FitOne trains for a Program, with the Data that an Engine gave it")
	}
	if progress == nil {
		progress = func(float64, string) {}
	}
	if !by.fitting.CompareAndSwap(false, true) {
		return nil, errors.New("experiment: FitOne is called while another FitOne of the same Program trains; call one after the other")
	}
	defer by.fitting.Store(false)
	e.Method.Program = nil
	err := e.Check()
	if err == nil {
		d, err = e.checked(d)
	}
	g := &group{}
	if err == nil {
		err = g.inspect(e, d)
	}
	if err != nil {
		return nil, err
	}
	one := &entry{Experiment: e, group: g, data: d, predictions: &Predictions{}}
	j := &job{run: by.run, list: []*entry{one}, backend: by.backend, info: by.info, progress: progress, each: each}
	if by.folder != "" && each == nil {
		by.fitted++ // a Program that resumes asks in the same order
		j.folder = filepath.Join(by.folder, fmt.Sprintf("fit-%d", by.fitted))
	}
	if err = j.train(ctx); err == nil {
		err = one.failure()
	}
	return j, err
}

// failure is the error for networks that diverged, or have a Gaussian process that could not be finished.
func (e *entry) failure() error {
	if e.predictions.Diverged {
		return fmt.Errorf("%w: %s", train.ErrDiverged, e.predictions.Reason)
	}
	return e.unfinished
}
