package toy

import "densityuncertainty/figures/tables"

// Exhibits are the tables and pictures of the toy problems.
func Exhibits() tables.Exhibits {
	return tables.Exhibits{
		{Name: "figure1", Doc: "the paper's Figure 1, the same with each energy model, and in numbers: uncertainty inside the gap over that at the data", Picture: figure1, Parts: tables.Exhibits{
			{Name: "figure1-energies", Picture: figure1Energies}, {Name: "gap-ratio", Table: gapRatios},
		}},
		{Name: "distance", Doc: "are methods less certain far from their data? entropy on two moons, and the gap ratio of the cubic", Table: distanceTable, Parts: tables.Exhibits{
			{Name: "distance-toy", Picture: distanceCubic}, {Name: "distance-moons", Picture: distanceMoons},
		}},
	}
}
