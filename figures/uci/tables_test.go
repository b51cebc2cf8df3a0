package tables

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/paper"
	"densityuncertainty/figures/results"
)

// lines makes a result of every experiment of a set that passes the filter.
func lines(t *testing.T, set string, f experiment.Filter, measure func(experiment.Experiment) map[string]float64) []results.Result {
	t.Helper()
	s, ok := experiment.SetByName(set)
	if !ok {
		t.Fatalf("no set %s", set)
	}
	var list []results.Result
	for _, e := range f.Apply(s.Experiments) {
		list = append(list, results.Result{ID: e.ID(), Experiment: e, Metrics: measure(e)})
	}
	return list
}

// spread makes metrics whose mean over the 20 splits is nll and rmse, and whose standard deviation is
// close to sd.
func spread(nll, rmse, sd float64) func(experiment.Experiment) map[string]float64 {
	return func(e experiment.Experiment) map[string]float64 {
		d := sd
		if e.Split%2 == 1 {
			d = -sd
		}
		return map[string]float64{MetricNLL: nll + d, MetricRMSE: rmse + d}
	}
}

// cell finds a cell by its row and column headings.
func cell(t *testing.T, table Table, row, column string) string {
	t.Helper()
	for _, r := range table.Rows {
		for i, c := range table.Columns[1:] {
			if r.Name == row && c == column {
				var parts []string
				for _, line := range r.Cells[i] {
					part := line.Text
					if line.Bold {
						part = "*" + part + "*"
					}
					parts = append(parts, part)
				}
				return strings.Join(parts, " | ")
			}
		}
	}
	t.Fatalf("%s has no cell %s, %s", table.Name, row, column)
	return ""
}

// only selects one method and data set at full scale.
func only(method, dataset string) experiment.Filter {
	return experiment.Filter{Methods: []string{method}, Datasets: []string{dataset}, Scale: experiment.Full}
}

func TestUCICells(t *testing.T) {
	density := only(experiment.Density, "yacht")
	for name, c := range map[string]struct {
		lines []results.Result
		want  string
	}{
		"nothing": {nil, "not run | paper 2.593 ± 0.067"},
		"agrees": {lines(t, "uci", density, spread(2.65, 2.5, 0.1)),
			"*2.650 ± 0.103 (n=20)* | paper 2.593 ± 0.067 | +0.6 sd, agrees"},
		"better": {lines(t, "uci", density, spread(2.3, 2.5, 0.1)),
			"*2.300 ± 0.103 (n=20)* | paper 2.593 ± 0.067 | -2.9 sd, better"},
		"worse": {lines(t, "uci", density, spread(2.8, 2.5, 0.1)),
			"*2.800 ± 0.103 (n=20)* | paper 2.593 ± 0.067 | +2.0 sd, worse"},
		"part of the splits": {lines(t, "uci", density, spread(2.6, 2.5, 0.1))[:2],
			"2.600 ± 0.141 (n=2 of 20) | paper 2.593 ± 0.067 | +0.0 sd, agrees"},
		"one split": {lines(t, "uci", density, spread(2.5, 2.5, 0.1))[:1],
			"2.600 (n=1 of 20) | paper 2.593 ± 0.067 | +0.007, no sd"},
		"quick only": {lines(t, "uci", experiment.Filter{Methods: []string{experiment.Density}, Datasets: []string{"yacht"}, Scale: experiment.Quick}, spread(3, 3, 0.1)),
			"quick, 20 epochs: 3.000 ± 0.141 (n=2) | paper 2.593 ± 0.067"},
		"quick beside full": {append(lines(t, "uci", experiment.Filter{Methods: []string{experiment.Density}, Datasets: []string{"yacht"}, Scale: experiment.Quick}, spread(3, 3, 0.1)),
			lines(t, "uci", density, spread(2.65, 2.5, 0.1))...),
			"*2.650 ± 0.103 (n=20)* | paper 2.593 ± 0.067 | +0.6 sd, agrees"},
	} {
		table, err := UCINLL(c.lines)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := cell(t, table, "Yacht Hydrodynamics", "Density Uncertainty"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestDivergedRunsAreShown(t *testing.T) {
	list := lines(t, "uci", only(experiment.Rank1, "wine"), spread(0.95, 0.62, 0.05))
	list[3].Diverged, list[3].Metrics = true, nil
	table, err := UCIRMSE(list)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := cell(t, table, "Wine Quality Red", "Rank-1 BNN"), "0.623 ± 0.051 (n=19) | 1 of 20 runs diverged | paper 0.623 ± 0.051"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for i := range list {
		list[i].Diverged, list[i].Metrics = true, nil
	}
	if table, err = UCIRMSE(list); err != nil {
		t.Fatal(err)
	}
	if got, want := cell(t, table, "Wine Quality Red", "Rank-1 BNN"), "20 of 20 runs diverged | paper 0.623 ± 0.051"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A run with other settings in the same store must not enter a cell.
func TestForeignLinesAreLeftOut(t *testing.T) {
	list := lines(t, "uci", only(experiment.Density, "yacht"), spread(2.6, 2.5, 0.1))
	for _, change := range []func(*experiment.Experiment){
		func(e *experiment.Experiment) { e.Epochs = 50 },
		func(e *experiment.Experiment) { e.Options = map[string]string{experiment.OptionClip: "true"} },
		func(e *experiment.Experiment) { e.Fidelity = experiment.Released },
		func(e *experiment.Experiment) { e.Splits = experiment.RandomSplits },
		func(e *experiment.Experiment) { e.Seed = 99 },
	} {
		foreign := list[0]
		change(&foreign.Experiment)
		foreign.ID = foreign.Experiment.ID()
		foreign.Metrics = map[string]float64{MetricNLL: 1000, MetricRMSE: 1000}
		list = append(list, foreign)
	}
	table, err := UCINLL(list)
	if err != nil {
		t.Fatal(err)
	}
	if got := cell(t, table, "Yacht Hydrodynamics", "Density Uncertainty"); !strings.HasPrefix(got, "*2.600 ± 0.103 (n=20)*") {
		t.Errorf("got %s", got)
	}
}

func TestMissingMetricIsAnError(t *testing.T) {
	list := lines(t, "uci", only(experiment.Density, "yacht"), spread(2.6, 2.5, 0.1))
	delete(list[5].Metrics, MetricNLL)
	if _, err := UCINLL(list); err == nil || !strings.Contains(err.Error(), `no metric "nll"`) {
		t.Errorf("got %v", err)
	}
}

func TestRowsAndColumns(t *testing.T) {
	table, err := UCINLL(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 10 || len(table.Columns) != 10 {
		t.Errorf("%d rows, columns %v", len(table.Rows), table.Columns)
	}
	if got := cell(t, table, "Boston Housing", "MFVI"); got != "not run | paper –" {
		t.Errorf("MFVI: %s", got)
	}
	if got := cell(t, table, "Energy Efficiency (cooling)", "Rank-1 BNN"); got != "not run | paper 2.044 ± 0.099" {
		t.Errorf("cooling: %s", got)
	}
	if got := cell(t, table, "Energy Efficiency (heating)", "Rank-1 BNN"); got != "not run | paper –" {
		t.Errorf("heating: %s", got)
	}
	if got := cell(t, table, "Year Prediction MSD", "MC Dropout"); got != "not run | paper 3.568" {
		t.Errorf("Year: %s", got)
	}
}

// The methods that the paper's UCI tables leave out have no number of the paper beside them, and are not
// wanted on the large sets.
func TestMethodsThatThePaperLeavesOut(t *testing.T) {
	list := append(lines(t, "uci-gp", only(experiment.SNGP, "yacht"), spread(1.9, 0.8, 0.1)), lines(t, "uci", only(experiment.Density, "yacht"), spread(2.5, 2.5, 0.1))...)
	table, err := UCINLL(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ row, column, want string }{
		{"Yacht Hydrodynamics", "SNGP (not in the paper)", "*1.900 ± 0.103 (n=20)*"},
		{"Yacht Hydrodynamics", "DUE (not in the paper)", "not run"},
		{"Kin8nm", "Deep Ensemble (not in the paper)", "–"},
	} {
		if got := cell(t, table, c.row, c.column); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.row, c.column, got, c.want)
		}
	}
	panels, err := UCIPanels(list, MetricNLL)
	if err != nil || len(panels[0].Entries) != len(uciColumns) {
		t.Errorf("a picture has %d methods (error %v), want the paper's and MFVI", len(panels[0].Entries), err)
	}
}

// The table of one optimizer takes SNGP and DUE from their own set, and no method from the protocol's runs.
func TestUCIAdam(t *testing.T) {
	list := slices.Concat(lines(t, "uci-gp", only(experiment.SNGP, "yacht"), spread(1.9, 0.8, 0.1)), lines(t, "uci", only(experiment.Rank1, "yacht"), spread(0.1, 0.1, 0.1)),
		lines(t, "uci-adam", only(experiment.Density, "yacht"), spread(1.5, 0.9, 0.1)))
	table, err := UCIAdam(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ row, column, want string }{
		{"Yacht Hydrodynamics, NLL", "SNGP", "1.900 ± 0.103 (n=20)"},
		{"Yacht Hydrodynamics, NLL", "Density Uncertainty", "*1.500 ± 0.103 (n=20)*"},
		{"Yacht Hydrodynamics, RMSE", "SNGP", "*0.800 ± 0.103 (n=20)*"},
		{"Yacht Hydrodynamics, RMSE", "Rank-1 BNN", "not run"},
		{"Boston Housing, RMSE", "Density Uncertainty", "not run"},
	} {
		if got := cell(t, table, c.row, c.column); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.row, c.column, got, c.want)
		}
	}
}

func TestDifference(t *testing.T) {
	ours := Summary{Scale: experiment.Full, N: 20, Wanted: 20, Mean: 0.00063, Std: 0.00003}
	if d, verdict := Difference(ours, Published{0.001, 0, 3}); d != 0 || verdict != Agrees {
		t.Errorf("rounding: %v %s", d, verdict)
	}
	if d, verdict := Difference(ours, Published{0.002, 0, 3}); math.Abs(d-(0.00063-0.002+0.0005)/0.00003) > 1e-9 || verdict != Better {
		t.Errorf("beyond rounding: %v %s", d, verdict)
	}
	for _, s := range []Summary{{Scale: experiment.Quick, N: 2, Mean: 1, Std: 1}, {}, {Scale: experiment.Full, N: 19, Diverged: 1, Mean: 1, Std: 1}} {
		if d, verdict := Difference(s, Published{1, 1, 3}); !math.IsNaN(d) || verdict != Unsettled {
			t.Errorf("%+v: %v %s", s, d, verdict)
		}
	}
}

func TestClaims(t *testing.T) {
	table, err := UCIClaims(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{"NLL", "RMSE"} {
		if got := cell(t, table, metric, "Paper: best on"); got != "6 of 9" {
			t.Errorf("%s: the paper's claim: %s", metric, got)
		}
		if got := cell(t, table, metric, "Ours: best on"); got != "–" {
			t.Errorf("%s: our claim without runs: %s", metric, got)
		}
	}
	if got := cell(t, table, "NLL", "Paper: not best on"); !strings.Contains(got, "Protein Structure: Rank-1 BNN 2.771, density 2.821") {
		t.Errorf("exceptions: %s", got)
	}
	// Density wins on yacht and loses on wine; boston is incomplete.
	level := map[string]float64{experiment.Density: 1, experiment.Rank1: 2, experiment.VDropout: 3, experiment.MCDropout: 4}
	var list []results.Result
	for method, m := range level {
		list = append(list, lines(t, "uci", only(method, "yacht"), spread(m, m, 0.1))...)
		list = append(list, lines(t, "uci", only(method, "wine"), spread(-m, -m, 0.1))...)
		list = append(list, lines(t, "uci", only(method, "boston"), spread(m, m, 0.1))[1:]...)
	}
	if table, err = UCIClaims(list); err != nil {
		t.Fatal(err)
	}
	if got := cell(t, table, "RMSE", "Ours: best on"); got != "1 of 2" {
		t.Errorf("our claim: %s", got)
	}
	if got := cell(t, table, "RMSE", "Ours: not best on"); got != "Wine Quality Red: MC Dropout -4.000, density -1.000" {
		t.Errorf("our exceptions: %s", got)
	}
	if got := cell(t, table, "RMSE", "Not complete"); !strings.HasPrefix(got, "Boston Housing | Concrete") {
		t.Errorf("not complete: %s", got)
	}
}

func TestReleased(t *testing.T) {
	references, err := References()
	if err != nil || len(references) != 12 {
		t.Fatal(len(references), err)
	}
	// A far-away split outside the reference's ones must not count: concrete was measured on 5.
	list := lines(t, "uci-released", only(experiment.Density, "concrete"), func(e experiment.Experiment) map[string]float64 {
		if e.Split >= 5 {
			return map[string]float64{MetricNLL: 100, MetricRMSE: 100}
		}
		return map[string]float64{MetricNLL: 3.1 + 0.1*float64(e.Split-2), MetricRMSE: 5.3}
	})
	table, err := UCIReleased(list)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := cell(t, table, "Concrete Strength", "NLL"), "3.100 ± 0.158 (n=5) | theirs 3.0761 ± 0.1057 | +0.2 sd, agrees"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for want, content := range map[string]string{
		"unexpected heading": "a,b\n",
		"nll_mean of":        "dataset,method,splits,nll_mean,nll_std,rmse_mean,rmse_std\nyacht,density,20,x,1,1,1\n",
		"wrong number":       "dataset,method\nyacht\n",
	} {
		if _, err := decodeReferences(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// The sizes that the paper prints must be those of the data.
func TestDatasetsMatchThePaper(t *testing.T) {
	table, err := UCIDatasets(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table.Rows {
		if row.Name == DatasetTitle(experiment.Year) || row.Name == DatasetTitle("energy") {
			continue
		}
		for _, column := range []string{"Size", "Dimension"} {
			if ours, theirs := cell(t, table, row.Name, column), cell(t, table, row.Name, column+" (paper)"); ours != theirs {
				t.Errorf("%s of %s: measured %s, paper %s", column, row.Name, ours, theirs)
			}
		}
	}
}

func TestGapRatio(t *testing.T) {
	x := []float64{-5, -4, -3, -2, -1.5, -1, 0, 1, 1.5, 2, 3, 4, 5}
	std := []float64{9, 1, 2, 3, 9, 6, 7, 8, 9, 1, 2, 3, 9}
	if ratio, err := GapRatio(x, std); err != nil || math.Abs(ratio-3.5) > 1e-15 {
		t.Errorf("got %v, %v", ratio, err)
	}
	for name, c := range map[string][2][]float64{
		"lengths":  {{0, 2}, {1}},
		"no gap":   {{2, 3}, {1, 1}},
		"no data":  {{0, 1}, {1, 1}},
		"zero std": {{0, 2}, {1, 0}},
	} {
		if ratio, err := GapRatio(c[0], c[1]); err == nil {
			t.Errorf("%s: got %v", name, ratio)
		}
	}
}

func TestGapRatios(t *testing.T) {
	curve := func(ratio float64) map[string][]float64 {
		return map[string][]float64{"x": {-3, 0, 3}, "std": {1, ratio, 1}}
	}
	set, _ := experiment.SetByName("figure1")
	var list []results.Result
	for _, e := range set.Experiments {
		ratio := map[string]float64{experiment.Density: 1.4, experiment.DensityRank1Mix: 0.9, experiment.MFVI: 0.25, experiment.Rank1: 0.7}[e.Method]
		if ratio == 0 || e.Scale == experiment.Full && e.Seed == 2 {
			continue
		}
		list = append(list, results.Result{ID: e.ID(), Experiment: e, Series: curve(ratio), Diverged: e.Method == experiment.MFVI && e.Seed == 1})
	}
	table, err := GapRatios(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"MFVI", "Seed 0", "0.25 | ≤ 0.6: holds"},
		{"MFVI", "Seed 1", "diverged"},
		{"Rank-1 BNN", "Seed 0", "0.70 | ≤ 0.6: does not hold"},
		{"Density Uncertainty (LDL)", "Seed 1", "1.40 | ≥ 1.2: holds"},
		{"Density Uncertainty (LDL, energy clipped)", "Seed 2", "quick, 800 steps: 1.40"},
		{"Density, rank-1 mixture", "Seed 0", "0.90 | no threshold"},
		{"Variational Dropout", "Seed 0", "not run"},
	} {
		if got := cell(t, table, c[0], c[1]); got != c[2] {
			t.Errorf("%s, %s: got %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func TestEveryTableRenders(t *testing.T) {
	list := lines(t, "uci", only(experiment.Density, "yacht"), spread(-2.6, 2.5, 0.1))
	for _, named := range List() {
		table, err := named.Make(list)
		if err != nil {
			t.Fatalf("%s: %v", named.Name, err)
		}
		if table.Name != named.Name {
			t.Errorf("table %s calls itself %s", named.Name, table.Name)
		}
		for _, format := range Formats() {
			out, err := table.Render(format)
			if err != nil {
				t.Fatalf("%s as %s: %v", named.Name, format, err)
			}
			again, err := table.Render(format)
			if err != nil || out != again {
				t.Errorf("%s as %s is not reproducible", named.Name, format)
			}
			switch format {
			case HTML:
				// <br> is no XML; everything else must be well formed.
				var v struct{}
				if err := xml.Unmarshal([]byte(strings.ReplaceAll(out, "<br>", "<br/>")), &v); err != nil {
					t.Errorf("%s: %v\n%s", named.Name, err, out)
				}
			case LaTeX:
				checkLaTeX(t, table, out)
			case Markdown:
				for _, line := range strings.Split(out, "\n") {
					if strings.HasPrefix(line, "|") && strings.Count(line, " | ") != len(table.Columns)-1 {
						t.Errorf("%s: a line of another width: %s", named.Name, line)
					}
				}
			}
		}
	}
	if _, err := (Table{}).Render("docx"); err == nil || !strings.Contains(err.Error(), "md, latex, html") {
		t.Errorf("unknown format: %v", err)
	}
	if _, err := (Table{Columns: []string{"a", "b"}, Rows: []Row{{Name: "r"}}}).Render(Markdown); err == nil {
		t.Error("a ragged table was rendered")
	}
}

// checkLaTeX checks braces and that no character is left that LaTeX does not take.
func checkLaTeX(t *testing.T, table Table, out string) {
	t.Helper()
	depth := 0
	for i, r := range out {
		switch {
		case r == '{' && (i == 0 || out[i-1] != '\\'):
			depth++
		case r == '}' && (i == 0 || out[i-1] != '\\'):
			depth--
		case r > 126:
			t.Errorf("%s: LaTeX holds %q", table.Name, r)
		}
	}
	if depth != 0 || !strings.Contains(out, `\toprule`) || strings.Count(out, `\\`+"\n") != len(table.Rows)+1 {
		t.Errorf("%s: braces off by %d, or rows are missing:\n%s", table.Name, depth, out)
	}
}

func TestEscaping(t *testing.T) {
	table := Table{Name: "x", Caption: "50% of a_b & <c> | {d} $", Columns: []string{"n", "v"}, Rows: []Row{{Name: "r|s", Cells: []Cell{{{Text: "-1 ± 2"}, {Text: "<b>", Bold: true}}}}}}
	for format, want := range map[string][]string{
		Markdown: {`r\|s`, "-1 ± 2<br>**&lt;b>**", `a\_b`},
		LaTeX:    {`50\% of a\_b \& <c> | \{d\} \$`, `\shortstack{$-$1 $\pm$ 2 \\ \textbf{<b>}}`},
		HTML:     {"a_b &amp; &lt;c&gt;", "-1 ± 2<br><b>&lt;b&gt;</b>"},
	} {
		out, err := table.Render(format)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s lacks %q:\n%s", format, w, out)
			}
		}
	}
}

func ExampleDifference() {
	cell, _ := paper.UCICell(paper.UCINLL, "yacht", experiment.Density)
	ours := Summary{Scale: experiment.Full, N: 20, Wanted: 20, Mean: 2.611, Std: 0.095}
	inStd, verdict := Difference(ours, Published{cell.Mean, cell.Std, cell.Decimals})
	fmt.Printf("%+.2f sd, %s\n", inStd, verdict)
	// Output: +0.18 sd, agrees
}
