package main

import (
	"slices"
	"strings"

	"densityuncertainty/environment"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
)

// settings are what a runner is given.
type settings struct {
	folders
	computes environment.Work
	note     func(string)
}

// newRunner returns what trains the experiments. It is a variable so that a test can run this program
// with a runner that does not train.
var newRunner = func(s settings) (jobs.Runner, error) {
	machine, err := jobs.OpenMachine(s.computes)
	if err != nil {
		return nil, err
	}
	s.note(machine.Choice)
	if s.gpu && !strings.HasPrefix(machine.Info.Backend, "xla:cuda") {
		return nil, usagef("--devices is for GPUs, and this computes on %s; leave it out, or set up a GPU (%s)", machine.Info.Backend, environment.ConfigVariable)
	}
	studies := studiesOn(machine)
	images := studies[results.Images].(*cifar.Runner)
	regressions := studies[results.UCI].(uci.Runner)
	regressions.Work, regressions.Notes = s.work, s.note
	studies[results.UCI] = regressions
	images.Work, images.Predictions, images.WithoutSVHN, images.Notes = s.work, s.predictions, s.withoutSVHN, s.note
	images.Networks = s.networks
	return studies, nil
}

// studiesOn are the runners of all studies on a machine; none is needed for the costs of experiments.
func studiesOn(machine jobs.Machine) jobs.Studies {
	return jobs.Studies{
		results.Toy:    toy.Runner{Machine: machine, Methods: methods.All(), Curves: toy.Drawn},
		results.UCI:    uci.Runner{Machine: machine, Methods: methods.All()},
		results.Images: &cifar.Runner{Machine: machine, Methods: methods.All()},
	}
}

// workOf is what kind of work the batches are: images where any are, as they take nearly all of the time.
func workOf(batches [][]results.Experiment) environment.Work {
	ofImages := func(e results.Experiment) bool { return e.Study == results.Images }
	if slices.ContainsFunc(slices.Concat(batches...), ofImages) {
		return environment.Images
	}
	return environment.SmallNetworks
}
