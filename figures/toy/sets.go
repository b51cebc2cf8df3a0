package toy

import "densityuncertainty/figures/tables"

// Exhibits are the tables and pictures of the toy problems.
func Exhibits() []tables.Exhibit {
	return []tables.Exhibit{
		{Name: "gap-ratio", Doc: "Figure 1 in numbers: uncertainty inside the gap over that at the data", Table: GapRatios},
		{Name: "figure1", Doc: "the paper's Figure 1, four panels in a row", Picture: Figure1},
		{Name: "figure1-energies", Doc: "the density layer with each of its energy models", Picture: Figure1Energies},
		{Name: "distance", Doc: "methods far from their data in numbers: entropy on two moons, and the gap ratio of the cubic", Table: DistanceTable},
		{Name: "distance-toy", Doc: "eight methods on one-dimensional regression: are they less certain where there are no data?", Picture: DistanceCubic},
		{Name: "distance-moons", Doc: "eight methods on two moons: are they uncertain far away from the data?", Picture: DistanceMoons},
	}
}
