package toy

import "densityuncertainty/figures/results"

// The sets.
const (
	figure1Set  = "figure1"
	distanceSet = "distance"
)

// setOf is the set of the runs that a figure needs.
func setOf(figure string) string {
	if figure == "distance-toy" || figure == "distance-moons" {
		return distanceSet
	}
	return figure1Set
}

// Sets is the catalogue of the study's experiments. An experiment that two figures need is in the sets of both.
func Sets() []results.Set {
	return []results.Set{
		{Name: figure1Set, Doc: "Figure 1: predictive bands on one-dimensional regression with a gap, 20 seeds", Experiments: figure1()},
		{Name: distanceSet, Doc: "Distance awareness of six methods on problems that can be drawn: the cubic of Figure 1 and two moons, 3 seeds", Experiments: distance()},
	}
}

// figure1 are the runs of the rows of the table of gap ratios, among which are those of the figure.
func figure1() (all []results.Experiment) {
	for _, scaled := range []func(Protocol) Protocol{manySeeds, Protocol.Quick} {
		for _, r := range gapRows() {
			all = append(all, scaled(Cubic()).Experiments(r.Method)...)
		}
	}
	return all
}

func full(p Protocol) Protocol { return p }

// distance are the runs of each method on both problems, seed by seed.
func distance() (all []results.Experiment) {
	for _, scaled := range []func(Protocol) Protocol{full, Protocol.Quick} {
		for _, m := range DistanceMethods() {
			cubic, moons := scaled(Cubic()).Experiments(m), scaled(Moons()).Experiments(m)
			for i := range cubic {
				all = append(all, cubic[i], moons[i])
			}
		}
	}
	return all
}
