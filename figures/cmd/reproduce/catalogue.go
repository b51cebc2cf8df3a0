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
	sets    func() []tables.Set // takes some tenths of a second
	tables  []tables.Named
	figures []tables.NamedFigure
}

// paper is the catalogue of the paper's experiments, and of the questions beyond it.
func paper() catalogue {
	return catalogue{
		sets:    func() []tables.Set { return slices.Concat(toy.Sets(), uci.Sets(), cifar.Sets(), where.Sets()) },
		tables:  slices.Concat([]tables.Named{claims.Named()}, uci.Tables(), toy.Tables(), cifar.Tables(), where.Tables()),
		figures: slices.Concat(toy.Figures(), uci.Figures(), cifar.Figures(), where.Figures()),
	}
}
