package main

import (
	"densityuncertainty/figures/run"
	"densityuncertainty/figures/runner"
)

// settings are what a runner is given.
type settings struct {
	work        string // folder for checkpoints
	predictions string // folder for predictions
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
	r.Work, r.Predictions, r.Notes = s.work, s.predictions, s.note
	return r, nil
}
