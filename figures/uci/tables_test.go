package uci

import (
	"math/rand/v2"
	"slices"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// check compares cells of a table.
func check(t *testing.T, table report.Table, cells [][3]string) {
	t.Helper()
	for _, c := range cells {
		t.Run(place(c[0], c[1]), func(t *testing.T) {
			if got := figtest.Cell(t, table, c[0], c[1]); got != c[2] {
				t.Errorf("\n got %s\nwant %s", got, c[2])
			}
		})
	}
}

func TestNLLCells(t *testing.T) {
	yacht := of(methods.Density, "yacht")
	const best = "*2.65 ± 0.10*, agrees"
	// Runs with other settings in the same store, which must not enter a cell.
	foreign := made(yacht, spread(2.65, 2.5, 0.1))
	for _, change := range []func(*experiment.Experiment){
		func(e *experiment.Experiment) { e.Recipe.Epochs = 50 },
		func(e *experiment.Experiment) { e.Method.Layers = dul.Density{Clip: true} },
		func(e *experiment.Experiment) { e.Task.Data = Data{Name: "yacht", Kind: Random} },
		func(e *experiment.Experiment) { e.Seed = 99 },
	} {
		foreign = append(foreign, made(yacht[:1].Change(change), level(1000))...)
	}
	for _, c := range []struct {
		name  string
		lines []experiment.Result
		want  string
	}{
		{"agrees", made(yacht, spread(2.65, 2.5, 0.1)), best},
		{"part of the splits", made(yacht[:2], spread(2.6, 2.5, 0.1)), "2.60 ± 0.14 (n=2 of 20), agrees"},
		{"foreign runs", foreign, best},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := must.Get(nllTable(tables.Of(c.lines)))(t)
			check(t, table, [][3]string{{"Yacht Hydrodynamics, ours", "Density Uncertainty", c.want}, {"Yacht Hydrodynamics, paper", "Density Uncertainty", "2.593 ± 0.067"}})
		})
	}
}

// Methods that the paper leaves out have no number of the paper. Of methods and data sets that were not run it is said once.
func TestRowsAndColumns(t *testing.T) {
	lines := append(made(of(methods.SNGP, "yacht"), spread(1.9, 0.8, 0.1)), made(of(methods.Density, "energy"), level(2.5))...)
	table := must.Get(nllTable(tables.Of(lines)))(t)
	if got, want := table.Columns, []string{"Data set", methods.Density.Name, methods.SNGP.Name}; !slices.Equal(got, want) || len(table.Rows) != 3 {
		t.Errorf("columns %q, want %q; %d rows, want 3", got, want, len(table.Rows))
	}
	check(t, table, [][3]string{
		{"Yacht Hydrodynamics, ours", methods.SNGP.Name, "*1.90 ± 0.10*"}, {"Yacht Hydrodynamics, paper", methods.SNGP.Name, "–"},
		{"Yacht Hydrodynamics, ours", methods.Density.Name, "not run"}, {"Energy Efficiency (heating), ours", methods.Density.Name, "*2.50 ± 0.10*"},
	})
	for _, missing := range []string{"Boston Housing", "Year Prediction MSD", "Rank-1 BNN", "Deep Ensemble"} {
		if !slices.Contains(table.NotRun, missing) {
			t.Errorf("not run are %q, without %s", table.NotRun, missing)
		}
	}
}

// Where no runs are asked for, as of SNGP on the large sets, it is not said that they are missing.
func TestNothingAskedFor(t *testing.T) {
	lines := slices.Concat(made(of(methods.SNGP, "yacht"), level(1)), made(of(methods.MFVI, "kin8nm"), func(experiment.Experiment) map[string]float64 {
		return map[string]float64{experiment.MetricCRPS: 1}
	}))
	check(t, must.Get(scoresTable(tables.Of(lines)))(t), [][3]string{{"CRPS, Kin8nm", "SNGP", ""}, {"CRPS, Yacht Hydrodynamics", "SNGP", "not measured"}})
	check(t, must.Get(tuningTable(tables.Of(nil)))(t), [][3]string{{"random splits, Kin8nm", "SNGP", ""}, {"random splits, Kin8nm", "MFVI", ""}})
}

// A lowest mean is told where all methods were run.
func TestDensityTable(t *testing.T) {
	table := must.Get(densityTable(tables.Of(made(of(methods.Density, "wine"), level(1)))))(t)
	check(t, table, [][3]string{{"NLL, Wine Quality Red", "lowest mean with the text's", "–"}})
	if len(table.Rows) != 2 || len(table.NotRun) != 19 {
		t.Errorf("%d rows, want 2; not run are %q", len(table.Rows), table.NotRun)
	}
}

// The numbers of the data sets are the published ones, whose checksums identities have.
func TestChecksums(t *testing.T) {
	for name, want := range checksums {
		if name == Year { // is not part of the program
			continue
		}
		set := must.Get(datasets.UCI(name))(t)
		all := train.Dataset{Inputs: nets.Rows(set.X, set.D), Targets: set.Y}
		if got := experiment.Digest(experiment.Set{Name: set.Name, Dataset: all}); got != want {
			t.Errorf("%s has the checksum %s, want %s", name, got, want)
		}
	}
}

// The names by which the paper's numbers are found are those that it prints, of all data sets and methods.
func TestNamesOfThePaper(t *testing.T) {
	for _, dataset := range datasets.UCINames() {
		t.Run(dataset, func(t *testing.T) {
			row, has := paperRows[dataset]
			if has != (dataset != "energy") { // the heating load has no row in the paper
				t.Fatalf("the paper's row is %q", row)
			}
			if _, ok := paper.Lookup(paper.UCIDatasets, row, "Size"); ok != has {
				t.Errorf("the paper has a row %q: %t", row, ok)
			}
			for _, m := range methods.All() {
				printed := has && slices.Contains([]string{"mcdropout", "vdropout", "rank1", "density"}, m.Key)
				for _, table := range []string{paper.UCINLL, paper.UCIRMSE} {
					if _, ok := paper.Lookup(table, row, paperColumns[m.Name]); ok != printed {
						t.Errorf("a cell for %s in %s: %t, want %t", m.Name, table, ok, printed)
					}
				}
			}
		})
	}
}

// The sizes that the paper prints must be those of the data.
func TestDatasetsTable(t *testing.T) {
	table := must.Get(datasetsTable(tables.Of(nil)))(t)
	for _, row := range table.Rows {
		if row.Name == DatasetTitle(Year) || row.Name == DatasetTitle("energy") {
			continue
		}
		for _, column := range []string{"Size", "Dimension"} {
			if ours, theirs := figtest.Cell(t, table, row.Name, column), figtest.Cell(t, table, row.Name, column+" (paper)"); ours != theirs {
				t.Errorf("%s of %s: measured %s, paper %s", column, row.Name, ours, theirs)
			}
		}
	}
	check(t, table, [][3]string{{"Year Prediction MSD", "Size", "not measured"}, {"Energy Efficiency (heating)", "Size (paper)", "–"}, {"Energy Efficiency (heating)", "Size", "768"}})
}

// MFVI on protein was not run, wine only in part, and an ensemble on one split less for 4000 epochs, where it is not drawn.
func TestFigures(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	isTuned := func(e experiment.Experiment) bool { return e.Preset == "uci.Tuned" } // these change with what is chosen
	experiments := tables.Union(
		slices.DeleteFunc(runs(t, "uci-nll"), func(e experiment.Experiment) bool {
			return e.Task.Name == "protein" && e.Method.Name == methods.MFVI.Name || e.Task.Name == "wine" && e.Split > 4
		}),
		slices.DeleteFunc(runs(t, "uci-options"), func(e experiment.Experiment) bool { return e.Task.Name == "wine" }),
		slices.DeleteFunc(runs(t, "uci-energy"), isTuned),
		slices.DeleteFunc(runs(t, "uci-converged"), func(e experiment.Experiment) bool {
			missing := e.Recipe.Epochs == 4000 && e.Method.Name == methods.Ensemble.Name && e.Split == 0
			return missing || e.Task.Name != "yacht" && e.Task.Name != "boston"
		}),
	)
	experiments = slices.DeleteFunc(experiments, func(e experiment.Experiment) bool { // these were added after the pictures
		return slices.ContainsFunc(laterMethods, e.Method.Equal) || slices.ContainsFunc(addedMethods, e.Method.Equal) && !slices.Contains(SmallDatasets(), e.Task.Name)
	})
	lines := made(experiments, func(e experiment.Experiment) map[string]float64 {
		v := 3 - 0.1*float64(len(e.Method.Name)) + 0.1*rng.NormFloat64()
		return map[string]float64{experiment.MetricNLL: v, experiment.MetricRMSE: (v + 3) / 10 * e.Task.Data.(Data).MeanError(e.Split)}
	})
	drawn := []string{"uci-reproduction", "uci-claims", "uci-energy", "uci-converged", "uci-options"}
	for _, named := range Exhibits().Pictures() {
		if !slices.Contains(drawn, named.Name) { // by the same functions
			continue
		}
		t.Run(named.Name, func(t *testing.T) {
			f, err := named.Picture(tables.Of(lines))
			figtest.Golden(t)(f, err)
			if named.Name != f.Name {
				t.Errorf("it calls itself %s", f.Name)
			}
		})
	}
}
