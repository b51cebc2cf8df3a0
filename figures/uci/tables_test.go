package uci

import (
	"math/rand/v2"
	"slices"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/tables"
)

func TestNLLCells(t *testing.T) {
	yacht := of(methods.Density, "yacht")
	const best = "*2.65 ± 0.10*, agrees"
	// Runs with other settings in the same store, which must not enter a cell.
	foreign := figtest.Results(yacht, spread(2.65, 2.5, 0.1))
	for _, change := range []func(*experiment.Experiment){
		func(e *experiment.Experiment) { e.Recipe.Epochs = 50 },
		func(e *experiment.Experiment) { e.Method.Layers = dul.Density{Clip: true} },
		func(e *experiment.Experiment) { e.Task.Data = Data{Name: "yacht", Kind: Random} },
		func(e *experiment.Experiment) { e.Seed = 99 },
	} {
		foreign = append(foreign, figtest.Results(yacht[:1].Change(change), level(1000))...)
	}
	for _, c := range []struct {
		name  string
		lines []experiment.Result
		want  string
	}{
		{"agrees", figtest.Results(yacht, spread(2.65, 2.5, 0.1)), best},
		{"part of the splits", figtest.Results(yacht[:2], spread(2.6, 2.5, 0.1)), "2.60 ± 0.14 (n=2 of 20), agrees"},
		{"foreign runs", foreign, best},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := must.Get(nllTable(tables.Of(c.lines)))(t)
			figtest.Cells(t, table, [][3]string{{"Yacht Hydrodynamics, ours", "Density Uncertainty", c.want}, {"Yacht Hydrodynamics, paper", "Density Uncertainty", "2.593 ± 0.067"}})
		})
	}
}

// Methods that the paper leaves out have no number of the paper. Of methods and data sets that were not run it is said once.
func TestRowsAndColumns(t *testing.T) {
	lines := append(figtest.Results(of(methods.SNGP, "yacht"), spread(1.9, 0.8, 0.1)), figtest.Results(of(methods.Density, "energy"), level(2.5))...)
	table := must.Get(nllTable(tables.Of(lines)))(t)
	if got, want := table.Columns, []string{"Data set", methods.Density.Name, methods.SNGP.Name}; !slices.Equal(got, want) || len(table.Rows) != 3 {
		t.Errorf("columns %q, want %q; %d rows, want 3", got, want, len(table.Rows))
	}
	figtest.Cells(t, table, [][3]string{
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
	lines := slices.Concat(figtest.Results(of(methods.SNGP, "yacht"), level(1)), figtest.Results(of(methods.MFVI, "kin8nm"), func(experiment.Experiment) map[string]float64 {
		return map[string]float64{experiment.MetricCRPS: 1}
	}))
	figtest.Cells(t, must.Get(scoresTable(tables.Of(lines)))(t), [][3]string{{"CRPS, Kin8nm", "SNGP", ""}, {"CRPS, Yacht Hydrodynamics", "SNGP", "not measured"}})
	figtest.Cells(t, must.Get(tuningTable(tables.Of(nil)))(t), [][3]string{{"random splits, Kin8nm", "SNGP", ""}, {"random splits, Kin8nm", "MFVI", ""}})
}

// A lowest mean is told where all methods were run.
func TestDensityTable(t *testing.T) {
	table := must.Get(densityTable(tables.Of(figtest.Results(of(methods.Density, "wine"), level(1)))))(t)
	figtest.Cells(t, table, [][3]string{{"NLL, Wine Quality Red", "lowest mean with the text's", "–"}})
	if len(table.Rows) != 2 || len(table.NotRun) != 19 {
		t.Errorf("%d rows, want 2; not run are %q", len(table.Rows), table.NotRun)
	}
}

// The numbers of the data sets are the published ones, whose checksums identities have.
func TestChecksums(t *testing.T) {
	for name, want := range checksums {
		if name == year { // is not part of the program
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
		if row.Name == DatasetTitle(year) || row.Name == DatasetTitle("energy") {
			continue
		}
		for _, column := range []string{"Size", "Dimension"} {
			if ours, theirs := figtest.Cell(t, table, row.Name, column), figtest.Cell(t, table, row.Name, column+" (paper)"); ours != theirs {
				t.Errorf("%s of %s: measured %s, paper %s", column, row.Name, ours, theirs)
			}
		}
	}
	figtest.Cells(t, table, [][3]string{{"Year Prediction MSD", "Size", "not measured"}, {"Energy Efficiency (heating)", "Size (paper)", "–"}, {"Energy Efficiency (heating)", "Size", "768"}})
}

// MFVI on protein was not run, wine only in part, and an ensemble on one split less for 4000 epochs, where it is not drawn.
func TestFigures(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	isTuned := func(e experiment.Experiment) bool { return e.Preset == "uci.Tuned" } // these change with what is chosen
	experiments := slices.Concat(
		slices.DeleteFunc(runs(t, "uci-nll"), func(e experiment.Experiment) bool {
			return e.Task.Name == "protein" && e.Method.Name == methods.MFVI.Name || e.Task.Name == "wine" && e.Split > 4
		}),
		slices.DeleteFunc(runs(t, "uci-options"), func(e experiment.Experiment) bool { return e.Task.Name == "wine" }),
		slices.DeleteFunc(runs(t, "uci-energy"), isTuned),
		slices.DeleteFunc(runs(t, "uci-converged"), func(e experiment.Experiment) bool {
			missing := e.Recipe.Epochs == 4000 && e.Method.Name == methods.Ensemble.Name && e.Split == 0
			return missing || e.Task.Name != "yacht" && e.Task.Name != "boston"
		}),
	).Distinct()
	experiments = slices.DeleteFunc(experiments, func(e experiment.Experiment) bool { // these were added after the pictures
		return slices.ContainsFunc(laterMethods, e.Method.Equal) || slices.ContainsFunc(addedMethods, e.Method.Equal) && !slices.Contains(SmallDatasets(), e.Task.Name)
	})
	lines := figtest.Results(experiments, func(e experiment.Experiment) map[string]float64 {
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

// A fifth of the training part is taken off it for calibration.
func TestCalibration(t *testing.T) {
	plain := must.Get(Data{Name: "yacht"}.Load(t.Context(), 3))(t)
	held := must.Get(Data{Name: "yacht", HeldOut: true}.Load(t.Context(), 3))(t)
	d := must.Get(Data{Name: "yacht", Calibration: true}.Load(t.Context(), 3))(t)
	if d.Train.Len() != held.Train.Len() || d.HeldOut.Inputs != nil || len(d.Sets) != 2 || d.Sets[0].Len() != plain.Sets[0].Len() || d.Sets[1].Name != calibrationSet || !slices.Equal(d.Sets[1].Targets, held.HeldOut.Targets) {
		t.Errorf("%d training examples and the sets %d", d.Train.Len(), len(d.Sets))
	}
	must.Err(t, (Data{Name: "yacht", HeldOut: true, Calibration: true}).Check(), "leave one of them out")
}

func TestConformal(t *testing.T) {
	set := func(name string, targets ...float64) experiment.Prediction {
		one := make([]float64, len(targets))
		for i := range one {
			one[i] = 1
		}
		return experiment.Prediction{Set: name, Targets: targets, Prediction: predict.Prediction{Mixture: predict.Mixture{Mean: [][]float64{make([]float64, len(targets))}, NoiseStd: [][]float64{one}}}}
	}
	var scores []float64
	for i := range 19 {
		scores = append(scores, float64(i+1))
	}
	p := &experiment.Predictions{Unit: 2, Sets: []experiment.Prediction{set("test", -20, -19, 0, 19), set(calibrationSet, scores...)}}
	found := must.Get(conformal(p))(t)
	if found[metricConformal] != 0.75 || found[metricConformalWidth] != 2*2*19 {
		t.Errorf("the numbers are %v", found)
	}
	p.Sets = p.Sets[:1]
	must.GetErr(conformal(p))(t, calibrationSet)
}

// Differences of -0.1 with 0.02 above and below in turn have a standard deviation of 0.02 sqrt(20/19) = 0.02052, a
// corrected standard error of 0.02052 sqrt(1/20 + 1/9) = 0.00824, and with the quantile 2.093 an interval of 0.01724
// to each side.
func TestEnergyTable(t *testing.T) {
	lines := slices.Concat(
		figtest.Results(of(methods.DensityConstant, "yacht"), spread(2, 0, 0.1)),
		figtest.Results(of(methods.DensityDiagonal, "yacht"), spread(2, 0, 0.12)),
		figtest.Results(of(methods.Density, "yacht"), spread(1.9, 0, 0.12)),
		figtest.Results(of(methods.DensityMixture, "yacht"), spread(2.1, 0, 0.12)),
		figtest.Results(of(methods.DensityConstant, "wine")[1:], level(1)), // a split is missing
		figtest.Results(of(methods.Density, "wine"), level(0.5)),
		figtest.Results(of(methods.DensityConstant, "boston"), spread(2, 0, 0.1)), // t = 0.045 / 0.0206 = 2.19, p = 0.042, and twice that among four
		figtest.Results(of(methods.Density, "boston"), spread(1.955, 0, 0.15)),
	)
	table := must.Get(energyTable(tables.Of(lines)))(t)
	const bound = "Density Uncertainty differs by at most"
	figtest.Cells(t, table, [][3]string{
		{"paper's text, Yacht Hydrodynamics", "Density, constant", "2.00 ± 0.10"},
		{"paper's text, Yacht Hydrodynamics", "Density, diagonal", "2.00 ± 0.12, not significant"},
		{"paper's text, Yacht Hydrodynamics", "Density Uncertainty", "*1.90 ± 0.12*, better"},
		{"paper's text, Yacht Hydrodynamics", bound, "0.117"},
		{"paper's text, Yacht Hydrodynamics", "Density, rank-1 mixture", "2.10 ± 0.12, worse"},
		{"paper's text, Wine Quality Red", "Density Uncertainty", "*0.50 ± 0.10*"},
		{"paper's text, Wine Quality Red", bound, ""},
		{"paper's text, Boston Housing", "Density Uncertainty", "*1.96 ± 0.15*, not significant"},
		{"paper's text, Boston Housing", bound, "0.088"},
		// The mean of -0.1 and -0.045 is -0.0725, and sqrt(0.01724^2 + 0.04310^2) / 2 = 0.0232 its reach.
		{"paper's text, " + allSets, "Density Uncertainty", "-0.073 [-0.096, -0.049]"},
		{"paper's text, " + allSets, bound, "0.096"},
		{"paper's text, " + allSets, "Density, diagonal", ""}, // of one data set
	})
	if len(table.Rows) != 5 { // wine has also tuned settings that are the paper's
		t.Errorf("%d rows, want those of four data sets and settings, and of a mean", len(table.Rows))
	}
}

// Yacht has six inputs, so six gaps. The differences 1.5 k - 2 of gaps 0 to 5 have the mean 1.75 and the standard deviation
// 2.806, a corrected standard error of 2.806 sqrt(1/6 + 1/2) = 2.291, and with the quantile 2.571 an interval of 5.890
// to each side.
func TestGapTable(t *testing.T) {
	in := func(m experiment.Method) experiment.Experiments {
		return gapGrids()[0].Of(Data{Name: "yacht", Kind: Gap}, m)
	}
	measured := func(nll float64) func(experiment.Experiment) map[string]float64 {
		return func(e experiment.Experiment) map[string]float64 {
			return map[string]float64{experiment.MetricNLL: nll*uneven(e) + float64(e.Split)}
		}
	}
	x := tables.Of(slices.Concat(
		figtest.Results(in(methods.Density), measured(2)),
		figtest.Results(in(methods.Rank1), func(e experiment.Experiment) map[string]float64 { // lower on the first two gaps
			return map[string]float64{experiment.MetricNLL: 2.5 * float64(e.Split)}
		}),
		figtest.Results(in(methods.Deterministic), measured(3)),
		figtest.Results(in(methods.DUE)[1:], measured(1)),
		figtest.Results(of(methods.MFVI, "yacht"), level(1)), // other splits
	))
	table := must.Get(gapTable(x))(t)
	figtest.Cells(t, table, [][3]string{
		{"paper's text, Yacht Hydrodynamics", "Density Uncertainty", "*4.5 ± 1.9*"}, {"paper's text, Yacht Hydrodynamics", "Rank-1 BNN", "6.2 ± 4.7, not significant"},
		{"paper's text, Yacht Hydrodynamics", "Deterministic", "5.5 ± 1.9, worse"}, {"paper's text, Yacht Hydrodynamics", "DUE", "4.0 ± 1.6 (n=5 of 6)"},
	})
	d := table.Rows[0].Cells[slices.Index(table.Columns, "Rank-1 BNN")-1].Difference
	must.Near(t, d.Mean, 1.75, 1e-9, "the difference of Rank-1")
	must.Near(t, d.High-d.Mean, 5.89, 1e-3, "half the interval of the difference of Rank-1")
}

// uneven is close to 1. It makes differences vary a little, since differences that are all equal are not tested.
func uneven(e experiment.Experiment) float64 { return 1 + 1e-10*float64(e.Split) }

// spread makes metrics whose mean over the 20 splits is nll and rmse, and whose standard deviation is close to sd.
func spread(nll, rmse, sd float64) func(experiment.Experiment) map[string]float64 {
	return func(e experiment.Experiment) map[string]float64 {
		d := sd
		if e.Split%2 == 1 {
			d = -sd
		}
		return map[string]float64{experiment.MetricNLL: nll*uneven(e) + d, experiment.MetricRMSE: rmse*uneven(e) + d}
	}
}

// level is spread with one number for both metrics, the RMSE divided by 1000: so small that no run counts as diverged.
func level(v float64) func(experiment.Experiment) map[string]float64 {
	return func(e experiment.Experiment) map[string]float64 {
		found := spread(v, v, 0.1)(e)
		found[experiment.MetricRMSE] /= 1000
		return found
	}
}

// of are the text's experiments of a method on a data set.
func of(m experiment.Method, dataset string) experiment.Experiments {
	return paperGrid().Of(Data{Name: dataset}, m)
}

// runs has the experiments of an exhibit.
func runs(t *testing.T, name string) experiment.Experiments {
	t.Helper()
	return figtest.Exhibit(t, Exhibits(), name).Runs()
}
