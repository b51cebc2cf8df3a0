package toy

import (
	"fmt"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/tables"
)

// The names of the sets.
const (
	figure1Set  = "figure1"
	distanceSet = "distance"
)

// runs are the experiments of a method of this package. An error is a mistake in the package, and runs panics.
func runs(data experiment.Source, m experiment.Method) experiment.Experiments {
	list, err := experiment.Cross(Paper, []experiment.Source{data}, m)
	if err != nil {
		panic(fmt.Errorf("toy: %w", err))
	}
	return list
}

// Sets lists the experiments of the toy problems. An experiment that two figures need is in the sets of both.
func Sets() []tables.Set {
	var full, distance experiment.Experiments
	for _, row := range gapRows {
		full = append(full, gapRuns(row.Method)...)
	}
	for _, m := range distanceMethods {
		for _, data := range []experiment.Source{Cubic{Seeds: drawnSeeds}, Moons{Seeds: drawnSeeds}} {
			distance = append(distance, runs(data, m)...)
		}
	}
	return []tables.Set{
		{Name: figure1Set, Doc: "Figure 1: predictive bands on one-dimensional regression with a gap, 20 seeds", Experiments: full},
		{Name: distanceSet, Doc: "Distance awareness of six methods on problems that can be drawn: the cubic of Figure 1 and two moons, 3 seeds", Experiments: distance},
	}
}
