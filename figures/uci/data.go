package uci

import (
	"context"
	"fmt"
	"math"
	"slices"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/results"
)

// Year names the one data set with a single split.
const Year = "year"

// Datasets lists the UCI data sets in the order of the paper's tables. "energy" has the heating load
// as its target and "energy-cooling" the cooling load, which is the one in the paper's tables.
func Datasets() []string {
	return []string{"boston", "concrete", "energy", "energy-cooling", "kin8nm", "naval", "protein", "wine", "yacht", Year}
}

// smallDatasets are those on which methods that the paper does not have are run too.
func smallDatasets() []string {
	return []string{"boston", "concrete", "energy", "energy-cooling", "wine", "yacht"}
}

// splitCount is the number of splits of a data set, hence the number of runs that the paper's mean and standard
// deviation are over: 20, of Protein 5, of Year 1; of GapSplits one for each input. It is 0 for no data set.
func (p Protocol) splitCount(dataset string) int {
	_, features, published, err := datasets.UCISize(dataset)
	if set := ownData(p.Own).named(dataset); set != nil {
		features, published, err = set.D, ownSplits, nil
	}
	switch {
	case err != nil:
		return 0
	case p.Splits == GapSplits:
		return features
	}
	return published
}

// paperRows are the paper's names of the data sets. The paper's Energy target is the cooling load,
// although the text does not say so; the heating load is a row of our own.
var paperRows = map[string]string{
	"boston":         "Boston Housing",
	"concrete":       "Concrete Strength",
	"energy-cooling": "Energy Efficiency",
	"kin8nm":         "Kin8nm",
	"naval":          "Naval Propulsion",
	"protein":        "Protein Structure",
	"wine":           "Wine Quality Red",
	"yacht":          "Yacht Hydrodynamics",
	Year:             "Year Prediction MSD",
}

// DatasetTitle is a data set's name in the tables: the paper's where it has one.
func DatasetTitle(dataset string) string {
	switch dataset {
	case "energy":
		return "Energy Efficiency (heating)"
	case "energy-cooling":
		return "Energy Efficiency (cooling)"
	}
	if row, ok := paperRows[dataset]; ok {
		return row
	}
	return dataset
}

// titleWithSplits is DatasetTitle, with the kind of splits unless it is GalSplits, those of the paper's tables.
func titleWithSplits(dataset, splits string) string {
	switch splits {
	case GapSplits:
		return DatasetTitle(dataset) + ", gaps"
	case RandomSplits:
		return DatasetTitle(dataset) + ", random splits"
	}
	return DatasetTitle(dataset)
}

// splitData is one split of a data set, standardised by its training part.
type splitData struct {
	experiment results.Experiment
	train      train.Dataset
	heldOut    train.Dataset // of the training part, for early stopping
	inputs     nets.Floats   // of the test part
	target     []float64
	scale      datasets.Scaler // of the target
}

// load reads the split of an experiment, on a UCI set or one of own, with early stopping without the examples that are
// held out of its training part. Inputs and targets are standardised by means and deviations of the training part alone;
// a column that is constant there is only centred.
func load(ctx context.Context, e results.Experiment, earlyStopping bool, own ...*datasets.Regression) (splitData, error) {
	read := func() (*datasets.Regression, error) { return datasets.UCI(e.Dataset) }
	mine := ownData(own).named(e.Dataset)
	if mine != nil {
		read = func() (*datasets.Regression, error) { return mine, nil }
	}
	if e.Dataset == Year { // may be downloaded, which Ctrl-C must be able to stop
		read = func() (*datasets.Regression, error) { return datasets.Year(ctx, nil) }
	}
	data, err := read()
	if err != nil {
		return splitData{}, err
	}
	var splits []datasets.Split
	switch e.Splits {
	case RandomSplits:
		splits = datasets.RandomSplits(data.N, e.Split+1)
	case GapSplits:
		splits = datasets.GapSplits(data)
	default:
		if mine != nil {
			return splitData{}, fmt.Errorf("%v: data of one's own have no published splits; use %s or %s", e, RandomSplits, GapSplits)
		}
		if splits, err = datasets.GalSplits(e.Dataset); err != nil {
			return splitData{}, err
		}
	}
	if e.Split >= len(splits) {
		return splitData{}, fmt.Errorf("%v: the data set has %d splits", e, len(splits))
	}
	split := splits[e.Split]
	if e.Scale == results.Grid {
		split = forChoosing(split, e.Split)
	}
	var heldOut []int
	if earlyStopping {
		inner := forChoosing(split, e.Split)
		split.Train, heldOut = inner.Train, inner.Test
	}
	features := datasets.FitScaler(data.X, data.D, split.Train)
	target := datasets.FitScaler(data.Y, 1, split.Train)
	of := func(rows []int) (inputs nets.Floats, targets []float64) {
		x, y := data.Take(rows)
		return nets.Rows(features.Transform(x), data.D), target.Transform(y)
	}
	s := splitData{experiment: e, scale: target}
	s.train.Inputs, s.train.Targets = of(split.Train)
	s.heldOut.Inputs, s.heldOut.Targets = of(heldOut)
	s.inputs, s.target = of(split.Test)
	return s, nil
}

// heldOutPart is the part of the training examples on which hyperparameters are chosen, and epochs by early stopping.
const heldOutPart = 0.2

// forChoosing takes the test part of a split away, and makes a fifth of its training part, drawn at random, the test part.
func forChoosing(s datasets.Split, number int) datasets.Split {
	n := len(s.Train)
	train, held := datasets.HoldOut(n, max(1, int(math.Round(heldOutPart*float64(n)))), uint64(number))
	of := func(places []int) []int {
		rows := make([]int, len(places))
		for i, place := range places {
			rows[i] = s.Train[place]
		}
		slices.Sort(rows)
		return rows
	}
	return datasets.Split{Train: of(train), Test: of(held)}
}
