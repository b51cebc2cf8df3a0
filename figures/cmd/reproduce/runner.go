package main

import (
	"densityuncertainty/figures/run"
	"densityuncertainty/figures/runner"
)

// newRunner returns what trains the experiments. It is a variable so that a test can run this program
// with a runner that does not train.
var newRunner = func() (run.Runner, error) { return runner.New() }
