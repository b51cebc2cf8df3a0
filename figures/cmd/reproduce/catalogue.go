package main

import (
	"slices"

	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/claims"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
	"densityuncertainty/figures/where"
)

// A catalogue is what can be run and made.
type catalogue struct {
	rooms   []func() []tables.Set // each lists the sets of a part of the program, which takes a tenth of a second
	tables  []tables.Named
	figures []tables.NamedFigure
}

// sets lists all sets, or those up to the room that has a set of the name.
func (c catalogue) sets(name string) (all []tables.Set) {
	for _, room := range c.rooms {
		all = append(all, room()...)
		if slices.ContainsFunc(all, func(s tables.Set) bool { return s.Name == name }) {
			break
		}
	}
	return all
}

// paper is the catalogue of the paper's experiments, and of the questions beyond it.
func paper() catalogue {
	return catalogue{
		rooms:   []func() []tables.Set{toy.Sets, uci.Sets, cifar.Sets, where.Sets},
		tables:  slices.Concat([]tables.Named{claims.Named()}, uci.Tables(), toy.Tables(), cifar.Tables(), where.Tables()),
		figures: slices.Concat(toy.Figures(), uci.Figures(), cifar.Figures(), where.Figures()),
	}
}
