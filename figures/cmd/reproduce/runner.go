package main

import (
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
	if s.gpu && s.computes == environment.ShortTrainings {
		s.computes = environment.SmallNetworks
	}
	machine, err := jobs.OpenMachine(s.computes)
	if err != nil {
		return nil, err
	}
	s.note(machine.Choice)
	if s.gpu && !strings.HasPrefix(machine.Info.Backend, "xla:cuda") {
		return nil, usagef("this was asked to compute on a GPU, by --devices or --"+gpuFlag+", and computes on %s; leave that out, or set up a GPU (%s)", machine.Info.Backend, environment.ConfigVariable)
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
