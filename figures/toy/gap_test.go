package toy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// Seeds are counted by their ratios, of those that have one. What was not run has no row.
func TestGapRatios(t *testing.T) {
	made := figtest.Results(grid.Of(Cubic{Seeds: gapSeeds}, methods.Density), func(e experiment.Experiment) map[string]float64 {
		return map[string]float64{MetricGapRatio: 0.95 + 0.1*float64(e.Seed%2), metricGapCoverage: 0.5}
	})
	made[1] = experiment.Result{ID: grid.Of(Cubic{Seeds: 2}, methods.Density)[1].ID(), Diverged: true}
	table := must.Get(gapRatios(tables.Of(made)))(t)
	if got := figtest.Cell(t, table, "Density Uncertainty (LDL)", "Seeds above 1"); got != "9 of 19" || len(table.Rows) != 1 {
		t.Errorf("%d rows, %s seeds above 1", len(table.Rows), got)
	}
}

// The numbers of the stored runs, some of which figures/README.md has too.
func TestDistanceTable(t *testing.T) {
	table := must.Get(distanceTable(must.Get(committed())(t)))(t)
	figtest.Cells(t, table, [][3]string{
		{"Density Uncertainty", "Moons: far away", "0.069 ± 0.009"}, {"Deep Ensemble", "Moons: at data", "0.001 ± 0.000"},
		{"DUE", "Cubic: gap ratio", "1.13 ± 0.05"}, {"Deterministic", "Cubic: gap ratio", "not measured"},
	})
}

// passedOff trains experiments, which must be of one preset, for a few steps, and passes the results off as theirs.
func passedOff(t *testing.T, list experiment.Experiments) []experiment.Result {
	t.Helper()
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	short := list.Change(func(e *experiment.Experiment) {
		e.Recipe.Epochs, e.Recipe.PretrainEpochs, e.Recipe.Samples = 8, min(e.Recipe.PretrainEpochs, 4), min(e.Recipe.Samples, 6)
	})
	found := must.Get(experiment.Run(t.Context(), short...))(t)
	for i := range found {
		found[i].ID = list[i].ID()
		found[i] = found[i].Of(list[i])
	}
	return found
}

// drawn are the experiments that the figures of one seed need.
func drawn(seed int) experiment.Experiments {
	var all experiment.Experiments
	for _, row := range gapRows {
		all = append(all, grid.Of(Cubic{Seeds: drawnSeeds}, row.Method).OnSplits(seed)...)
	}
	for _, m := range distanceMethods {
		for _, data := range []experiment.Source{Cubic{Seeds: drawnSeeds}, Moons{Seeds: drawnSeeds}} {
			all = append(all, grid.Of(data, m).OnSplits(seed)...)
		}
	}
	return all.Distinct()
}

// without leaves out the results of a method.
func without(list []experiment.Result, name string) []experiment.Result {
	return slices.DeleteFunc(slices.Clone(list), func(r experiment.Result) bool { return r.Method == name })
}

func TestLookInside(t *testing.T) {
	list := passedOff(t, append(grid.Of(Cubic{Seeds: 1}, methods.Density), grid.Of(Cubic{Seeds: 1}, methods.Rank1)...))
	inside := must.Get(LookInside(list[:1]))(t)[0]
	if inside.Steps != 4000 || len(inside.Energies) != 2 || len(inside.Std) != len(inside.X) {
		t.Fatalf("%d steps, energies of %d layers, %d deviations at %d places", inside.Steps, len(inside.Energies), len(inside.Std), len(inside.X))
	}
	for l, energy := range inside.Energies {
		for i, e := range energy {
			if len(energy) != len(inside.X) || e < 0 {
				t.Fatalf("energies of layer %d: %d values for %d inputs, %g at x = %g", l, len(energy), len(inside.X), e, inside.X[i])
			}
		}
	}
	moons := passedOff(t, grid.Of(Moons{Seeds: 1}, methods.Density))
	for want, wrong := range map[string]experiment.Result{"no energy model": list[1], "only runs on the cubic": moons[0], "not there": {}} {
		must.GetErr(LookInside([]experiment.Result{wrong}))(t, want)
	}
}

// The picture of one network has its line in front of the others, on axes that fit all.
func TestInsideFigure(t *testing.T) {
	run := func(steps int, scale float64) Inside {
		return Inside{Steps: steps, X: []float64{0, 1}, Std: []float64{scale, 2 * scale}, Energies: [][]float64{{1, scale}, {scale, 3}}}
	}
	runs := []Inside{run(100, 1), run(200, 9)}
	var pictures []string
	for i, r := range runs {
		f := must.Get(InsideFigure(runs, r.Steps))(t)
		if want := fmt.Sprintf("after %d gradient steps", r.Steps); !strings.Contains(f.Caption, want) || len(f.Panels[0]) != 3 {
			t.Errorf("%d panels, %q, want 3 and %q", len(f.Panels[0]), f.Caption, want)
		}
		for panel, top := range []float64{9, 9, 18} {
			if got := f.Panels[0][panel].Y.Max; got != top {
				t.Errorf("number %d, panel %d ends at %g, want %g", i, panel, got, top)
			}
		}
		svg := must.Get(f.Bytes(report.SVG))(t)
		pictures = append(pictures, string(svg))
	}
	if pictures[0] == pictures[1] {
		t.Error("the pictures of both networks are the same")
	}
	for _, wrong := range []struct {
		runs  []Inside
		steps int
		want  string
	}{
		{nil, 0, "none of 0 was trained for 0 steps"},
		{runs, 300, "none of 2"},
		{[]Inside{runs[0], {Steps: 7}}, 100, "after 7 steps there are energies of 0 layers, after 100 of 2"},
		{[]Inside{{X: []float64{0}, Std: nil}}, 0, "inside networks"},
	} {
		must.GetErr(InsideFigure(wrong.runs, wrong.steps))(t, wrong.want)
	}
}
