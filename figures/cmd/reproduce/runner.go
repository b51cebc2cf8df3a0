package main

import (
	"densityuncertainty/figures/run"
	"densityuncertainty/figures/runner"
)

// settings are what a runner is given.
type settings struct {
	work        string // folder for checkpoints
	predictions string // folder for predictions
	withoutSVHN bool   // go on where SVHN is missing
	note        func(string)
}

// newRunner returns what trains the experiments. It is a variable so that a test can run this program
// with a runner that does not train.
var newRunner = func(s settings) (run.Runner, error) {
	r, err := runner.New()
	if err != nil {
		return nil, err
	}
	s.note(r.Choice)
	r.Work, r.Predictions, r.WithoutSVHN, r.Notes = s.work, s.predictions, s.withoutSVHN, s.note
	return r, nil
}
