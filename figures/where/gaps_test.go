package where

import (
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// made are results on the gaps of Yacht with the text's settings, in which density has the NLL 1, but 3 on the last gap, and
// a control 2. On the first gap a run of the control may have diverged.
func made(control experiment.Method, diverged bool) *tables.Index {
	var all []experiment.Result
	s := gapGrids[0]
	for _, m := range []experiment.Method{methods.Density, control} {
		for _, e := range runs(s, uci.Data{Name: "yacht", Kind: uci.Gap}, m) {
			r := experiment.Result{ID: e.ID(), Metrics: map[string]float64{"nll": 2 + float64(e.Seed)/1000}}
			if m.Equal(methods.Density) {
				r.Metrics["nll"] = 1 + float64(e.Seed%3)/1000
				if e.Split == 5 {
					r.Metrics["nll"] = 3
				}
			}
			r.Diverged = diverged && e.Split == 0 && e.Seed == 4 && m.Equal(control)
			all = append(all, r)
		}
	}
	return tables.Of(all)
}

// A gap on which a run diverged is left out. What was not run has neither row nor column.
func TestGapTable(t *testing.T) {
	for diverged, want := range map[bool]string{false: "5 of 6", true: "4 of 5"} {
		table := must.Get(gapTables[0].of(made(methods.DensityMean, diverged)))(t)
		if len(table.Rows) != 1 || len(table.Columns) != 3 || len(table.NotRun) != 5+1+2+2 {
			t.Fatalf("%d rows, columns %q, not run %q", len(table.Rows), table.Columns, table.NotRun)
		}
		row := table.Rows[0].Name
		if got := figtest.Cell(t, table, row, "Against "+methods.DensityMean.Name); !strings.HasPrefix(got, "-1.0") || !strings.HasSuffix(got, ", not significant") {
			t.Errorf("against the mean energy: %q", got)
		}
		if got := figtest.Cell(t, table, row, "Gaps won: "+methods.DensityMean.Name); got != want {
			t.Errorf("a run diverged: %t: %q, want %q", diverged, got, want)
		}
	}
}

// Of eight sets of inputs the medians are tested, of which one says the contrary: with the signed ranks 1 to 8, the lowest rank has
// the other sign in 2 of 256 cases of each side. The two loads of Energy are one set. Of their gaps, of Naval's and of Protein's some
// are one: 63 of 87 are distinct. One data set alone is not tested, and nothing is said of all.
func TestGapOthersTable(t *testing.T) {
	var list []experiment.Result
	s, all := gapGrids[2], slices.Concat(uci.SmallDatasets(), otherDatasets)
	for k, dataset := range all {
		for i, m := range []experiment.Method{methods.Density, methods.DensityMean} {
			for _, e := range runs(s, uci.Data{Name: dataset, Kind: uci.Gap}, m) {
				nll := float64(i) * float64(k+1)
				if k == 0 {
					nll = -nll / 2
				}
				list = append(list, experiment.Result{ID: e.ID(), Metrics: map[string]float64{"nll": nll}})
			}
		}
	}
	table := must.Get(gapTables[3].of(tables.Of(list)))(t)
	if len(table.Rows) != 10 || table.Rows[0].Cells[0].Verdict != "" || !strings.HasPrefix(table.Rows[0].Cells[0].Text, "+0.5") {
		t.Fatalf("%d rows, %+v", len(table.Rows), table.Rows)
	}
	last := table.Rows[9].Cells
	if d := last[0].Difference; !scalar.EqualWithinAbs(d.P, 4./256, 1e-12) || d.Mean != -5.5 || last[0].Verdict != report.Better || last[1].Text != "50 of 63" {
		t.Errorf("%+v, %+v", d, last)
	}
	table = must.Get(gapTables[3].of(tables.Of(list[:2*13*gapSeeds])))(t)
	if len(table.Rows) != 1 || table.Rows[0].Cells[0].Verdict != "" {
		t.Errorf("of one data set: %+v", table.Rows)
	}
}

func exhibit(t *testing.T, name string) tables.Exhibit {
	t.Helper()
	return figtest.Exhibit(t, Exhibits(), name)
}

// Each exhibit has its methods and settings on all gaps, holes or splits with all seeds, and every experiment can be carried out. The
// draws of decisions are functions.
func TestRuns(t *testing.T) {
	const gaps, holes = 13 + 8 + 8 + 8 + 11 + 6, 12 * (6*10 + 5 + 3)
	for name, want := range map[string]int{
		"where-gaps": 3 * 3 * gaps * gapSeeds, "where-gap-methods": 6 * 3 * gaps * gapSeeds, "where-gaps-others": 8*2*(8+16+9)*otherSeeds + 8*2*gaps*gapSeeds, "where-gaps-draws": 2 * 2 * gaps * manySeeds,
		"where-posterior": 3 * exactSplits, "where-exact": 3*exactSplits + 3*9*exactSplits*exactSeeds, "where-posterior-gaps": 19, "where-exact-places": (4*exactSeeds + 1) * (13 + 6),
		"where-holes": 2 * 4 * holes, "where-holes-methods": 2 * 3 * holes, "where-functions": 8 * 7 * 20, "where-decisions": 6 * 9 * decisionSeeds, "where-bandit": 18*furtherSeeds + 3*placeSeeds,
	} {
		list := exhibit(t, name).Runs()
		if distinct := len(list.Distinct()); len(list) != want || distinct != want {
			t.Errorf("%s has %d experiments, %d of them distinct, want %d", name, len(list), distinct, want)
		}
		for _, e := range list {
			must.Do(t, e.Check())
			if independent := strings.Contains(e.Method.Name, "independent"); (name == "where-decisions" || name == "where-bandit") && e.Recipe.Coherent == independent {
				t.Fatalf("%v: draws are functions: %t", e, !independent)
			}
		}
	}
}
