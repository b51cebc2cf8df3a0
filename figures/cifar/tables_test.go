package cifar

import (
	"math"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// Every table is made, in every format, of no results and of those that come with the checkout.
func TestTablesOfCommittedResults(t *testing.T) {
	committed := must.Get(tables.Committed())(t)
	for _, named := range Tables() {
		t.Run(named.Name, func(t *testing.T) {
			for _, x := range []*tables.Index{index(), committed} {
				if x == committed && strings.HasSuffix(named.Name, "-differences") {
					continue // which takes a minute
				}
				figtest.Renders(t, must.Get(named.Make(x))(t))
			}
		})
	}
	fails(t, "a table that is not there", errorOf(NamedTable("cifar11", index())), `no table "cifar11"; there are cifar10-resnet14, `)
}

// The metrics of results are those of their kept predictions, up to their rounding.
func TestKeptPredictionsGiveTheStoredMetrics(t *testing.T) {
	x := must.Get(tables.Committed())(t)
	all := list(Small, ten, 1, smallMethods...)
	checked := 0
	for _, e := range all {
		r, has := x.Find(e)
		if !has {
			continue
		}
		found := must.Get(experiment.Measure(e, must.Get(r.Predictions())(t)))(t)
		for name, value := range r.Metrics {
			if v, has := found[name]; has != (name != results.MetricSecondsPerEpoch && name != "images_per_second") || has && math.Abs(v-value) > 1e-5 {
				t.Errorf("%v: %s is %v, want %v", e, name, v, value)
			}
		}
		checked++
	}
	if want := len(all) - 2; checked != want { // density layers were not run
		t.Errorf("%d results were measured, want %d", checked, want)
	}
}

func TestClassificationCells(t *testing.T) {
	density, quicks := list(Paper, ten, paperSeeds, methods.Density), list(Quick, ten, 1, methods.Density)
	full := resultsOf(measuring(0.9153, 0.004, 0.24, 0.002), density)
	elsewhere := slices.Clone(full)
	elsewhere[0].Device = "other card"
	for _, c := range []struct {
		name  string
		found []experiment.Result
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
		// The time of an epoch of a quick run, of 512 images, is not shown.
		{"quick only", resultsOf(measuring(0.25, 0.1, 2, 0), quicks), []string{
			"quick, 1 epochs of 512 images: 25.00 (n=1) | paper 92.2 ± 0.3", "quick, 1 epochs of 512 images: 0.1000 (n=1) | paper 0.004 ± 0.000",
			"quick, 1 epochs of 512 images: 2.0000 (n=1) | paper 0.226 ± 0.003", "–", "341,266", "0.276", "–", "–",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := tableOf(t, "cifar10-resnet14", c.found...)
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
	if !strings.Contains(tableOf(t, "cifar10-resnet14").Caption, "decay=all") || strings.Contains(tableOf(t, "cifar10-released").Caption, "decay=all") {
		t.Error("the caption of the paper's settings, and it alone, says what becomes of the posterior without decay")
	}
	// The time of an epoch that no metric has comes from the speed of the training.
	for i := range full {
		delete(full[i].Metrics, results.MetricSecondsPerEpoch)
		full[i].ExamplesPerSecond = 4000
	}
	if got := figtest.Cell(t, tableOf(t, "cifar10-resnet14", full...), "Density Uncertainty", "s/epoch"); got != "12.5" {
		t.Errorf("an epoch takes %s s, want 12.5", got)
	}
}

// What was run with another weight decay, and what the paper does not have, is in rows of its own. The temperature's row is
// of the networks that were trained without the held-out images.
func TestRowsBesideThePapers(t *testing.T) {
	nll := map[string]float64{methods.Deterministic.Name: 0.4, methods.Ensemble.Name: 0.2, methods.SNGP.Name: 0.35, methods.DUE.Name: 0.36}
	found := slices.Concat(
		resultsOf(measuring(0.92, 0.01, 0.3, 0.002), list(Paper, ten, paperSeeds, methods.Density)),
		resultsOf(measuring(0.91, 0.01, 0.226, 0.002), list(paper.withDecay(true), ten, paperSeeds, methods.Density)),
		resultsOf(func(e experiment.Experiment) map[string]float64 {
			m := measuring(0.9, 0.02, nll[e.Method.Name], 0.001)(e)
			if e.Task.Data.(Images).HeldOut > 0 {
				m[results.MetricNLL], m["accuracy_scaled"], m["nll_scaled"], m["ece10_scaled"] = 0.5, 0.89, 0.37+0.001*float64(e.Seed), 0.03
			}
			return m
		}, withTemperature(Paper, ten, slices.Concat(singleNetworks, processes)...)))
	table := tableOf(t, "cifar10-resnet14", found...)
	for _, c := range []struct{ row, want string }{
		{"Density Uncertainty", "0.3000 ± 0.0020 (n=3) | paper 0.226 ± 0.003 | +36.7 sd, worse"},
		{"Density Uncertainty, decay=all", "0.2260 ± 0.0020 (n=3) | paper 0.226 ± 0.003 | +0.0 sd, agrees"},
		{"Rank-1 BNN, decay=all", "not run | paper 0.231 ± 0.002"},
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
	if got := figtest.Cell(t, tableOf(t, "cifar10-wrn", found...), "Deep Ensemble (not in the paper)", "NLL"); got != "not run" {
		t.Errorf("an ensemble of Wide ResNets: %s", got)
	}
	for i := range found {
		delete(found[i].Metrics, "nll_scaled") // no temperature was the best
	}
	if got := figtest.Cell(t, tableOf(t, "cifar10-resnet14", found...), "Deterministic, temperature scaled (not in the paper)", "NLL"); got != "not measured" {
		t.Errorf("without a temperature: %s", got)
	}
}

// Runs of ten epochs stand in a column of their own beside the paper's numbers, in the row with the same weight decay if a
// method has two.
func TestProcessorColumn(t *testing.T) {
	detected := func(nll float64) func(experiment.Experiment) map[string]float64 {
		return func(e experiment.Experiment) map[string]float64 {
			m := measuring(0.8, 0.02, nll, 0.01)(e)
			m["nll_scaled"], m["accuracy_scaled"], m["ece10_scaled"] = 0.1, 0.8, 0.001
			m["ood_cifar100_auroc"], m["ood_cifar100_auroc_energy"] = 0.7, 0.6
			return m
		}
	}
	found := slices.Concat(
		resultsOf(detected(0.5), list(Processor, ten, 2, methods.Deterministic)),
		resultsOf(detected(0.6), list(Chosen(Processor), ten, 1, methods.Density)),
		resultsOf(detected(0.7), list(Chosen(onProcessor.withDecay(false)), ten, 1, methods.Density)))
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
		if got := figtest.Cell(t, tableOf(t, c.table, found...), c.row, c.column); got != c.want {
			t.Errorf("%s, %s, %s:\n got %s\nwant %s", c.table, c.row, c.column, got, c.want)
		}
	}
}

// The best of ours is bold in each column, among complete rows.
func TestBestMethodIsBold(t *testing.T) {
	table := tableOf(t, "cifar10-resnet14", slices.Concat(
		resultsOf(measuring(0.91, 0.004, 0.24, 0), list(Paper, ten, paperSeeds, methods.Density)),
		resultsOf(measuring(0.92, 0.005, 0.23, 0), list(Paper, ten, paperSeeds, methods.MFVI)),
		resultsOf(measuring(0.99, 0.001, 0.01, 0), list(Paper, ten, 2, methods.Rank1)))...)
	for _, c := range []struct{ column, best string }{{"Accuracy (%)", "MFVI"}, {"ECE", "Density Uncertainty"}, {"NLL", "MFVI"}} {
		for _, row := range table.Rows {
			if got := strings.HasPrefix(figtest.Cell(t, table, row.Name, c.column), "*"); got != (row.Name == c.best) {
				t.Errorf("%s, %s: bold is %v", row.Name, c.column, got)
			}
		}
	}
}

// What this project does not run is known from the paper, and the mixtures are told apart.
func TestWideResNetRows(t *testing.T) {
	var found []experiment.Result
	for i, fraction := range ablationFractions {
		found = append(found, resultsOf(measuring(0.965, 0.011, 0.1*float64(i+1), 0.001), list(onWide.experiment, ten, paperSeeds, mixture(fraction)))...)
	}
	for _, c := range []struct{ table, row, column, want string }{
		{"rank1-ablation", "Rank-1 Mixture (1.25%)", "NLL", "*0.1000 ± 0.0010 (n=3)* | paper 0.118"},
		{"rank1-ablation", "Rank-1 Mixture (2.5%)", "NLL", "0.2000 ± 0.0010 (n=3) | paper 0.1"},
		{"rank1-ablation", "Rank-1 Mixture (20%)", "NLL", "0.5000 ± 0.0010 (n=3) | paper 0.1"},
		{"rank1-ablation", "Full-rank LDL", "NLL", "not run | paper 0.1"},
		{"cifar10-wrn", "Rank-1 Mixture (1.25%)", "NLL", "0.1000 ± 0.0010 (n=3) | paper 0.118 ± 0.001 | -17.5 sd, better"},
		{"cifar10-wrn", "SNGP", "NLL", "not run | paper 0.143 ± 0.002"},
		{"cifar10-wrn", "DUE", "NLL", "not run | paper 0.170 ± 0.005"},
		{"cifar10-wrn", "Full-rank LDL", "NLL", "not run | paper 0.119 ± 0.003"},
		{"cifar100-wrn", "DUE", "ECE", "not run | paper – | (out of memory)"},
	} {
		if got := figtest.Cell(t, tableOf(t, c.table, found...), c.row, c.column); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %s: %s, want %s", c.table, c.row, got, c.want)
		}
	}
	if rows := tableOf(t, "rank1-ablation", found...).Rows; len(rows) != 6 {
		t.Errorf("%d rows, want 6", len(rows))
	}
}

// Runs of any method, preset and size are compared.
func TestTableOfRuns(t *testing.T) {
	images := Images{Name: CIFAR10, Sample: true, HeldOut: 100, TestN: 64}
	own := experiment.Method{Name: "own", Layers: baselines.MFVI{PriorStd: 3}}
	found := resultsOf(measuring(0.9, 0.1, 0.3, 0.01), list(Processor, images, 2, own, methods.Density), list(onWide.experiment, ten, 1, methods.MFVI), papersSearches[0].candidates()[:1])
	found[3].Diverged = true
	table := must.Get(Table(found))(t)
	var got []string
	for _, row := range table.Rows {
		got = append(got, strings.Join(texts(row), ", "))
	}
	want := []string{
		"own, CIFAR-10, ResNet-14, 900, 10, 64, 2, 89.5 ± 0.7, 0.295 ± 0.007, 0.095 ± 0.007, –",
		"Density Uncertainty, CIFAR-10, ResNet-14, 900, 10, 64, 1, 1 diverged, 89.0, 0.290, 0.090, –",
		"MFVI, CIFAR-10, WRN-28-10, all, 200, all, 1, 89.0, 0.290, 0.090, –",
		"MC Dropout, CIFAR-10, ResNet-14, 45,000, 200, 5,000 held out, 1, 89.0, 0.290, 0.090, –",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	figtest.Renders(t, table)
	found[0].Experiment.Task.Data = experiment.Arrays{}
	fails(t, "a run on other data", errorOf(Table(found)), "is no experiment on cifar.Images")
}

func TestResultsWithoutMetrics(t *testing.T) {
	found := resultsOf(measuring(0.9, 0.1, 0.3, 0.01), list(Paper, ten, paperSeeds, methods.MFVI))
	found[1].Metrics = nil
	fails(t, "a result without metrics", errorOf(NamedTable("cifar10-resnet14", index(found...))), "no metric")
	found[1].Diverged = true
	got := figtest.Cell(t, tableOf(t, "cifar10-resnet14", found...), "MFVI", "NLL")
	if !strings.Contains(got, "1 of 3 runs diverged | paper 0.291") || strings.Contains(got, "sd,") {
		t.Errorf("a diverged run: %s", got)
	}
}

// The energy row is of the networks that were trained without the held-out images. What SVHN would tell is not measured
// where the data were not there, and each method that has a score of its own is scored by it too.
func TestDetectionTable(t *testing.T) {
	detected := func(e experiment.Experiment) map[string]float64 {
		d := 0.01 * (float64(e.Seed) - 1)
		images := e.Task.Data.(Images)
		other, base := images.other(), 0.8
		if images.Name == CIFAR100 {
			base = 0.7
		}
		m := map[string]float64{"ood_" + other + "_auroc": base + d, "ood_svhn-first1083_auroc": 0.6 + d}
		for i, ending := range []string{ByEntropy, ByMutualInformation, ByDempsterShafer, ByEnergy} {
			m["ood_"+other+"_auroc"+ending] = 0.6 + 0.05*float64(i) + d
		}
		if images.Name == CIFAR10 {
			m["ood_svhn_auroc"], m["ood_svhn_auprc"] = 0.9+d, 0.95+d
			m["ood_svhn_auroc_energy"], m["ood_svhn_auprc_energy"] = 0.5+d, 0.55+d
		}
		return m
	}
	table := tableOf(t, "ood-svhn", resultsOf(detected, list(Paper, ten, paperSeeds, papersFive...), list(Paper, hundred, paperSeeds, papersFive...),
		list(Paper, withHeldOut(ten), paperSeeds, methods.Density), list(Paper, withHeldOut(hundred), paperSeeds, methods.Density))...)
	for _, c := range []struct{ row, column, want string }{
		{"Rank-1 BNN", "CIFAR-10 → SVHN AUROC", "0.900 ± 0.010 (n=3) | paper 0.880 ± 0.001 | +1.9 sd, better"},
		{"Density Uncertainty", "CIFAR-10 → SVHN AUROC", "0.500 ± 0.010 (n=3) | paper 0.893 ± 0.056 | -39.2 sd, worse"},
		{"Density Uncertainty", "CIFAR-10 → SVHN AUPRC", "0.550 ± 0.010 (n=3) | paper 0.952 ± 0.026 | -40.1 sd, worse"},
		{"Density, as the baselines", "CIFAR-10 → SVHN AUROC", "0.900 ± 0.010 (n=3)"},
		{"Density Uncertainty", "CIFAR-100 → SVHN AUROC", "not measured | paper 0.800 ± 0.024"},
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
	others := tableOf(t, "ood-svhn", resultsOf(detected, list(Paper, ten, paperSeeds, slices.Concat(singleNetworks, processes)...))...)
	var got []string
	for _, row := range others.Rows[6:] {
		got = append(got, row.Name+", "+row.Cells[0][0].Text+": "+row.Cells[5][0].Text)
	}
	want := []string{
		"Deterministic (not in the paper), maximum probability: 0.800 ± 0.010 (n=3)",
		"Deep Ensemble (not in the paper), maximum probability: 0.800 ± 0.010 (n=3)",
		"Deep Ensemble (not in the paper), mutual information of label and sample: 0.650 ± 0.010 (n=3)",
		"SNGP (not in the paper), maximum probability: 0.800 ± 0.010 (n=3)",
		"SNGP (not in the paper), Dempster-Shafer: 0.700 ± 0.010 (n=3)",
		"DUE (not in the paper), maximum probability: 0.800 ± 0.010 (n=3)",
		"DUE (not in the paper), entropy: 0.600 ± 0.010 (n=3)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The table of small runs has each with what it was made with, and a row for the runs that have a temperature.
func TestSmallRuns(t *testing.T) {
	found := resultsOf(func(e experiment.Experiment) map[string]float64 {
		m := measuring(0.4, 0.05, 1.6, 0.01)(e)
		m["ood_cifar100_auroc"], m["ood_cifar100_auroc_energy"] = 0.6, 0.7
		if e.Method.Name == methods.Deterministic.Name && e.Seed > 0 {
			m["accuracy_scaled"], m["nll_scaled"], m["ece10_scaled"] = 0.4, 1.5, 0.02
		}
		return m
	}, list(Small, ten, paperSeeds, methods.Density, methods.Deterministic), list(Small, hundred, 1, methods.Density), list(Paper, ten, paperSeeds, methods.Density))
	found[0].Diverged = true
	table := tableOf(t, "cifar-small", found...)
	var got []string
	for _, row := range table.Rows {
		got = append(got, strings.Join(texts(row), ", "))
	}
	want := []string{
		"CIFAR-10, ResNet-14, Deterministic, 5,000, 5, 1,000, 3, 40.0 ± 1.0, 1.600 ± 0.010, 0.050 ± 0.010, 0.600 ± 0.000, –, 11, card",
		"CIFAR-10, ResNet-14, Deterministic, temperature scaled, 5,000, 5, 1,000, 2, 40.0 ± 0.0, 1.500 ± 0.000, 0.020 ± 0.000, –, –, 11.5, card",
		"CIFAR-10, ResNet-14, Density Uncertainty, 5,000, 5, 1,000, 2, 1 diverged, 40.5 ± 0.7, 1.605 ± 0.007, 0.055 ± 0.007, 0.600 ± 0.000, 0.700 ± 0.000, 11.5, card",
		"CIFAR-100, ResNet-14, Density Uncertainty, 5,000, 5, 1,000, 1, 39.0, 1.590, 0.040, –, –, 10, card",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	text, err := table.Render(report.Markdown)
	if err != nil || strings.Contains(text, "sd,") || strings.Contains(text, "agrees") {
		t.Errorf("a small run has a verdict (error %v):\n%s", err, text)
	}
}

// The table of fidelities has what the released code does otherwise.
func TestFidelities(t *testing.T) {
	table := tableOf(t, "cifar-fidelities")
	for _, c := range []struct{ row, paper, released string }{
		{"Method.Layers.InitStd", "0.001", "0.0001"}, {"Recipe.LogLikelihoodScale", "1", "0.01"}, {"Task.Data.ReleasedStats", "false", "true"},
	} {
		if p, r := figtest.Cell(t, table, c.row, "`cifar.Paper`"), figtest.Cell(t, table, c.row, "`cifar.Released`"); p != c.paper || r != c.released {
			t.Errorf("%s is %s and %s, want %s and %s", c.row, p, r, c.paper, c.released)
		}
	}
}
