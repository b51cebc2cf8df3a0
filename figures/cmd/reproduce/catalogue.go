package main

import (
	"errors"
	"fmt"

	"densityuncertainty/figures/claims"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/experiment/cifar"
	"densityuncertainty/figures/experiment/methods"
	"densityuncertainty/figures/experiment/toy"
	"densityuncertainty/figures/uci"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// A catalogue is what can be run and made.
type catalogue struct {
	sets     func() []tables.Set
	tables   []tables.Named
	figures  []tables.NamedFigure
	choosers []chooser
	// export writes the networks that are part of the program, of those in a folder, and lists which it wrote and which it
	// did not find; see cifar.ExportNetworks.
	export func(x *tables.Index, from, to string) (written, missing []string, err error)
}

// A chooser chooses hyperparameters by the runs of a set.
type chooser struct {
	name, set string
	// choose returns a file of choices, and for what there are none, as runs are missing.
	choose func(x *tables.Index) (file []byte, missing []string, err error)
}

// paper is the catalogue of the paper's experiments.
func paper() catalogue {
	return catalogue{
		sets:   standInSets,
		tables: []tables.Named{claims.Named(), {Name: "uci-nll", Doc: "UCI negative log likelihood", Make: standInTable}},
		export: func(*tables.Index, string, string) ([]string, []string, error) {
			return nil, nil, errors.New("no networks here")
		},
	}
}

// standInSets are some sets, until the packages of the studies have theirs.
func standInSets() []tables.Set {
	cross := func(preset experiment.Preset, data []experiment.Source, list ...experiment.Method) experiment.Experiments {
		all, err := experiment.Cross(preset, data, list...)
		if err != nil {
			panic(err)
		}
		return all
	}
	five := []experiment.Method{methods.MFVI, methods.MCDropout, methods.VDropout, methods.Rank1, methods.Density}
	cubic := []experiment.Source{toy.Cubic{Seeds: 3}}
	uciData := uci.Sets(uci.Gal, "boston", "concrete", "energy", "energy-cooling", "kin8nm", "naval", "protein", "wine", "yacht")
	images := []experiment.Source{cifar.Images{Name: cifar.CIFAR10}}
	quick := cross(uci.Paper, uci.Sets(uci.Gal, "boston", "yacht"), five...).OnSplits(0, 1, 2).Change(uci.Quick)
	return []tables.Set{
		{Name: "figure1", Doc: "Figure 1", Parts: []tables.Part{
			{Scale: results.Full, Experiments: cross(toy.Paper, cubic, five...)}, {Scale: results.Quick, Experiments: cross(toy.Quick, cubic, five...)}}},
		{Name: "uci", Doc: "UCI regression tables: the paper's text, Gal's splits", Parts: []tables.Part{
			{Scale: results.Full, Experiments: cross(uci.Paper, uciData, five...)}, {Scale: results.Quick, Experiments: quick}}},
		{Name: "cifar-small", Doc: "ResNet-14 on 5,000 images", Parts: []tables.Part{
			{Scale: results.Small, Experiments: cross(cifar.Small, images, methods.Density, methods.MFVI)}}},
	}
}

// standInTable is the mean of the density layer.
func standInTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-nll", Caption: "Test negative log likelihood.", Columns: []string{"Data set", "NLL"}}
	for _, name := range []string{"boston", "yacht"} {
		list, err := experiment.Cross(uci.Paper, uci.Sets(uci.Gal, name), methods.Density)
		if err != nil {
			return t, err
		}
		s, err := x.Summarize(tables.Cell{Full: list}, "nll")
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, report.Row{Name: name, Cells: report.TextCells(fmt.Sprintf("%.3f", s.Mean))})
	}
	return t, nil
}
