package main

import (
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/claims"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
)

// sets are the experiments of all studies.
func sets() []results.Set { return slices.Concat(toy.Sets(), uci.Sets(), cifar.Sets()) }

// namedTables are the tables of all studies.
func namedTables() []report.NamedTable {
	return slices.Concat(claims.Tables(), uci.Tables(), toy.Tables(), cifar.Tables())
}

// namedFigures are the figures of all studies.
func namedFigures() []report.NamedFigure { return slices.Concat(toy.Figures(), uci.Figures()) }

// optionsTables are the options of each study's protocol, by the name of the study.
func optionsTables() map[string]report.Table {
	return map[string]report.Table{results.Toy: toy.OptionsTable(), results.UCI: uci.OptionsTable(), results.Images: cifar.OptionsTable()}
}

// datasetNames are the data sets of all studies.
func datasetNames() []string {
	return slices.Concat(uci.Datasets(), cifar.Datasets(), []string{toy.CubicName, toy.MoonsName})
}

// check returns an error for an experiment that no study can carry out.
func check(e results.Experiment) error {
	if err := e.Validate(); err != nil {
		return err
	}
	_, err := filledProtocol(e)
	return err
}

// filledProtocol is the protocol of an experiment with every number filled in for its method.
func filledProtocol(e results.Experiment) (any, error) {
	switch e.Study {
	case results.Toy:
		p, _, err := toy.ProtocolOf(e, methods.All())
		return p, err
	case results.UCI:
		p, _, err := uci.ProtocolOf(e, methods.All())
		return p, err
	}
	p, m, err := imageProtocol(e)
	if err != nil {
		return nil, err
	}
	return p.Filled(m), nil
}

// imageProtocol is the protocol and the method of an image experiment.
func imageProtocol(e results.Experiment) (cifar.Protocol, methods.Method, error) {
	m, has := methods.All().Named(e.Method)
	if !has {
		return cifar.Protocol{}, m, fmt.Errorf("%v: there is no method %q", e, e.Method)
	}
	p, err := cifar.ProtocolOf(e)
	if err == nil {
		err = p.Check(m)
	}
	return p, m, err
}

// selected returns the one of a list whose name is asked for, or all of them. kind says what they are.
func selected[T any](command, kind string, list []T, name func(T) string, positional []string) ([]T, error) {
	var names []string
	for _, one := range list {
		names = append(names, name(one))
	}
	switch {
	case len(positional) != 1:
		return nil, usagef("%s wants one %s: %s or all", command, kind, strings.Join(names, ", "))
	case positional[0] == "all":
		return list, nil
	}
	i := slices.Index(names, positional[0])
	if i < 0 {
		return nil, usagef("unknown %s %q, want %s or all", kind, positional[0], strings.Join(names, ", "))
	}
	return list[i : i+1], nil
}
