package where

import (
	"slices"

	"densityuncertainty/dul"
	"densityuncertainty/dul/energy"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/uci"
)

// holeDatasets are the data sets of question 11. The two loads of Energy are one set of inputs.
var holeDatasets = append(uci.SmallDatasets(), "kin8nm", "protein")

// holeSettings are those of question 11, and holeMethods its methods, density first.
var (
	holeSettings = gapSettings[1:]
	holeMethods  = slices.Concat([]experiment.Method{methods.Density}, controls, []experiment.Method{methods.MCDropout})
)

// holeSeeds is the number of seeds of each hole of a data set.
func holeSeeds(dataset string) uint64 {
	switch dataset {
	case "kin8nm":
		return 5
	case "protein":
		return 3
	}
	return 10
}

// holes are the experiments of a method on the holes of a data set.
func (s gapSetting) holes(dataset string, m experiment.Method) experiment.Experiments {
	e := experiments(s.preset, uci.Data{Name: dataset, Kind: uci.Hole}, m)[0]
	return crossed(e, e.Task.Data.Splits(), holeSeeds(dataset))
}

// places and placesMean are the methods of question 13, which it compares with methods.Density.
var places, placesMean = locationMixture("density-locations", "Density, location mixture", false), locationMixture("density-locations-mean", "Density, location mixture, mean energy", true)

func locationMixture(key, name string, mean bool) experiment.Method {
	return experiment.Method{Key: key, Name: name, Layers: dul.Density{Energy: energy.LocationMixture{Components: 16}, MeanEnergy: mean}}
}

// lowHoles are the numbers of the holes of a data set to which one Gaussian gives less than average energy.
func lowHoles(dataset string) (all []int) {
	for k, h := range (uci.Data{Name: dataset, Kind: uci.Hole}).Measured() {
		if h.Energy < 1 {
			all = append(all, k)
		}
	}
	return all
}

// holeRuns are the experiments of question 11, the smaller data sets first.
func holeRuns() (all experiment.Experiments) {
	for _, dataset := range holeDatasets {
		for _, s := range holeSettings {
			for _, m := range holeMethods {
				all = append(all, s.holes(dataset, m)...)
			}
		}
	}
	return all
}

// placesRuns are those of question 13 on the low holes, and exactPlacesRuns those beside exact posteriors.
func placesRuns() (all experiment.Experiments) {
	for _, dataset := range holeDatasets {
		for _, m := range []experiment.Method{places, placesMean} {
			all = append(all, holeSettings[1].holes(dataset, m).OnSplits(lowHoles(dataset)...)...)
		}
	}
	return all
}

func exactPlacesRuns() (all experiment.Experiments) {
	for _, p := range everyGap() {
		all = append(all, slices.Concat(p.runs(places), p.runs(placesMean))...)
	}
	return all
}
