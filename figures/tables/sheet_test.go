package tables_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"densityuncertainty/dul"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

func full(n int, mean, std float64) tables.Summary {
	return tables.Summary{N: n, Wanted: 20, Mean: mean, Std: std}
}

func TestAway(t *testing.T) {
	nan := math.NaN()
	diverged := full(19, 1, 1)
	diverged.Diverged = 1
	for _, c := range []struct {
		name   string
		ours   tables.Summary
		theirs report.Value
		inStd  float64
		down   string // the verdict where lower is better
		up     string
	}{
		{"explained by rounding", full(20, 0.00063, 0.00003), report.Value{Mean: 0.001, Std: 0, Decimals: 3}, 0, report.Agrees, report.Agrees},
		{"beyond rounding", full(20, 0.00063, 0.00003), report.Value{Mean: 0.002, Std: 0, Decimals: 3}, (0.00063 - 0.002 + 0.0005) / 0.00003, report.Better, report.Worse},
		{"above", full(20, 3, 0.5), report.Value{Mean: 2, Std: 0.1, Decimals: 1}, 1.9, report.Worse, report.Better},
		{"within one", full(20, 3, 1), report.Value{Mean: 2, Std: 0.1, Decimals: 1}, 0.95, report.Agrees, report.Agrees},
		{"no deviation", full(1, 1, nan), report.Value{Mean: 1, Std: 1, Decimals: 3}, nan, "", ""},
		{"a deviation of zero", full(2, 1, 0), report.Value{Mean: 1, Std: 1, Decimals: 3}, nan, "", ""},
		{"nothing", tables.Summary{}, report.Value{Mean: 1, Std: 1, Decimals: 3}, nan, "", ""},
		{"diverged", diverged, report.Value{Mean: 1, Std: 1, Decimals: 3}, nan, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := tables.Printed{Paper: &c.theirs}
			inStd, down := p.Away(c.ours)
			p.Higher = true
			_, up := p.Away(c.ours)
			if !scalar.Same(inStd, c.inStd) && !scalar.EqualWithinAbs(inStd, c.inStd, 1e-9) || down != c.down || up != c.up {
				t.Errorf("got %v, %q and %q, want %v, %q and %q", inStd, down, up, c.inStd, c.down, c.up)
			}
		})
	}
}

func ExamplePrinted_Away() {
	cell, _ := paper.Lookup(paper.UCINLL, "Yacht Hydrodynamics", "Density Uncertainty")
	ours := tables.Summary{N: 20, Wanted: 20, Mean: 2.611, Std: 0.095}
	inStd, verdict := tables.Printed{Paper: &report.Value{Mean: cell.Mean, Std: cell.Std, Decimals: cell.Decimals}}.Away(ours)
	fmt.Printf("%+.2f sd, %s\n", inStd, verdict)
	// Output: +0.18 sd, agrees
}

func TestSummaryCell(t *testing.T) {
	nan := math.NaN()
	none, lost, diverged := full(0, nan, nan), full(0, nan, nan), full(19, 0.95, 0.05)
	none.Unmeasured, lost.Diverged, diverged.Diverged = 20, 20, 1
	for want, s := range map[string]tables.Summary{
		"2.650 ± 0.103": full(20, 2.65, 0.103), "2.600 ± 0.100 (n=2 of 20)": full(2, 2.6, 0.1), "2.500 (n=1 of 20)": full(1, 2.5, nan),
		"not run": {}, "not measured": none, "0.950 ± 0.050 (1 of 20 diverged)": diverged, "20 of 20 diverged": lost,
	} {
		if got := figtest.Text(s.Cell(3)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A sheet has means, the paper's numbers, words and differences; the best of those with a rank is bold, and two families of
// tests do not know of each other.
func TestSheet(t *testing.T) {
	reference, other := experiment.Method{Name: "reference", Layers: dul.Density{}}, density(dul.Density{InitStd: 0.5})
	a, b := made(t, reference, 1, 1.1, 1.2), made(t, other, 3, 3.2, 3.1)
	of := func(list []experiment.Result) (all experiment.Experiments) {
		for _, r := range list {
			r.Metrics["own"] = r.Metrics["nll"] / 10
			all = append(all, *r.Experiment)
		}
		return all
	}
	x := tables.Of(append(a, b...))
	mean := func(list experiment.Experiments) tables.Printed {
		m := tables.Number{Name: "nll", Decimals: 3}.Over(list)
		m.Best = "lowest"
		return tables.Printed{Mean: m, Paper: &report.Value{Mean: 1, Std: 0.5, Decimals: 1}}
	}
	tested := mean(of(b)).Mean.Against(of(a))
	higher, share, shown, gain := tested, tested, tested, tested
	higher.Higher, higher.Family = true, "other"
	share.Name, share.Other.Name, share.Percent, share.Other.Percent = "own", "own", true, true
	shown.Shown, shown.Best, share.Best, gain.Best = true, "", "", ""
	gain.Other = gain.Mean
	gain.Other.Name, gain.Shown = "own", true
	given := tables.Difference{Difference: metrics.Difference{Mean: -1, Low: -2, High: -0.5, P: 0.001}}
	s := tables.Sheet{Table: report.Table{Name: "s", Columns: []string{"", "a", "b"}}, Rows: []tables.Row{
		{Group: "g", Name: "ours", Cells: []tables.Cell{mean(of(a)), tested}},
		{Group: "g", Name: "paper", Cells: []tables.Cell{mean(of(a)).Theirs(), tables.Printed{}.Theirs()}, Theirs: true},
		{Group: "lost", Name: "ours", Cells: []tables.Cell{mean(of(a).Change(func(e *experiment.Experiment) { e.Seed += 9 })), tables.Words("")}},
		{Group: "lost", Name: "paper", Cells: []tables.Cell{mean(nil).Theirs(), tables.Words("")}, Theirs: true},
		{Name: "higher", Cells: []tables.Cell{mean(of(a)), higher}},
		{Name: "percent, shown", Cells: []tables.Cell{share, shown}},
		{Name: "gain, given", Cells: []tables.Cell{gain, given}},
		{Name: "words", Cells: []tables.Cell{tables.Words("%d words", 2), mean(nil)}},
	}}
	table := must.Get(s.Make(x))(t)
	var got []string
	for _, row := range table.Rows {
		got = append(got, fmt.Sprintf("%s | %s | %s", row.Name, figtest.Text(row.Cells[0]), figtest.Text(row.Cells[1])))
	}
	want := []string{
		"ours | *1.10 ± 0.10*, agrees | 3.10 ± 0.10, worse", "paper | 1.0 ± 0.5 | –",
		"higher | 1.10 ± 0.10, agrees | *3.10 ± 0.10*, better", "percent, shown | 31.0 ± 1.0, worse | +2.000 [+1.709, +2.291], worse",
		"gain, given | +2.790 [+2.528, +3.052], worse | -1.000 [-2.000, -0.500], better", "words | 2 words | 1.0 ± 0.5",
	}
	if !slices.Equal(got, want) || !slices.Equal(table.NotRun, []string{"lost"}) {
		t.Errorf("got\n%s\nwant\n%s\nnot run %q", strings.Join(got, "\n"), strings.Join(want, "\n"), table.NotRun)
	}
}

// The best is bold among cells with all of their runs, in a line, or down a column where there are others.
func TestBold(t *testing.T) {
	var all []experiment.Result
	mean := func(name string, values ...float64) tables.Mean {
		m := experiment.Method{Name: name, Layers: dul.Density{InitStd: 0.1 * float64(len(name))}}
		all = append(all, made(t, m, values...)...)
		cell := tables.Number{Name: "nll"}.Over(must.Get(task().Experiments(experiment.Adam(1, 4, 0.1), 2, m))(t))
		cell.Best = "lowest"
		return cell
	}
	high, part, low := mean("a", 3, 3, 3), mean("bb", 1, 1), mean("ccc", 2, 2, 2)
	for name, c := range map[string]struct {
		cells        []tables.Cell
		across, down int // the cell that is bold; -1 for none
	}{
		"lowest of the complete": {[]tables.Cell{high, part, low}, 2, 2}, "the first of equals": {[]tables.Cell{low, low, part}, 0, 0},
		"one complete": {[]tables.Cell{part, high}, 1, -1}, "none complete": {[]tables.Cell{part, part}, -1, -1},
	} {
		across := tables.Sheet{Table: report.Table{Columns: make([]string, 1+len(c.cells))}}
		across.Add("", "row", c.cells...)
		down := tables.Sheet{Table: report.Table{Columns: make([]string, 2)}, Down: true}
		for _, cell := range c.cells {
			down.Add("", "row", cell)
		}
		x := tables.Of(all)
		line, rows := must.Get(across.Make(x))(t).Rows[0].Cells, must.Get(down.Make(x))(t).Rows
		for i := range c.cells {
			if line[i].Bold != (i == c.across) || rows[i].Cells[0].Bold != (i == c.down) {
				t.Errorf("%s: cell %d is %s and %s", name, i, figtest.Text(line[i]), figtest.Text(rows[i].Cells[0]))
			}
		}
	}
}
