package uci

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"

	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
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
	quick := quick(yacht)
	const best = "*2.650 ± 0.103 (n=20)* | paper 2.593 ± 0.067 | +0.6 sd, agrees"
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
	broken := made(yacht, level(2))
	for i := range 2 {
		broken[i].Diverged, broken[i].Metrics = true, nil
	}
	for _, c := range []struct {
		name  string
		lines []experiment.Result
		want  string
	}{
		{"nothing", nil, "not run | paper 2.593 ± 0.067"},
		{"agrees", made(yacht, spread(2.65, 2.5, 0.1)), best},
		{"part of the splits", made(yacht[:2], spread(2.6, 2.5, 0.1)), "2.600 ± 0.141 (n=2 of 20) | paper 2.593 ± 0.067 | +0.0 sd, agrees"},
		{"quick only", made(quick, level(3)), "quick, 20 epochs: 3.000 ± 0.141 (n=2) | paper 2.593 ± 0.067"},
		{"quick beside full", append(made(quick, level(3)), made(yacht, spread(2.65, 2.5, 0.1))...), best},
		{"foreign runs", foreign, best},
		{"diverged", broken, "2.000 ± 0.103 (n=18) | 2 of 20 runs diverged | paper 2.593 ± 0.067"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := must.Get(NLL(tables.Of(c.lines)))(t)
			if got := figtest.Cell(t, table, "Yacht Hydrodynamics", "Density Uncertainty"); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
	delete(broken[5].Metrics, results.MetricNLL)
	if _, err := NLL(tables.Of(broken)); err == nil || !strings.Contains(err.Error(), `no metric "nll"`) {
		t.Errorf("a line without the metric: %v", err)
	}
}

// The methods that the paper's UCI tables leave out have no number of the paper beside them, and are not
// wanted on the large sets.
func TestRowsAndColumns(t *testing.T) {
	lines := append(made(of(methods.SNGP, "yacht"), spread(1.9, 0.8, 0.1)), made(of(methods.Density, "yacht"), level(2.5))...)
	table := must.Get(NLL(tables.Of(lines)))(t)
	if len(table.Rows) != 10 || len(table.Columns) != 10 {
		t.Errorf("%d rows, columns %v", len(table.Rows), table.Columns)
	}
	check(t, table, [][3]string{
		{"Boston Housing", "MFVI", "not run | paper –"},
		{"Energy Efficiency (cooling)", "Rank-1 BNN", "not run | paper 2.044 ± 0.099"},
		{"Energy Efficiency (heating)", "Rank-1 BNN", "not run | paper –"},
		{"Year Prediction MSD", "MC Dropout", "not run | paper 3.568"},
		{"Yacht Hydrodynamics", "SNGP (not in the paper)", "*1.900 ± 0.103 (n=20)*"},
		{"Yacht Hydrodynamics", "DUE (not in the paper)", "not run"},
		{"Kin8nm", "Deep Ensemble (not in the paper)", "–"},
	})
}

// Where no runs are asked for, as of SNGP on the large sets, it is not said that they are missing.
func TestNothingAskedFor(t *testing.T) {
	check(t, must.Get(scoresTable(tables.Of(nil)))(t), [][3]string{
		{"Kin8nm, CRPS", "Rank-1 BNN", "not run"}, {"Kin8nm, CRPS", "SNGP", "–"}, {"Yacht Hydrodynamics, CRPS", "SNGP", "not run"},
	})
	table := must.Get(TuningTable(tables.Of(nil)))(t)
	check(t, table, [][3]string{{"Kin8nm", "SNGP", "–"}, {"Kin8nm", "MFVI", "–"}})
	for _, c := range [][2]string{{"Kin8nm", "Rank-1 BNN"}, {"Yacht Hydrodynamics, gaps", "SNGP"}} {
		if got := figtest.Cell(t, table, c[0], c[1]); !strings.Contains(got, ": ") { // a setting and how often
			t.Errorf("%s: %q", place(c[0], c[1]), got)
		}
	}
}

func TestDensityTable(t *testing.T) {
	var lines []experiment.Result
	for i, m := range Methods() { // MFVI is the best and density the last on yacht; on wine only density was run
		lines = append(lines, made(of(m, "yacht"), spread(2+0.1*float64(i), 3-0.1*float64(i), 0.1))...)
	}
	lines = append(lines, made(of(methods.Density, "wine"), level(1))...)
	slices.Reverse(lines) // which line is density's is not a matter of its place
	table := must.Get(densityTable(tables.Of(lines)))(t)
	check(t, table, [][3]string{
		{"Yacht Hydrodynamics", "NLL", "2.400 ± 0.103 (n=20) | paper 2.593 ± 0.067 | -1.9 sd, better"},
		{"Yacht Hydrodynamics", "best NLL of ours", "MFVI | 2.000"},
		{"Yacht Hydrodynamics", "best RMSE of ours", "Density Uncertainty | 2.600"},
		{"Wine Quality Red", "best NLL of ours", "–"},
		{"Boston Housing", "NLL", "not run | paper 2.523 ± 0.205"},
	})
}

// The table of one optimizer takes SNGP and DUE from their own set, and no method from the protocol's runs.
func TestAdamTable(t *testing.T) {
	adam := adamSetting("yacht")
	table := must.Get(adamTable(tables.Of(slices.Concat(made(of(methods.SNGP, "yacht"), spread(1.9, 0.8, 0.1)), made(of(methods.Rank1, "yacht"), level(0.1)),
		made(adam.runs("yacht", methods.Density), spread(1.5, 0.9, 0.1))))))(t)
	check(t, table, [][3]string{
		{"Yacht Hydrodynamics, NLL", "SNGP", "1.900 ± 0.103 (n=20) | +0.400 [+0.400, +0.400], worse"},
		{"Yacht Hydrodynamics, NLL", "Density Uncertainty", "*1.500 ± 0.103 (n=20)*"},
		{"Yacht Hydrodynamics, RMSE", "SNGP", "*0.800 ± 0.103 (n=20)* | *-0.100 [-0.100, -0.100], better*"},
		{"Yacht Hydrodynamics, RMSE", "Rank-1 BNN", "not run"},
		{"Boston Housing, RMSE", "Density Uncertainty", "not run"},
	})
}

// Density is better than every other method on yacht and worse on wine, by the same on each split; on boston a run of each
// other is missing.
func TestClaimsTable(t *testing.T) {
	var lines []experiment.Result
	for i, m := range []experiment.Method{methods.Density, methods.Rank1, methods.VDropout, methods.MCDropout} {
		v := float64(i + 1)
		lines = slices.Concat(lines, made(of(m, "yacht"), level(v)), made(of(m, "wine"), level(-v)), made(of(m, "boston")[min(i, 1):], level(v)))
	}
	lines = append(lines, made(releasedSetting("yacht").runs("yacht", methods.Density), level(1))...)
	table := must.Get(ClaimsTable(tables.Of(append(lines, made(releasedSetting("yacht").runs("yacht", methods.Rank1), level(1))...))))(t)
	check(t, table, [][3]string{
		{"Yacht Hydrodynamics, NLL, paper", "Best in the paper", "Density Uncertainty"},
		{"Yacht Hydrodynamics, NLL, paper", "against Rank-1 BNN", "*-1.000 [-1.000, -1.000], better*"},
		{"Yacht Hydrodynamics, RMSE, paper", "against MC Dropout", "*-3.000 [-3.000, -3.000], better*"},
		{"Yacht Hydrodynamics, NLL, released", "against Rank-1 BNN", "+0.00000 [+0.00000, +0.00000], undecided"},
		{"Yacht Hydrodynamics, NLL, released", "against MC Dropout", "not run"},
		{"Wine Quality Red, NLL, paper", "Best in the paper", "Variational Dropout"},
		{"Wine Quality Red, NLL, paper", "against Variational Dropout", "+2.000 [+2.000, +2.000], worse"},
	})
	if got, want := table.Notes[len(table.Notes)-1], "14 comparisons: 6 better, 6 worse, 2 undecided."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAgreement(t *testing.T) {
	// Yacht as the paper has it, Boston far better in NLL and far worse in RMSE.
	table := must.Get(Agreement(tables.Of(append(made(of(methods.Density, "yacht"), spread(2.593, 2.505, 0.1)), made(of(methods.Density, "boston"), spread(1, 9, 0.1))...))))(t)
	if len(table.Rows) != 2*len(paperMethods()) {
		t.Fatalf("%d rows, want one for each method and metric", len(table.Rows))
	}
	for _, row := range table.Rows {
		var got []string
		for _, c := range row.Cells {
			got = append(got, figtest.Text(c))
		}
		want := map[string]string{"NLL": "NLL 0 0 0 10", "RMSE": "RMSE 0 0 0 10"}
		if row.Name == methods.Density.Name {
			want = map[string]string{"NLL": "NLL 1 1 0 8", "RMSE": "RMSE 0 1 1 8"}
		}
		if strings.Join(got, " ") != want[got[0]] {
			t.Errorf("%s: %v, want %s", row.Name, got, want[got[0]])
		}
	}
}

func TestReleasedTable(t *testing.T) {
	references, err := decodeReferences(releasedCSV)
	if err != nil || len(references) != 36 {
		t.Fatal(len(references), err)
	}
	// A far-away split outside the reference's ones must not count: concrete was measured on 5.
	table := must.Get(ReleasedTable(tables.Of(made(releasedSetting("concrete").runs("concrete", methods.Density), func(e experiment.Experiment) map[string]float64 {
		if e.Split >= 5 {
			return map[string]float64{results.MetricNLL: 100, results.MetricRMSE: 100}
		}
		return map[string]float64{results.MetricNLL: 3.1 + 0.1*float64(e.Split-2), results.MetricRMSE: 5.3}
	}))))(t)
	check(t, table, [][3]string{{"Concrete Strength", "NLL", "3.100 ± 0.158 (n=5) | theirs 3.0761 ± 0.1057 | +0.2 sd, agrees"},
		{"Concrete Strength", "NLL, all splits", "75.775 ± 43.049 (n=20)"}})
	for _, c := range []struct{ want, content string }{
		{"unexpected heading", "a,b\n"},
		{"nll_mean of", "dataset,method,splits,nll_mean,nll_std,rmse_mean,rmse_std\nyacht,density,20,x,1,1,1\n"},
		{"wrong number", "dataset,method\nyacht\n"},
	} {
		if _, err := decodeReferences(c.content); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error with %q, got %v", c.want, err)
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
				printed := has && slices.Contains([]string{"mcdropout", "vdropout", "rank1", "density"}, m.Name)
				for _, x := range tableMetrics {
					if _, ok := paper.Lookup(x.published, row, paperColumns[m.Method.Name]); ok != printed {
						t.Errorf("a cell for %s in %s: %t, want %t", m.Name, x.published, ok, printed)
					}
				}
			}
		})
	}
}

// The sizes that the paper prints must be those of the data.
func TestDatasetsTable(t *testing.T) {
	table := must.Get(DatasetsTable(tables.Of(nil)))(t)
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

func TestPaired(t *testing.T) {
	// Density has 10 and 11 in turn; DUE 10.4, better on every other split. One of DUE's splits diverged.
	var lines []experiment.Result
	for _, m := range []experiment.Method{methods.Density, methods.Rank1, methods.DUE, methods.SNGP} {
		lines = append(lines, made(paperSetting(smallDatasets()...).all(m), func(e experiment.Experiment) map[string]float64 {
			v := map[string]float64{"density": 10 + float64(e.Split%2), "due": 10.4, "rank1": 20, "sngp": 20}[methods.NameOf(m)]
			return map[string]float64{results.MetricRMSE: v, results.MetricNLL: -v}
		})...)
	}
	for i, line := range lines {
		lines[i].Diverged = line.Method == methods.DUE.Name && line.Split == 1
	}
	// The differences 10 and 9 in turn have a standard deviation of 0.513, a corrected standard error of
	// 0.513 sqrt(1/20 + 1/9) = 0.2059, and with the quantile 2.093 an interval of 0.431 to each side.
	for _, c := range []struct {
		metric string
		want   [][2]string
	}{
		{results.MetricRMSE, [][2]string{{"Density Uncertainty", "*10.500 ± 0.513 (n=20)*"}, {"DUE", "10.400 ± 0.000 (n=19) | 1 of 20 runs diverged"},
			{"Rank-1 BNN", "20.000 ± 0.000 (n=20) | +9.500 [+9.069, +9.931], worse"}, {"Deep Ensemble", "not run"}}},
		{results.MetricNLL, [][2]string{{"Density Uncertainty", "-10.500 ± 0.513 (n=20)"},
			{"Rank-1 BNN", "*-20.000 ± 0.000 (n=20)* | *-9.500 [-9.931, -9.069], better*"}, {"SNGP", "-20.000 ± 0.000 (n=20) | *-9.500 [-9.931, -9.069], better*"}}},
	} {
		t.Run(c.metric, func(t *testing.T) {
			table := must.Get(Paired(tables.Of(lines), c.metric))(t)
			if len(table.Rows) != len(smallDatasets()) {
				t.Errorf("%d rows", len(table.Rows))
			}
			for _, row := range table.Rows {
				for _, want := range c.want {
					if got := figtest.Cell(t, table, row.Name, want[0]); got != want[1] {
						t.Errorf("%s: %q, want %q", place(row.Name, want[0]), got, want[1])
					}
				}
			}
			figtest.Renders(t, table)
		})
	}
}

func TestPairedOfUnknownMetric(t *testing.T) {
	if _, err := Paired(tables.Of(nil), "rmsle"); err == nil || !strings.Contains(err.Error(), `the metric is "rmsle", want nll or rmse`) {
		t.Errorf("got %v", err)
	}
}

func TestEveryTableRenders(t *testing.T) {
	lines := made(of(methods.Density, "yacht"), spread(-2.6, 2.5, 0.1))
	for _, named := range Tables() {
		t.Run(named.Name, func(t *testing.T) {
			table := must.Get(named.Make(tables.Of(lines)))(t)
			if table.Name != named.Name || table.Caption == "" || named.Doc == "" {
				t.Errorf("it calls itself %s, caption %q, doc %q", table.Name, table.Caption, named.Doc)
			}
			figtest.Renders(t, table)
		})
	}
}

// MFVI on protein was not run and wine only in part.
func TestFigures(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	isTuned := func(e experiment.Experiment) bool { return e.Preset == "uci.Tuned" } // these change with what is chosen
	experiments := tables.Union(
		slices.DeleteFunc(set(t, "uci"), func(e experiment.Experiment) bool {
			return e.Task.Name == "protein" && e.Method.Name == methods.MFVI.Name || e.Task.Name == "wine" && e.Split > 4
		}),
		slices.DeleteFunc(set(t, "uci-options"), func(e experiment.Experiment) bool { return e.Task.Name == "wine" }),
		slices.DeleteFunc(set(t, "uci-energy"), isTuned),
		slices.DeleteFunc(set(t, "uci-converged"), func(e experiment.Experiment) bool { return e.Task.Name != "yacht" && e.Task.Name != "boston" }),
	)
	lines := made(experiments, func(e experiment.Experiment) map[string]float64 {
		v := 3 - 0.1*float64(len(e.Method.Name)) + 0.1*rng.NormFloat64()
		return map[string]float64{results.MetricNLL: v, results.MetricRMSE: v + 3}
	})
	for _, named := range Figures() {
		t.Run(named.Name, func(t *testing.T) {
			f, err := named.Make(tables.Of(lines), 0)
			figtest.Golden(t)(f, err)
			if named.Name != f.Name || named.Doc == "" {
				t.Errorf("it calls itself %s, doc %q", f.Name, named.Doc)
			}
		})
	}
	if _, err := Picture(tables.Of(lines), "ece"); err == nil || !strings.Contains(err.Error(), "want nll or rmse") {
		t.Errorf("an unknown metric: %v", err)
	}
}

// labels are those of the methods beside the first panel of a picture.
func labels(f report.Figure) []string {
	var list []string
	for _, tick := range f.Panels[0][0].Y.Tick.Marker.(plot.ConstantTicks) {
		list = append(list, tick.Label)
	}
	return list
}

// A picture has a line for each method of the paper's tables and MFVI.
func TestPictureRows(t *testing.T) {
	f := must.Get(Picture(tables.Of(nil), results.MetricRMSE))(t)
	if got, want := labels(f), []string{"MFVI", "MC Dropout", "Variational Dropout", "Rank-1 BNN", "Density Uncertainty"}; !slices.Equal(got, want) {
		t.Errorf("the methods are %q, want %q", got, want)
	}
	if p := f.Panels[1][4]; p.Title.Text != "Energy Efficiency (heating)" || p.X.Label.Text != "not run" || math.IsInf(p.X.Min, 0) {
		t.Errorf("the last panel is %q, %q", p.Title.Text, p.X.Label.Text)
	}
}

// Methods of one's own have columns of their own, and change nothing in the others.
func TestExtraMethods(t *testing.T) {
	mine := methods.Density
	mine.Name, mine.Layers = "Start 0.2", dul.Density{InitStd: 0.2}
	x := tables.Of(slices.Concat(made(of(methods.Density, "yacht"), level(2)), made(of(mine, "yacht"), level(3))))
	before, after := must.Get(NLL(x))(t), must.Get(NLL(x, mine))(t)
	for i, row := range after.Rows {
		for k, cell := range before.Rows[i].Cells {
			if got, want := figtest.Text(row.Cells[k]), figtest.Text(cell); got != want {
				t.Errorf("%s: %q, without the further method %q", place(row.Name, after.Columns[k+1]), got, want)
			}
		}
	}
	check(t, after, [][3]string{{"Yacht Hydrodynamics", "Start 0.2 (not in the paper)", "3.000 ± 0.103 (n=20)"}, {"Boston Housing", "Start 0.2 (not in the paper)", "not run"}})
	if _, err := NLL(x, experiment.Method{Name: "empty"}); err == nil || !strings.Contains(err.Error(), "empty: experiment: there are no layers") {
		t.Errorf("got %v", err)
	}
}
