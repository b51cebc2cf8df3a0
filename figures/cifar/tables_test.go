package cifar

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// linesOf are the lines of experiments, all on one device.
func linesOf(measure func(results.Experiment) map[string]float64, lists ...[]results.Experiment) []results.Result {
	var lines []results.Result
	for _, e := range slices.Concat(lists...) {
		lines = append(lines, results.Result{ID: e.ID(), Experiment: e, Metrics: measure(e), Device: "card"})
	}
	return lines
}

// measured makes metrics whose mean over 3 seeds is the given one, with the standard deviation sd.
func measured(accuracy, ece, nll, sd float64) func(results.Experiment) map[string]float64 {
	return func(e results.Experiment) map[string]float64 {
		d := sd * (float64(e.Seed) - 1)
		return map[string]float64{
			results.MetricAccuracy: accuracy + d, results.MetricECE: ece + d, results.MetricNLL: nll + d, results.MetricPosteriorStd: 1.2e-3,
			results.MetricParameters: 341266, results.MetricTrainingGFLOP: 0.2756,
			results.MetricSecondsPerEpoch: 10 + float64(e.Seed), results.MetricImagesPerSecond: 4000,
		}
	}
}

func tableOf(t *testing.T, name string, lines []results.Result, further ...methods.Method) report.Table {
	t.Helper()
	table := must.Get(NamedTable(name, lines, further...))(t)
	return table
}

var ten14 = Paper(CIFAR10, ResNet14)

// Every table is made, in every format, of no lines and of those that come with the checkout.
func TestTablesOfCommittedLines(t *testing.T) {
	committed := must.Get(results.Committed())(t)
	for _, named := range Tables() {
		t.Run(named.Name, func(t *testing.T) {
			for _, lines := range [][]results.Result{nil, committed} {
				table := must.Get(named.Of(lines, func(string) (string, bool) { return "", false }))(t)
				for _, format := range report.TableFormats() {
					if _, err := table.Render(format); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	fails(t, "a table that is not there", errorOf(NamedTable("cifar11", nil)), `no table "cifar11"; there are cifar10-resnet14, `)
}

func TestClassificationCells(t *testing.T) {
	density, quick := ten14.Experiments(methods.Density), ten14.Quick().Experiments(methods.Density)
	full := linesOf(measured(0.9153, 0.004, 0.24, 0.002), density)
	elsewhere := linesOf(measured(0.9153, 0.004, 0.24, 0.002), density)
	elsewhere[0].Device = "other card"
	for _, c := range []struct {
		name  string
		lines []results.Result
		// in the columns of accuracy, ECE, NLL, posterior, parameters, GFLOP, time and device
		want []string
	}{
		{"nothing", nil, []string{
			"not run | paper 92.2 ± 0.3", "not run | paper 0.004 ± 0.000", "not run | paper 0.226 ± 0.003", "–", "–", "–", "–", "–",
		}},
		{"three seeds", full, []string{
			"91.53 ± 0.20 (n=3) | paper 92.2 ± 0.3 | -3.1 sd, worse", "0.00400 ± 0.00200 (n=3) | paper 0.004 ± 0.000 | +0.0 sd, agrees",
			"0.2400 ± 0.0020 (n=3) | paper 0.226 ± 0.003 | +6.7 sd, worse", "0.0012", "341,266", "0.276", "11", "card",
		}},
		{"one seed", full[1:2], []string{
			"91.53 (n=1 of 3) | paper 92.2 ± 0.3 | -0.67, no sd", "0.00400 (n=1 of 3) | paper 0.004 ± 0.000 | +0.0000, no sd",
			"0.2400 (n=1 of 3) | paper 0.226 ± 0.003 | +0.0140, no sd", "0.0012", "341,266", "0.276", "11", "card",
		}},
		{"two devices", elsewhere, []string{
			"91.53 ± 0.20 (n=3) | paper 92.2 ± 0.3 | -3.1 sd, worse", "0.00400 ± 0.00200 (n=3) | paper 0.004 ± 0.000 | +0.0 sd, agrees",
			"0.2400 ± 0.0020 (n=3) | paper 0.226 ± 0.003 | +6.7 sd, worse", "0.0012", "341,266", "0.276", "11.5", "card | and 1 other",
		}},
		// A quick run's epoch is of 512 images: its time is no one's.
		{"quick only", linesOf(measured(0.25, 0.1, 2, 0), quick), []string{
			"quick, 1 epochs of 512 images: 25.00 (n=1) | paper 92.2 ± 0.3", "quick, 1 epochs of 512 images: 0.1000 (n=1) | paper 0.004 ± 0.000",
			"quick, 1 epochs of 512 images: 2.0000 (n=1) | paper 0.226 ± 0.003", "–", "341,266", "0.276", "–", "–",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := tableOf(t, "cifar10-resnet14", c.lines)
			for i, column := range []string{"Accuracy (%)", "ECE", "NLL", "Posterior std", "Parameters", "GFLOP", "s/epoch", "Device"} {
				if got := figtest.Cell(t, table, "Density Uncertainty", column); got != c.want[i] {
					t.Errorf("%s:\n got %s\nwant %s", column, got, c.want[i])
				}
			}
			if got := figtest.Cell(t, table, "MFVI", "Parameters"); got != "–" {
				t.Errorf("parameters of what was not run: %s", got)
			}
		})
	}
	if !strings.Contains(tableOf(t, "cifar10-resnet14", nil).Caption, "decay=all") || strings.Contains(tableOf(t, "cifar10-released", nil).Caption, "decay=all") {
		t.Error("the caption of the paper's settings, and it alone, says what becomes of the posterior without decay")
	}
}

// What was run with another weight decay, and what the paper does not have, is in rows of its own; the temperature's
// row is of the models that were trained without the held-out images.
func TestRowsBesideThePapers(t *testing.T) {
	nll := map[string]float64{methods.Deterministic.Name: 0.4, methods.Ensemble.Name: 0.2, methods.SNGP.Name: 0.35, methods.DUE.Name: 0.36}
	list := slices.Concat(
		linesOf(measured(0.92, 0.01, 0.3, 0.002), ten14.Experiments(methods.Density)),
		linesOf(measured(0.91, 0.01, 0.226, 0.002), ten14.withDecayAll().Experiments(methods.Density)),
		linesOf(func(e results.Experiment) map[string]float64 {
			m := measured(0.9, 0.02, nll[e.Method], 0.001)(e)
			if e.HeldOut > 0 {
				m[results.MetricNLL], m["accuracy_scaled"], m["nll_scaled"], m["ece10_scaled"] = 0.5, 0.89, 0.37+0.001*float64(e.Seed), 0.03
			}
			return m
		}, results.Filter{Datasets: []string{CIFAR10}, Scale: results.Full}.Apply(gaussianProcessSet().Experiments)))
	table := tableOf(t, "cifar10-resnet14", list)
	for _, c := range []struct{ row, want string }{
		{"Density Uncertainty", "0.3000 ± 0.0020 (n=3) | paper 0.226 ± 0.003 | +36.7 sd, worse"},
		{"Density Uncertainty, decay=all", "0.2260 ± 0.0020 (n=3) | paper 0.226 ± 0.003 | +0.0 sd, agrees"},
		{"Rank-1 BNN, decay=all", "not run | paper 0.231 ± 0.002"},
		{"MFVI, decay=all", "not run | paper 0.291 ± 0.004"},
		{"Deterministic (not in the paper)", "0.4000 ± 0.0010 (n=3)"},
		{"Deterministic, temperature scaled (not in the paper)", "0.3710 ± 0.0010 (n=3)"},
		{"Deep Ensemble (not in the paper)", "*0.2000 ± 0.0010 (n=3)*"},
		{"SNGP (not in the paper)", "0.3500 ± 0.0010 (n=3)"},
		{"DUE (not in the paper)", "0.3600 ± 0.0010 (n=3)"},
	} {
		if got := figtest.Cell(t, table, c.row, "NLL"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.row, got, c.want)
		}
	}
	if got := figtest.Cell(t, tableOf(t, "cifar10-wrn", list), "Deep Ensemble (not in the paper)", "NLL"); got != "not run" {
		t.Errorf("an ensemble of Wide ResNets: %s", got)
	}
	for i := range list {
		delete(list[i].Metrics, "nll_scaled") // no temperature was the best
	}
	if got := figtest.Cell(t, tableOf(t, "cifar10-resnet14", list), "Deterministic, temperature scaled (not in the paper)", "NLL"); got != "not measured" {
		t.Errorf("without a temperature: %s", got)
	}
}

// Runs of ten epochs stand in a column of their own beside the paper's numbers, in the row with the same weight decay where
// a method has two.
func TestProcessorColumn(t *testing.T) {
	p := ten14.Processor()
	n, _ := searchOf(methods.Density.Name)
	density := n.with(p, committedChoice()[methods.Density.Name])
	onWeights := density
	onWeights.Decay = methods.DecayWeights
	p.Seeds = []uint64{0, 1}
	detected := func(nll float64) func(results.Experiment) map[string]float64 {
		return func(e results.Experiment) map[string]float64 {
			m := measured(0.8, 0.02, nll, 0.01)(e)
			m["nll_scaled"], m["accuracy_scaled"], m["ece10_scaled"] = 0.1, 0.8, 0.001
			m["ood_cifar100_auroc"], m["ood_cifar100_auroc_energy"] = 0.7, 0.6
			return m
		}
	}
	lines := slices.Concat(
		linesOf(detected(0.5), p.Experiments(methods.Deterministic)),
		linesOf(detected(0.6), density.Experiments(methods.Density)), linesOf(detected(0.7), onWeights.Experiments(methods.Density)))
	for _, c := range []struct{ table, row, column, want string }{
		{"cifar10-resnet14", "Density Uncertainty, decay=all", processorHeading, "Accuracy 79.00 | ECE 0.01000 | NLL 0.5900 (n=1)"},
		{"cifar10-resnet14", "Density Uncertainty", processorHeading, "Accuracy 79.00 | ECE 0.01000 | NLL 0.6900 (n=1)"},
		{"cifar10-resnet14", "Density Uncertainty", "NLL", "not run | paper 0.226 ± 0.003"},
		{"cifar10-resnet14", "Deterministic (not in the paper)", processorHeading, "Accuracy 79.50 ± 0.71 | ECE 0.01500 ± 0.00707 | NLL 0.4950 ± 0.0071 (n=2)"},
		{"cifar10-resnet14", "Deterministic, temperature scaled (not in the paper)", processorHeading, "Accuracy 80.00 ± 0.00 | ECE 0.00100 ± 0.00000 | NLL 0.1000 ± 0.0000 (n=2)"},
		{"cifar10-resnet14", "Rank-1 BNN, decay=all", processorHeading, "not run"},
		{"cifar100-resnet14", "Deterministic (not in the paper)", processorHeading, "not run"},
		{"ood-svhn", "Density Uncertainty", processorColumns[0].heading, "0.600 (n=1)"},
		{"ood-svhn", "Density, as the baselines", processorColumns[0].heading, "0.700 (n=1)"},
		{"ood-svhn", "Density Uncertainty", processorColumns[1].heading, "not measured"},
		{"ood-svhn", "SNGP (not in the paper)", processorColumns[1].heading, "not run"},
	} {
		if got := figtest.Cell(t, tableOf(t, c.table, lines), c.row, c.column); got != c.want {
			t.Errorf("%s, %s, %s:\n got %s\nwant %s", c.table, c.row, c.column, got, c.want)
		}
	}
}

// The best of ours is bold in each column, among complete rows.
func TestBestMethodIsBold(t *testing.T) {
	list := slices.Concat(
		linesOf(measured(0.91, 0.004, 0.24, 0), ten14.Experiments(methods.Density)),
		linesOf(measured(0.92, 0.005, 0.23, 0), ten14.Experiments(methods.MFVI)),
		linesOf(measured(0.99, 0.001, 0.01, 0), ten14.Experiments(methods.Rank1))[:2])
	table := tableOf(t, "cifar10-resnet14", list)
	for _, c := range []struct{ column, best string }{{"Accuracy (%)", "MFVI"}, {"ECE", "Density Uncertainty"}, {"NLL", "MFVI"}} {
		for _, row := range table.Rows {
			if got := strings.HasPrefix(figtest.Cell(t, table, row.Name, c.column), "*"); got != (row.Name == c.best) {
				t.Errorf("%s, %s: bold is %v", row.Name, c.column, got)
			}
		}
	}
}

// A method of one's own has a row in every table, by its title and its scores.
func TestRowsOfFurtherMethods(t *testing.T) {
	mine := methods.New("mine", baselines.Deterministic{})
	mine.Title, mine.Detects = "My layers", []string{methods.ByEntropy}
	detected := func(e results.Experiment) map[string]float64 {
		m := measured(0.9, 0.02, 0.3, 0.001)(e)
		m["ood_cifar100_auroc"], m["ood_cifar100_auroc_entropy"] = 0.7, 0.75
		return m
	}
	lines := linesOf(detected, ten14.Experiments(mine), ten14.Small().Experiments(mine), ten14.Small().Experiments(methods.DUE))
	if got, want := figtest.Cell(t, tableOf(t, "cifar10-resnet14", lines, mine), "My layers (not in the paper)", "NLL"), "0.3000 ± 0.0010 (n=3)"; got != want {
		t.Errorf("classification: %s, want %s", got, want)
	}
	detection := tableOf(t, "ood-svhn", lines, mine)
	last := detection.Rows[len(detection.Rows)-1]
	if last.Name != "My layers (not in the paper)" || last.Cells[0][0].Text != "entropy" || !strings.HasPrefix(last.Cells[5][0].Text, "0.750") {
		t.Errorf("detection: %v", texts(last))
	}
	small := tableOf(t, "cifar-small", lines, mine)
	if got := texts(small.Rows[1]); got[2] != "My layers" || got[11] != "0.750 ± 0.000" {
		t.Errorf("small runs: %v", got)
	}
	if got := texts(tableOf(t, "cifar-small", lines).Rows[1]); got[2] != "mine" || got[11] != "–" {
		t.Errorf("of a method that is not known: %v", got)
	}
}

// What this project does not run is known from the paper, and the mixtures are told apart.
func TestWideResNetRows(t *testing.T) {
	var list []results.Result
	wide := Paper(CIFAR10, WRN28x10)
	for i, fraction := range ablationFractions {
		list = append(list, linesOf(measured(0.965, 0.011, 0.1*float64(i+1), 0.001), wide.withFraction(fraction).Experiments(methods.DensityMixture))...)
	}
	for _, c := range []struct{ table, row, column, want string }{
		{"rank1-ablation", "Rank-1 Mixture (1.25%)", "NLL", "*0.1000 ± 0.0010 (n=3)* | paper 0.118"},
		{"rank1-ablation", "Rank-1 Mixture (2.5%)", "NLL", "0.2000 ± 0.0010 (n=3) | paper 0.1"},
		{"rank1-ablation", "Rank-1 Mixture (5%)", "NLL", "0.3000 ± 0.0010 (n=3) | paper 0.1"},
		{"rank1-ablation", "Rank-1 Mixture (10%)", "NLL", "0.4000 ± 0.0010 (n=3) | paper 0.1"},
		{"rank1-ablation", "Rank-1 Mixture (20%)", "NLL", "0.5000 ± 0.0010 (n=3) | paper 0.1"},
		{"rank1-ablation", "Full-rank LDL", "NLL", "not run | paper 0.1"},
		{"cifar10-wrn", "Rank-1 Mixture (1.25%)", "NLL", "0.1000 ± 0.0010 (n=3) | paper 0.118 ± 0.001 | -17.5 sd, better"},
		{"cifar10-wrn", "SNGP", "NLL", "not run | paper 0.143 ± 0.002"},
		{"cifar10-wrn", "DUE", "NLL", "not run | paper 0.170 ± 0.005"},
		{"cifar10-wrn", "Full-rank LDL", "NLL", "not run | paper 0.119 ± 0.003"},
		{"cifar100-wrn", "DUE", "ECE", "not run | paper – | (out of memory)"},
	} {
		if got := figtest.Cell(t, tableOf(t, c.table, list), c.row, c.column); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %s: %s, want %s", c.table, c.row, got, c.want)
		}
	}
	if rows := tableOf(t, "rank1-ablation", list).Rows; len(rows) != 6 {
		t.Errorf("%d rows, want 6", len(rows))
	}
}

// Runs of any method, scale and option are compared, also from a folder that is in no checkout.
func TestTableOfRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	small := ten14.Quick()
	small.Seeds, small.TrainN, small.TestN, small.HeldOut, small.Decay = []uint64{0, 1}, 256, 64, 64, methods.DecayAll
	own := methods.New("own", nil)
	lines := linesOf(measured(0.9, 0.1, 0.3, 0.01), small.Experiments(own, methods.Density.Variant("", func(o *methods.Options) { o.InitStd = 0.2 })), ten14.Experiments(methods.MFVI)[:1])
	lines[3].Diverged = true
	table := must.Get(Table(lines))(t)
	var got []string
	for _, row := range table.Rows {
		cells := []string{row.Name}
		for _, c := range row.Cells {
			cells = append(cells, figtest.Text(c))
		}
		got = append(got, strings.Join(cells, ", "))
	}
	want := []string{
		"own decay=all, CIFAR-10, ResNet-14, 256, 1, 64, 2, 89.5 ± 0.7, 0.295 ± 0.007, 0.095 ± 0.007, –",
		"density decay=all init_std=0.2, CIFAR-10, ResNet-14, 256, 1, 64, 1, 1 diverged, 89.0, 0.290, 0.090, –",
		"mfvi, CIFAR-10, ResNet-14, all, 200, all, 1, 89.0, 0.290, 0.090, –",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	figtest.Renders(t, table)
	onHeldOut := must.Get(Table(linesOf(measured(0.9, 0.1, 0.3, 0.01), processorGridSet().Experiments[:1])))(t)
	if got := figtest.Text(onHeldOut.Rows[0].Cells[4]); got != "5,000 held out" {
		t.Errorf("a run of the grid was measured on %q images", got)
	}
	released := Released(CIFAR10, ResNet14)
	two := must.Get(Table(linesOf(measured(0.9, 0.1, 0.3, 0.01), Paper(CIFAR10, ResNet14).Experiments(methods.MFVI), released.Experiments(methods.MFVI))))(t)
	if a, b := two.Rows[0].Name, two.Rows[1].Name; a == b {
		t.Errorf("runs of both fidelities are called %q", a)
	}
	if _, err := NamedTable("cifar-small", lines, own); err != nil {
		t.Error(err)
	}
	lines[0].Experiment.Study = results.UCI
	fails(t, "a run on UCI", errorOf(Table(lines)), "is no run on images")
}

func TestLinesWithoutMetrics(t *testing.T) {
	list := linesOf(measured(0.9, 0.1, 0.3, 0.01), ten14.Experiments(methods.MFVI))
	list[1].Metrics = nil
	fails(t, "a line without metrics", errorOf(NamedTable("cifar10-resnet14", list)), "no metric")
	list[1].Diverged = true
	got := figtest.Cell(t, tableOf(t, "cifar10-resnet14", list), "MFVI", "NLL")
	if !strings.Contains(got, "1 of 3 runs diverged | paper 0.291") || strings.Contains(got, "sd,") {
		t.Errorf("a diverged run: %s", got)
	}
}

// The energy row is of the models that were trained without the held-out images; what SVHN would tell is not run
// where the data were not there.
func TestDetectionTable(t *testing.T) {
	auroc := func(e results.Experiment) map[string]float64 {
		d := 0.01 * (float64(e.Seed) - 1)
		other, base := CIFAR100, 0.8
		if e.Dataset == other {
			other, base = CIFAR10, 0.7
		}
		m := map[string]float64{"ood_" + other + "_auroc": base + d, "ood_svhn-first1083_auroc": 0.6 + d}
		if e.HeldOut > 0 {
			m["ood_"+other+"_auroc_energy"] = base + 0.1 + d
		}
		if e.Dataset == CIFAR10 {
			m["ood_svhn_auroc"], m["ood_svhn_auprc"] = 0.9+d, 0.95+d
			if e.HeldOut > 0 {
				m["ood_svhn_auroc_energy"], m["ood_svhn_auprc_energy"] = 0.5+d, 0.55+d
			}
		}
		return m
	}
	table := tableOf(t, "ood-svhn", linesOf(auroc, detectionSet().At(results.Full)))
	for _, c := range []struct{ row, column, want string }{
		{"Rank-1 BNN", "CIFAR-10 → SVHN AUROC", "0.900 ± 0.010 (n=3) | paper 0.880 ± 0.001 | +1.9 sd, better"},
		{"Density Uncertainty", "CIFAR-10 → SVHN AUROC", "0.500 ± 0.010 (n=3) | paper 0.893 ± 0.056 | -39.2 sd, worse"},
		{"Density Uncertainty", "CIFAR-10 → SVHN AUPRC", "0.550 ± 0.010 (n=3) | paper 0.952 ± 0.026 | -40.1 sd, worse"},
		{"Density, as the baselines", "CIFAR-10 → SVHN AUROC", "0.900 ± 0.010 (n=3)"},
		{"Density Uncertainty", "CIFAR-100 → SVHN AUROC", "not measured | paper 0.800 ± 0.024"},
		{"Density Uncertainty", "CIFAR-10 → CIFAR-100 AUROC", "0.900 ± 0.010 (n=3)"},
		{"MFVI", "CIFAR-100 → CIFAR-10 AUROC", "0.700 ± 0.010 (n=3)"},
		{"MFVI", "CIFAR-10 → first 1083 of SVHN train, AUROC", "0.600 ± 0.010 (n=3)"},
		{"SNGP (not in the paper)", "CIFAR-10 → CIFAR-100 AUROC", "not run"},
		{"MFVI", "Score", "maximum probability"},
		{"Density Uncertainty", "Score", "energy"},
	} {
		if got := figtest.Cell(t, table, c.row, c.column); got != c.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", c.row, c.column, got, c.want)
		}
	}
	if got, want := figtest.Cell(t, tableOf(t, "ood-svhn", nil), "MFVI", "CIFAR-10 → SVHN AUROC"), "not run | paper 0.830 ± 0.014"; got != want {
		t.Errorf("without lines: %s, want %s", got, want)
	}
}

// ownScores are the areas under ROC curves of CIFAR-100 by each score.
func ownScores(m map[string]float64) map[string]float64 {
	m["ood_cifar100_auroc"], m["ood_cifar100_auroc"+methods.ByEntropy] = 0.6, 0.61
	m["ood_cifar100_auroc"+methods.ByMutualInformation], m["ood_cifar100_auroc"+methods.ByDempsterShafer] = 0.62, 0.63
	return m
}

// Each method that has one is scored by its own score too.
func TestDetectionOfMethodsThatThePaperLeavesOut(t *testing.T) {
	measure := func(e results.Experiment) map[string]float64 {
		if e.HeldOut > 0 {
			return map[string]float64{"ood_cifar100_auroc": 0} // another model's
		}
		return ownScores(map[string]float64{})
	}
	filter := results.Filter{Datasets: []string{CIFAR10}, Scale: results.Full, Seeds: []uint64{0}}
	table := tableOf(t, "ood-svhn", linesOf(measure, filter.Apply(gaussianProcessSet().Experiments)))
	var got []string
	for _, row := range table.Rows[6:] {
		got = append(got, row.Name+", "+row.Cells[0][0].Text+": "+row.Cells[5][0].Text)
	}
	want := []string{
		"Deterministic (not in the paper), maximum probability: 0.600 (n=1 of 3)",
		"Deep Ensemble (not in the paper), maximum probability: 0.600 (n=1 of 3)",
		"Deep Ensemble (not in the paper), mutual information of label and sample: 0.620 (n=1 of 3)",
		"SNGP (not in the paper), maximum probability: 0.600 (n=1 of 3)",
		"SNGP (not in the paper), Dempster-Shafer: 0.630 (n=1 of 3)",
		"DUE (not in the paper), maximum probability: 0.600 (n=1 of 3)",
		"DUE (not in the paper), entropy: 0.610 (n=1 of 3)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The small runs' own scores, and the temperature's row where a run has one.
func TestSmallRunsOfMethodsThatThePaperLeavesOut(t *testing.T) {
	list := linesOf(func(e results.Experiment) map[string]float64 {
		m := ownScores(measured(0.4, 0.05, 1.6, 0)(e))
		if e.Method == methods.Deterministic.Name && e.Seed > 0 {
			m["accuracy"+predictions.Scaled], m["nll"+predictions.Scaled], m["ece10"+predictions.Scaled] = 0.4, 1.5, 0.02
		}
		return m
	}, ten14.Small().Experiments(append(slices.Clone(processes), singleNetworks...)...))
	var got []string
	for _, row := range tableOf(t, "cifar-small", list).Rows {
		cells := texts(row)
		got = append(got, strings.Join([]string{cells[2], cells[6], cells[8], cells[10], cells[11]}, ", "))
	}
	want := []string{
		"Deterministic, 3, 1.600 ± 0.000, 0.600 ± 0.000, –", "Deterministic, temperature scaled, 2, 1.500 ± 0.000, –, –",
		"Deep Ensemble, 3, 1.600 ± 0.000, 0.600 ± 0.000, 0.620 ± 0.000", "SNGP, 3, 1.600 ± 0.000, 0.600 ± 0.000, 0.630 ± 0.000",
		"DUE, 3, 1.600 ± 0.000, 0.600 ± 0.000, 0.610 ± 0.000",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSmallRunsSayWithWhatTheyWereMade(t *testing.T) {
	list := linesOf(measured(0.4, 0.05, 1.6, 0.01), ten14.Small().Experiments(methods.Density),
		ten14.Small().withFraction(0.1).Experiments(methods.DensityMixture),
		Paper(CIFAR100, ResNet14).Small().Experiments(methods.Density), ten14.Experiments(methods.Density))
	list[0].Diverged = true
	table := tableOf(t, "cifar-small", list)
	if len(table.Rows) != 3 {
		t.Fatalf("%d rows, want 2 methods on CIFAR-10 and one on CIFAR-100", len(table.Rows))
	}
	want := "CIFAR-10, ResNet-14, Density Uncertainty, 5,000, 5, 1,000, 2, 1 diverged, 40.5 ± 0.7, 1.605 ± 0.007, 0.055 ± 0.007, –, –, 11.5, card"
	if got := strings.Join(texts(table.Rows[0]), ", "); got != want {
		t.Errorf("first row %s\nwant %s", got, want)
	}
	if got := texts(table.Rows[1])[2]; got != "Density, rank-1 mixture mixture_fraction=0.1" {
		t.Errorf("a method with options: %s", got)
	}
	text, err := table.Render(report.Markdown)
	if err != nil || strings.Contains(text, "sd,") || strings.Contains(text, "agrees") {
		t.Errorf("a small run has a verdict (error %v):\n%s", err, text)
	}
}

// Runs that differ in what has no column of its own are told apart.
func TestRunsAreToldApart(t *testing.T) {
	one := linesOf(measured(0.4, 0.05, 1.6, 0.01), ten14.Small().Experiments(methods.Density)[:1])[0]
	var list []results.Result
	for _, change := range []func(e *results.Experiment){
		func(*results.Experiment) {},
		func(e *results.Experiment) { e.Fidelity = results.Released },
		func(e *results.Experiment) { e.HeldOut = 0 },
		func(e *results.Experiment) { e.TrainN = 100 },
		func(e *results.Experiment) { e.TrainN, e.Samples = 100, 3 },
	} {
		line := one
		change(&line.Experiment)
		line.ID = line.Experiment.ID()
		list = append(list, line)
	}
	var got []string
	for _, row := range tableOf(t, "cifar-small", list).Rows {
		got = append(got, texts(row)[2])
	}
	want := []string{"Density Uncertainty, 25 samples", "Density Uncertainty, 3 samples",
		"Density Uncertainty, paper, 1,000 held out", "Density Uncertainty, released, 1,000 held out", "Density Uncertainty, paper, 0 held out"}
	if !slices.Equal(got, want) {
		t.Errorf("methods %q, want %q", got, want)
	}
	for i := range list {
		list[i].Experiment.Scale, list[i].Experiment.HeldOut = results.Grid, 1000
		list[i].ID = list[i].Experiment.ID()
	}
	grid := tableOf(t, "cifar-grid", list[:2])
	if got := []string{grid.Rows[0].Name, grid.Rows[1].Name}; !slices.Equal(got, []string{"Density Uncertainty, paper", "Density Uncertainty, released"}) {
		t.Errorf("grid: %q", got)
	}
	if got := figtest.Cell(t, grid, "Density Uncertainty, paper", "NLL"); strings.HasPrefix(got, "*") {
		t.Errorf("the only one is the best of its kind: %s", got)
	}
}

func TestGridShowsTheBest(t *testing.T) {
	list := linesOf(func(e results.Experiment) map[string]float64 {
		nll := map[string]float64{"0.1": 0.3, "1": 0.25, "10": 0.4}[e.Options["prior_std"]]
		return map[string]float64{results.MetricAccuracy: 0.9, results.MetricECE: 0.02, results.MetricNLL: nll + 0.2}
	}, gridExperiments())
	table := tableOf(t, "cifar-grid", list)
	if len(table.Rows) != 12 {
		t.Fatalf("%d rows, want 12", len(table.Rows))
	}
	for _, c := range []struct{ row, nll, chosen string }{
		{"Density Uncertainty prior_std=0.1", "0.5000", "–"},
		{"Density Uncertainty prior_std=1", "*0.4500*", "chosen"},
		{"Density Uncertainty prior_std=10", "0.6000", "–"},
		{"Rank-1 BNN prior_std=0.01", "*0.2000*", "–"},
		{"Rank-1 BNN prior_std=1", "0.4500", "–"},
		{"Rank-1 BNN prior_std=0.1", "0.5000", "chosen"},
		{"MC Dropout dropout_rate=0.1", "*0.2000*", "chosen"},
	} {
		if nll, chosen := figtest.Cell(t, table, c.row, "NLL"), figtest.Cell(t, table, c.row, "Paper"); nll != c.nll || chosen != c.chosen {
			t.Errorf("%s: %s, %s, want %s, %s", c.row, nll, chosen, c.nll, c.chosen)
		}
	}
}

// Images held out are not trained on, and the sample has fewer to begin with.
func TestTrainedOn(t *testing.T) {
	for _, c := range []struct {
		train, heldOut int
		sample         bool
		want           string
	}{{0, 0, false, "all"}, {0, 5000, false, "45,000"}, {5000, 1000, false, "5,000"}, {0, 0, true, "1,000"}, {0, 100, true, "900"}, {400, 100, true, "400"}} {
		e := results.Experiment{Study: results.Images, Dataset: "cifar10", Network: "resnet14", Fidelity: results.Paper, TrainN: c.train, HeldOut: c.heldOut}
		if c.sample {
			e.Options = map[string]string{"sample": "true"}
		}
		if got := trainedOn(e); got != c.want {
			t.Errorf("%d with %d held out, sample %v: %s, want %s", c.train, c.heldOut, c.sample, got, c.want)
		}
	}
}
