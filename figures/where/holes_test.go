package where

import (
	"math"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// madeHoles are results on all holes. Density is better by the logarithm of the distance, worse by it on two sets, and equal on one
// load. Widths grow with the energy. One run of the control on Boston and one on a load have diverged.
func madeHoles(s experiment.Grid, ours, control experiment.Method) (list []experiment.Result) {
	for _, dataset := range holeDatasets {
		measured := uci.Data{Name: dataset, Kind: uci.Hole}.Measured()
		sign := 1.0
		if dataset == "yacht" || dataset == "wine" {
			sign = -1
		}
		for _, m := range []experiment.Method{ours, control} {
			for _, e := range runs(s, uci.Data{Name: dataset, Kind: uci.Hole}, m) {
				nll, width := float64(e.Seed), 1.0
				if m.Equal(ours) {
					if width = math.Pow(measured[e.Split].Energy, 0.5); dataset != cooling {
						nll -= sign * math.Log(measured[e.Split].Distance)
					}
				}
				list = append(list, experiment.Result{ID: e.ID(), Metrics: map[string]float64{"nll": nll, "model_std": width},
					Diverged: (dataset == "boston" || dataset == cooling) && m.Equal(control) && e.Split == 3 && e.Seed == 2})
			}
		}
	}
	return list
}

// With five of seven sets the mean correlation is (5 - 2)/7, and no permutation is as far from 0; four would not do.
func TestHolesTable(t *testing.T) {
	s := holeGrids[0]
	table := must.Get(holesTable(tables.Of(madeHoles(s, methods.Density, methods.DensityMean))))(t)
	row := s.Title + ", "
	for _, c := range [][3]string{
		{"Boston Housing", "NLL less mean energy, distance", "-1.00"}, {"Wine Quality Red", "NLL less mean energy, distance", "+1.00"},
		{bothLoads, "NLL less mean energy, distance", "-1.00"}, {"Kin8nm", "width over mean energy, energy", "+1.00"}, {"All sets", "NLL less mean energy, distance", "-0.429"},
	} {
		if got := figtest.Cell(t, table, row+c[0], c[1]); !strings.HasPrefix(got, c[2]) {
			t.Errorf("%s, %s: %q, want %q", c[0], c[1], got, c[2])
		}
	}
	last := table.Rows[len(table.Rows)-1].Cells
	if len(table.Rows) != 8 || len(table.Columns) != 1+5 || last[0].Verdict != "" || last[1].Verdict != report.Better || last[2].Verdict != report.NotSignificant || last[3].Verdict != "" {
		t.Errorf("%d rows, columns %q, last %+v", len(table.Rows), table.Columns, last)
	}
	sets := comparison{s, uci.Hole, methods.Density, methods.DensityMean, false}.ofInputs(tables.Of(madeHoles(s, methods.Density, methods.DensityMean)), holeDatasets...)
	if len(sets) != 7 || len(sets[0]) != 11 || len(sets[2]) != 11 {
		t.Fatalf("%d sets, %d and %d holes of Boston and Energy without the diverged ones", len(sets), len(sets[0]), len(sets[2]))
	}
	for i := range sets[0] {
		sets[0][i].difference *= -1
	}
	if d := together(sets, distance); d.P != 1 {
		t.Errorf("with four of seven sets p is %g", d.P)
	}
}

// The location mixture is compared on holes with an energy below 1, where madeHoles have smaller widths. One of them diverged.
func TestPlacesTable(t *testing.T) {
	table := must.Get(placesTable(tables.Of(madeHoles(holeGrids[1], places, placesMean))))(t)
	if got := figtest.Cell(t, table, places.Name, "Wider than its mean energy"); got != "0 of 55" {
		t.Errorf("%q are wider", got)
	}
	if len(table.Rows) != 1 {
		t.Errorf("%d rows", len(table.Rows))
	}
}
