package where

import (
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// made are results on the gaps of Yacht with the text's settings, in which density has the NLL 1, but 3 on the last gap, and
// a control 2. On the first gap most of its runs diverged.
func made(control experiment.Method) *tables.Index {
	all := map[string]experiment.Result{}
	s := gapSettings()[0]
	for _, m := range []experiment.Method{methods.Density, control} {
		gaps := s.gaps("yacht", m)
		for gap, runs := range gaps {
			for i, e := range runs {
				r := experiment.Result{ID: e.ID(), Metrics: map[string]float64{"nll": 2 + float64(i)/1000}}
				if m.Name == methods.Density.Name {
					r.Metrics["nll"] = 1 + float64(i%3)/1000
					if gap == len(gaps)-1 {
						r.Metrics["nll"] = 3
					}
					r.Diverged = gap == 0 && i > 4
				}
				all[r.ID] = r
			}
		}
	}
	return tables.NewIndex(all)
}

// A gap counts with all its seeds, and not where a method diverged on most of them. What was not run has no row.
func TestGapTable(t *testing.T) {
	table := must.Get(GapTable(made(methods.DensityMean)))(t)
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows, want one", len(table.Rows))
	}
	row := table.Rows[0].Name
	if got := figtest.Cell(t, table, row, "against "+methods.DensityMean.Name); !strings.HasPrefix(got, "4 of 5 gaps, -1.0") || !strings.HasSuffix(got, "undecided") {
		t.Errorf("against the mean energy: %q", got)
	}
	if got := figtest.Cell(t, table, row, "against "+methods.DensityConstant.Name); got != "–" {
		t.Errorf("against constant energy, which was not run: %q", got)
	}
	figtest.Renders(t, table)
}

// The picture has a mark for each gap, and none where nothing was run.
func TestGapFigure(t *testing.T) {
	for _, x := range []*tables.Index{made(methods.DensityConstant), tables.NewIndex(nil)} {
		f := must.Get(GapFigure(x, 0))(t)
		if _, err := f.Bytes("svg"); err != nil {
			t.Error(err)
		}
	}
}

// The set has six methods in three settings on every gap, with 20 seeds.
func TestGapSet(t *testing.T) {
	const gaps = 13 + 8 + 8 + 8 + 11 + 6
	set := GapSet()
	if got, want := len(set.At("")), 6*3*gaps*gapSeeds; got != want {
		t.Errorf("%d experiments, want %d", got, want)
	}
}
