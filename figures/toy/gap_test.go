package toy

import (
	"math"
	"slices"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

func TestGapRatios(t *testing.T) {
	ratios := map[string]float64{"Density Uncertainty (LDL)": 1.4, "Density, rank-1 mixture": 0.9, "MFVI": 0.25, "Rank-1 BNN": 0.7} // the others were not run
	metrics := func(e experiment.Experiment) map[string]float64 {
		ratio := ratios[e.Method.Name]
		if ratio == 0 || e.Preset != "toy.Paper" || e.Seed == 2 {
			return nil
		}
		return map[string]float64{results.MetricGapRatio: ratio + 0.1*float64(e.Seed%2), results.MetricGapCoverage: 0.5}
	}
	made := measured(Sets()[0].Experiments, metrics)
	diverged := runs(Cubic{Seeds: 2}, methods.MFVI)[1].ID()
	made[diverged] = experiment.Result{ID: diverged, Diverged: true}
	table := must.Get(GapRatios(tables.NewIndex(made)))(t)
	if want := []string{"Variational Dropout", clipped.Name, "Density Uncertainty (LDL, mean energy)", methods.DensityConstant.Name}; !slices.Equal(table.NotRun, want) {
		t.Errorf("not run: %q, want %q", table.NotRun, want)
	}
	for _, c := range []struct{ row, column, want string }{
		{"MFVI", "The paper's picture", "collapsed in the gap"},
		{"MFVI", "Gap ratio", "0.30 ± 0.05 (n=18 of 20, 1 of 19 diverged)"},
		{"MFVI", "Seeds above 1", "0 of 18"},
		{"Density Uncertainty (LDL)", "Gap ratio", "1.45 ± 0.05 (n=19 of 20)"},
		{"Density Uncertainty (LDL)", "Seeds above 1", "19 of 19"},
		{"Density Uncertainty (LDL)", "Truth in the band", "0.50 ± 0.00 (n=19 of 20)"},
		{"Density, rank-1 mixture", "Seeds above 1", "0 of 19"},
	} {
		t.Run(c.row+", "+c.column, func(t *testing.T) {
			if got := figtest.Cell(t, table, c.row, c.column); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDistanceTable(t *testing.T) {
	var list experiment.Experiments
	for seed := range drawnSeeds {
		for _, m := range DistanceMethods() {
			for _, data := range []experiment.Source{Cubic{Seeds: drawnSeeds}, Moons{Seeds: drawnSeeds}} {
				list = append(list, runs(data, m).OnSplits(seed)...)
			}
		}
	}
	full := passedOff(t, list)
	for i, r := range full {
		full[i].Metrics = map[string]float64{results.MetricEntropyData: 0.1 * float64(r.Seed), results.MetricEntropyFar: 0.5}
	}
	table := must.Get(DistanceTable(tables.Of(full)))(t)
	for i, m := range DistanceMethods() {
		row := table.Rows[i]
		if row.Name != m.Name || figtest.Text(row.Cells[0]) != "0.100 (0.000 to 0.200)" || figtest.Text(row.Cells[1]) != "0.500 (0.500 to 0.500)" {
			t.Errorf("row %d is %q, %q, %q", i, row.Name, figtest.Text(row.Cells[0]), figtest.Text(row.Cells[1]))
		}
		for _, cell := range row.Cells[2:] {
			if spread := figtest.Text(cell) != "no spread"; spread != (m.Name != methods.Deterministic.Name) {
				t.Errorf("%s: %q", m.Name, figtest.Text(cell))
			}
		}
	}
	// Of the single network one run is missing: on two moons, or of the cubic, it diverged.
	missing := slices.DeleteFunc(slices.Clone(full), func(r experiment.Result) bool {
		return r.Method == methods.Deterministic.Name && r.Task == "two moons" && r.Seed == 1
	})
	diverged := slices.Clone(full)
	diverged[0].Diverged = true
	for _, c := range []struct {
		name string
		list []experiment.Result
		want []string
	}{
		{"a run is missing", missing, []string{"not run", "not run", "no spread", "no spread"}},
		{"a run diverged", diverged, []string{"0.100 (0.000 to 0.200)", "0.500 (0.500 to 0.500)", "diverged", "diverged"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := must.Get(DistanceTable(tables.Of(c.list)))(t)
			for k, want := range c.want {
				if got := figtest.Text(table.Rows[0].Cells[k]); got != want {
					t.Errorf("%s: %q, want %q", table.Columns[k+1], got, want)
				}
			}
		})
	}
}

// The standard deviation of the function in the gap and outside of the data, over that at the data.
func TestCurve(t *testing.T) {
	var c curve
	for _, x := range Grid() {
		switch a := math.Abs(x); {
		case a <= 1:
			c.std = append(c.std, 6)
		case a >= 2 && a <= 4:
			c.std = append(c.std, 2)
		case a >= beyond:
			c.std = append(c.std, 9)
		default:
			c.std = append(c.std, 100)
		}
	}
	if got, outside := c.gapRatio(), c.stdFrom(beyond, math.Inf(1)); got != 3 || outside != 9 {
		t.Errorf("the ratio is %v, the deviation outside %v", got, outside)
	}
}
