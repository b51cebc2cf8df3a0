package tables

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

// measured makes image metrics whose mean over 3 seeds is the given one, with the standard deviation sd.
func measured(accuracy, ece, nll, sd float64) func(experiment.Experiment) map[string]float64 {
	return func(e experiment.Experiment) map[string]float64 {
		d := sd * (float64(e.Seed) - 1)
		return map[string]float64{MetricAccuracy: accuracy + d, MetricECE: ece + d, MetricNLL: nll + d, MetricParameters: 341266,
			MetricTrainingGFLOP: 0.2756, MetricSecondsPerEpoch: 10 + float64(e.Seed), MetricImagesPerSecond: 4000,
			MetricPosteriorStd: 1.2e-3}
	}
}

func imageLines(t *testing.T, set string, f experiment.Filter, measure func(experiment.Experiment) map[string]float64) []results.Result {
	list := lines(t, set, f, measure)
	for i := range list {
		list[i].Device = "card"
	}
	return list
}

// plainLines are those of experiments without options.
func plainLines(t *testing.T, set string, f experiment.Filter, measure func(experiment.Experiment) map[string]float64) []results.Result {
	return slices.DeleteFunc(imageLines(t, set, f, measure), func(r results.Result) bool { return len(r.Experiment.Options) > 0 })
}

func imageTableNamed(t *testing.T, name string, lines []results.Result) Table {
	t.Helper()
	for _, named := range List() {
		if named.Name == name {
			table, err := named.Make(lines)
			if err != nil {
				t.Fatal(err)
			}
			return table
		}
	}
	t.Fatalf("no table %s", name)
	return Table{}
}

func TestImageTables(t *testing.T) {
	density := only(experiment.Density, experiment.CIFAR10)
	quick := density
	quick.Scale = experiment.Quick
	full := plainLines(t, "cifar10-resnet14", density, measured(0.9153, 0.004, 0.24, 0.002))
	elsewhere := plainLines(t, "cifar10-resnet14", density, measured(0.9153, 0.004, 0.24, 0.002))
	elsewhere[0].Device = "other card"
	for name, c := range map[string]struct {
		lines                      []results.Result
		accuracy, ece, nll, device string
	}{
		"nothing": {nil, "not run | paper 92.2 ± 0.3", "not run | paper 0.004 ± 0.000", "not run | paper 0.226 ± 0.003", "–"},
		"three seeds": {full, "91.53 ± 0.20 (n=3) | paper 92.2 ± 0.3 | -3.1 sd, worse", "0.00400 ± 0.00200 (n=3) | paper 0.004 ± 0.000 | +0.0 sd, agrees",
			"0.2400 ± 0.0020 (n=3) | paper 0.226 ± 0.003 | +6.7 sd, worse", "card"},
		"one seed": {full[1:2], "91.53 (n=1 of 3) | paper 92.2 ± 0.3 | -0.67, no sd", "0.00400 (n=1 of 3) | paper 0.004 ± 0.000 | +0.0000, no sd",
			"0.2400 (n=1 of 3) | paper 0.226 ± 0.003 | +0.0140, no sd", "card"},
		"two devices": {elsewhere, "91.53 ± 0.20 (n=3) | paper 92.2 ± 0.3 | -3.1 sd, worse", "0.00400 ± 0.00200 (n=3) | paper 0.004 ± 0.000 | +0.0 sd, agrees",
			"0.2400 ± 0.0020 (n=3) | paper 0.226 ± 0.003 | +6.7 sd, worse", "card | and 1 other"},
		"quick only": {imageLines(t, "cifar10-resnet14", quick, measured(0.25, 0.1, 2, 0)), "quick, 1 epochs of 512 images: 25.00 (n=1) | paper 92.2 ± 0.3",
			"quick, 1 epochs of 512 images: 0.1000 (n=1) | paper 0.004 ± 0.000", "quick, 1 epochs of 512 images: 2.0000 (n=1) | paper 0.226 ± 0.003", "–"},
	} {
		table := imageTableNamed(t, "cifar10-resnet14", c.lines)
		for column, want := range map[string]string{"Accuracy (%)": c.accuracy, "ECE": c.ece, "NLL": c.nll, "Device": c.device} {
			if got := cell(t, table, "Density Uncertainty", column); got != want {
				t.Errorf("%s, %s:\n got %s\nwant %s", name, column, got, want)
			}
		}
	}
	// A quick run's epoch is of 512 images: its time is no one's.
	table := imageTableNamed(t, "cifar10-resnet14", imageLines(t, "cifar10-resnet14", quick, measured(0.25, 0.1, 2, 0)))
	for column, want := range map[string]string{"Posterior std": "–", "Parameters": "341,266", "GFLOP": "0.276", "s/epoch": "–"} {
		if got := cell(t, table, "Density Uncertainty", column); got != want {
			t.Errorf("quick, %s: %s, want %s", column, got, want)
		}
	}
	if !strings.Contains(table.Caption, "decay=all") || strings.Contains(imageTableNamed(t, "cifar10-released", nil).Caption, "decay=all") {
		t.Error("the caption of the paper's settings, and it alone, says what becomes of the posterior without decay")
	}
	table = imageTableNamed(t, "cifar10-resnet14", full)
	for column, want := range map[string]string{"Posterior std": "0.0012", "Parameters": "341,266", "GFLOP": "0.276", "s/epoch": "11"} {
		if got := cell(t, table, "Density Uncertainty", column); got != want {
			t.Errorf("%s: %s, want %s", column, got, want)
		}
	}
	if got := cell(t, table, "MFVI", "Parameters"); got != "–" {
		t.Errorf("parameters of what was not run: %s", got)
	}
}

// What was run with another weight decay, and what the paper does not have, is in rows of its own; the
// temperature's row is of the models that were trained without the held-out images.
func TestRowsBesideThePapers(t *testing.T) {
	list := imageLines(t, "cifar10-resnet14", experiment.Filter{Methods: []string{experiment.Density}, Scale: experiment.Full}, func(e experiment.Experiment) map[string]float64 {
		if e.Options[experiment.OptionDecay] == "all" {
			return measured(0.91, 0.01, 0.226, 0.002)(e)
		}
		return measured(0.92, 0.01, 0.3, 0.002)(e)
	})
	list = append(list, imageLines(t, "cifar-gp", experiment.Filter{Datasets: []string{experiment.CIFAR10}, Scale: experiment.Full}, func(e experiment.Experiment) map[string]float64 {
		m := measured(0.9, 0.02, map[string]float64{experiment.Deterministic: 0.4, experiment.Ensemble: 0.2, experiment.SNGP: 0.35, experiment.DUE: 0.36}[e.Method], 0.001)(e)
		if e.HeldOut > 0 {
			m[MetricNLL], m["accuracy_scaled"], m["nll_scaled"], m["ece10_scaled"] = 0.5, 0.89, 0.37+0.001*float64(e.Seed), 0.03
		}
		return m
	})...)
	table := imageTableNamed(t, "cifar10-resnet14", list)
	for row, want := range map[string]string{
		"Density Uncertainty":                                  "0.3000 ± 0.0020 (n=3) | paper 0.226 ± 0.003 | +36.7 sd, worse",
		"Density Uncertainty, decay=all":                       "0.2260 ± 0.0020 (n=3) | paper 0.226 ± 0.003 | +0.0 sd, agrees",
		"Rank-1 BNN, decay=all":                                "not run | paper 0.231 ± 0.002",
		"MFVI, decay=all":                                      "not run | paper 0.291 ± 0.004",
		"Deterministic (not in the paper)":                     "0.4000 ± 0.0010 (n=3)",
		"Deterministic, temperature scaled (not in the paper)": "0.3710 ± 0.0010 (n=3)",
		"Deep Ensemble (not in the paper)":                     "*0.2000 ± 0.0010 (n=3)*",
		"SNGP (not in the paper)":                              "0.3500 ± 0.0010 (n=3)",
		"DUE (not in the paper)":                               "0.3600 ± 0.0010 (n=3)",
	} {
		if got := cell(t, table, row, "NLL"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", row, got, want)
		}
	}
	if got := cell(t, imageTableNamed(t, "cifar10-wrn", list), "Deep Ensemble (not in the paper)", "NLL"); got != "not run" {
		t.Errorf("an ensemble of Wide ResNets: %s", got)
	}
	for i := range list {
		delete(list[i].Metrics, "nll_scaled") // no temperature was the best
	}
	if got := cell(t, imageTableNamed(t, "cifar10-resnet14", list), "Deterministic, temperature scaled (not in the paper)", "NLL"); got != "not measured" {
		t.Errorf("without a temperature: %s", got)
	}
}

// The best of ours is bold in each column, among complete rows.
func TestBestImageMethodIsBold(t *testing.T) {
	list := plainLines(t, "cifar10-resnet14", only(experiment.Density, experiment.CIFAR10), measured(0.91, 0.004, 0.24, 0))
	list = append(list, plainLines(t, "cifar10-resnet14", only(experiment.MFVI, experiment.CIFAR10), measured(0.92, 0.005, 0.23, 0))...)
	list = append(list, plainLines(t, "cifar10-resnet14", only(experiment.Rank1, experiment.CIFAR10), measured(0.99, 0.001, 0.01, 0))[:2]...)
	table := imageTableNamed(t, "cifar10-resnet14", list)
	bold := map[string]string{"Accuracy (%)": "MFVI", "ECE": "Density Uncertainty", "NLL": "MFVI"}
	for _, row := range table.Rows {
		for column, best := range bold {
			if got := strings.HasPrefix(cell(t, table, row.Name, column), "*"); got != (row.Name == best) {
				t.Errorf("%s, %s: bold is %v", row.Name, column, got)
			}
		}
	}
}

// Accuracy is better when higher.
func TestDifferenceUp(t *testing.T) {
	theirs := Published{Mean: 92.2, Std: 0.3, Decimals: 1}
	for _, c := range []struct {
		mean float64
		want string
	}{{93, Better}, {91, Worse}, {92.25, Agrees}} {
		ours := Summary{Scale: experiment.Full, N: 3, Wanted: 3, Mean: c.mean, Std: 0.2}
		if inStd, verdict := DifferenceUp(ours, theirs); verdict != c.want || (inStd > 0) != (verdict == Better) {
			t.Errorf("%v against 92.2: %v sd, %s, want %s", c.mean, inStd, verdict, c.want)
		}
	}
}

// What this project does not run is known from the paper, and the mixtures are told apart.
func TestWideResNetRows(t *testing.T) {
	mixtures := experiment.Filter{Methods: []string{experiment.DensityRank1Mix}, Scale: experiment.Full}
	list := imageLines(t, "rank1-ablation", mixtures, func(e experiment.Experiment) map[string]float64 {
		nll := map[string]float64{"0.0125": 0.1, "0.025": 0.2, "0.05": 0.3, "0.1": 0.4, "0.2": 0.5}[e.Options[experiment.OptionMixtureFraction]]
		return measured(0.965, 0.011, nll, 0.001)(e)
	})
	ablation := imageTableNamed(t, "rank1-ablation", list)
	if len(ablation.Rows) != 6 {
		t.Errorf("%d rows, want 6", len(ablation.Rows))
	}
	for row, want := range map[string]string{"Rank-1 Mixture (1.25%)": "*0.1000", "Rank-1 Mixture (2.5%)": "0.2000", "Rank-1 Mixture (5%)": "0.3000",
		"Rank-1 Mixture (10%)": "0.4000", "Rank-1 Mixture (20%)": "0.5000", "Full-rank LDL": "not run"} {
		if got := cell(t, ablation, row, "NLL"); !strings.HasPrefix(got, want) || !strings.Contains(got, "paper 0.1") {
			t.Errorf("%s: %s, want %s", row, got, want)
		}
	}
	wide := imageTableNamed(t, "cifar10-wrn", list)
	for row, want := range map[string]string{"Rank-1 Mixture (1.25%)": "0.1000 ± 0.0010 (n=3) | paper 0.118 ± 0.001 | -17.5 sd, better",
		"SNGP": "not run | paper 0.143 ± 0.002", "DUE": "not run | paper 0.170 ± 0.005", "Full-rank LDL": "not run | paper 0.119 ± 0.003"} {
		if got := cell(t, wide, row, "NLL"); got != want {
			t.Errorf("%s: %s, want %s", row, got, want)
		}
	}
	if got, want := cell(t, imageTableNamed(t, "cifar100-wrn", nil), "DUE", "ECE"), "not run | paper – | (out of memory)"; got != want {
		t.Errorf("DUE on CIFAR-100: %s, want %s", got, want)
	}
}

func TestImageLinesWithoutMetrics(t *testing.T) {
	list := plainLines(t, "cifar10-resnet14", only(experiment.MFVI, experiment.CIFAR10), measured(0.9, 0.1, 0.3, 0.01))
	list[1].Metrics = nil
	for _, named := range List() {
		if named.Name == "cifar10-resnet14" {
			if _, err := named.Make(list); err == nil || !strings.Contains(err.Error(), "no metric") {
				t.Errorf("a line without metrics: %v", err)
			}
		}
	}
	list[1].Diverged = true
	if got := cell(t, imageTableNamed(t, "cifar10-resnet14", list), "MFVI", "NLL"); !strings.Contains(got, "1 of 3 runs diverged | paper 0.291") || strings.Contains(got, "sd,") {
		t.Errorf("a diverged run: %s", got)
	}
}

// The energy row is of the models that were trained without the held-out images; what SVHN would tell is
// not run where the data were not there.
func TestOODTable(t *testing.T) {
	auroc := func(e experiment.Experiment) map[string]float64 {
		d := 0.01 * (float64(e.Seed) - 1)
		other, base := experiment.CIFAR100, 0.8
		if e.Dataset == other {
			other, base = experiment.CIFAR10, 0.7
		}
		m := map[string]float64{"ood_" + other + "_auroc": base + d, "ood_svhn-first1083_auroc": 0.6 + d}
		if e.HeldOut > 0 {
			m["ood_"+other+"_auroc_energy"] = base + 0.1 + d
		}
		if e.Dataset == experiment.CIFAR10 {
			m["ood_svhn_auroc"], m["ood_svhn_auprc"] = 0.9+d, 0.95+d
			if e.HeldOut > 0 {
				m["ood_svhn_auroc_energy"], m["ood_svhn_auprc_energy"] = 0.5+d, 0.55+d
			}
		}
		return m
	}
	table := imageTableNamed(t, "ood-svhn", imageLines(t, "ood-svhn", experiment.Filter{Scale: experiment.Full}, auroc))
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
		if got := cell(t, table, c.row, c.column); got != c.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", c.row, c.column, got, c.want)
		}
	}
	if got, want := cell(t, imageTableNamed(t, "ood-svhn", nil), "MFVI", "CIFAR-10 → SVHN AUROC"), "not run | paper 0.830 ± 0.014"; got != want {
		t.Errorf("without lines: %s, want %s", got, want)
	}
	for _, format := range Formats() {
		if _, err := table.Render(format); err != nil {
			t.Error(err)
		}
	}
}

// Each method that has one is scored by its own score too.
func TestOODOfMethodsThatThePaperLeavesOut(t *testing.T) {
	endings := map[string]float64{"": 0.6, "_entropy": 0.61, "_mutualinformation": 0.62, "_dempstershafer": 0.63}
	measure := func(e experiment.Experiment) map[string]float64 {
		m := map[string]float64{}
		for ending, auroc := range endings {
			if e.HeldOut > 0 {
				auroc = 0 // another model's
			}
			m["ood_cifar100_auroc"+ending] = auroc
		}
		return m
	}
	filter := experiment.Filter{Datasets: []string{experiment.CIFAR10}, Scale: experiment.Full, Seeds: []uint64{0}}
	table := imageTableNamed(t, "ood-svhn", imageLines(t, "cifar-gp", filter, measure))
	var got []string
	for _, row := range table.Rows[6:] {
		got = append(got, row.Name+", "+row.Cells[0][0].Text+": "+row.Cells[5][0].Text)
	}
	want := []string{
		"Deterministic (not in the paper), maximum probability: 0.600 (n=1 of 3)",
		"Deep Ensemble (not in the paper), maximum probability: 0.600 (n=1 of 3)",
		"Deep Ensemble (not in the paper), mutual information of label and member: 0.620 (n=1 of 3)",
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
	filter := experiment.Filter{Methods: []string{experiment.Deterministic, experiment.Ensemble, experiment.SNGP, experiment.DUE}, Datasets: []string{experiment.CIFAR10}, Scale: experiment.Small}
	list := imageLines(t, "cifar-small", filter, func(e experiment.Experiment) map[string]float64 {
		m := measured(0.4, 0.05, 1.6, 0)(e)
		for ending, auroc := range map[string]float64{"": 0.6, "_entropy": 0.61, "_mutualinformation": 0.62, "_dempstershafer": 0.63} {
			m["ood_cifar100_auroc"+ending] = auroc
		}
		if e.Method == experiment.Deterministic && e.Seed > 0 {
			m["accuracy_scaled"], m["nll_scaled"], m["ece10_scaled"] = 0.4, 1.5, 0.02
		}
		return m
	})
	var got []string
	for _, row := range imageTableNamed(t, "cifar-small", list).Rows {
		var cells []string
		for _, i := range []int{1, 5, 7, 9, 10} {
			cells = append(cells, row.Cells[i][0].Text)
		}
		got = append(got, strings.Join(cells, ", "))
	}
	want := []string{"Deterministic, 3, 1.600 ± 0.000, 0.600 ± 0.000, –", "Deterministic, temperature scaled, 2, 1.500 ± 0.000, –, –",
		"Deep Ensemble, 3, 1.600 ± 0.000, 0.600 ± 0.000, 0.620 ± 0.000", "SNGP, 3, 1.600 ± 0.000, 0.600 ± 0.000, 0.630 ± 0.000",
		"DUE, 3, 1.600 ± 0.000, 0.600 ± 0.000, 0.610 ± 0.000"}
	if !slices.Equal(got, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSmallRunsSayWithWhatTheyWereMade(t *testing.T) {
	list := imageLines(t, "cifar-small", experiment.Filter{Methods: []string{experiment.Density, experiment.DensityRank1Mix}, Scale: experiment.Small}, measured(0.4, 0.05, 1.6, 0.01))
	list = append(list, imageLines(t, "cifar10-resnet14", only(experiment.Density, experiment.CIFAR10), measured(0.92, 0.01, 0.2, 0.01))...)
	list[0].Diverged = true
	table := imageTableNamed(t, "cifar-small", list)
	if len(table.Rows) != 4 {
		t.Fatalf("%d rows, want 2 methods on 2 sets", len(table.Rows))
	}
	row := table.Rows[0]
	var got []string
	for _, c := range row.Cells {
		got = append(got, c[0].Text)
	}
	want := "ResNet-14, Density Uncertainty, 5,000, 5, 1,000, 2, 1 diverged, 40.5 ± 0.7, 1.605 ± 0.007, 0.055 ± 0.007, –, –, 11.5, card"
	if row.Name != "CIFAR-10" || strings.Join(got, ", ") != want {
		t.Errorf("first row %s: %s\nwant %s", row.Name, strings.Join(got, ", "), want)
	}
	if got := table.Rows[1].Cells[1][0].Text; got != "Density, rank-1 mixture mixture_fraction=0.1" {
		t.Errorf("a method with options: %s", got)
	}
	text, err := table.Render(Markdown)
	if err != nil || strings.Contains(text, "sd,") || strings.Contains(text, "agrees") {
		t.Errorf("a small run has a verdict (error %v):\n%s", err, text)
	}
}

// Runs that differ in what has no column of its own are told apart.
func TestSmallRunsAreToldApart(t *testing.T) {
	one := imageLines(t, "cifar-small", experiment.Filter{Methods: []string{experiment.Density}, Datasets: []string{experiment.CIFAR10}, Seeds: []uint64{0}, Scale: experiment.Small}, measured(0.4, 0.05, 1.6, 0.01))
	var list []results.Result
	for _, change := range []func(e *experiment.Experiment){
		func(*experiment.Experiment) {},
		func(e *experiment.Experiment) { e.Fidelity = experiment.Released },
		func(e *experiment.Experiment) { e.HeldOut = 0 },
		func(e *experiment.Experiment) { e.TrainN = 100 },
		func(e *experiment.Experiment) { e.TrainN, e.Samples = 100, 3 },
	} {
		line := one[0]
		change(&line.Experiment)
		line.ID = line.Experiment.ID()
		list = append(list, line)
	}
	var got []string
	for _, row := range imageTableNamed(t, "cifar-small", list).Rows {
		got = append(got, row.Cells[1][0].Text)
	}
	want := []string{"Density Uncertainty, 25 samples", "Density Uncertainty, 3 samples",
		"Density Uncertainty, paper, 1,000 held out", "Density Uncertainty, released, 1,000 held out", "Density Uncertainty, paper, 0 held out"}
	if !slices.Equal(got, want) {
		t.Errorf("methods %q, want %q", got, want)
	}
	for i := range list {
		list[i].Experiment.Scale, list[i].Experiment.HeldOut = experiment.Grid, 1000
		list[i].ID = list[i].Experiment.ID()
	}
	grid := imageTableNamed(t, "cifar-grid", list[:2])
	if got := []string{grid.Rows[0].Name, grid.Rows[1].Name}; !slices.Equal(got, []string{"Density Uncertainty, paper", "Density Uncertainty, released"}) {
		t.Errorf("grid: %q", got)
	}
	if got := cell(t, grid, "Density Uncertainty, paper", "NLL"); strings.HasPrefix(got, "*") {
		t.Errorf("the only one is the best of its kind: %s", got)
	}
}

func TestGridShowsTheBest(t *testing.T) {
	list := imageLines(t, "grid", experiment.Filter{Scale: experiment.Grid}, func(e experiment.Experiment) map[string]float64 {
		nll := map[string]float64{"0.1": 0.3, "1": 0.25, "10": 0.4}[e.Options[experiment.OptionPriorStd]]
		return map[string]float64{MetricAccuracy: 0.9, MetricECE: 0.02, MetricNLL: nll + 0.2}
	})
	table := imageTableNamed(t, "cifar-grid", list)
	if len(table.Rows) != 12 {
		t.Fatalf("%d rows, want 12", len(table.Rows))
	}
	for row, want := range map[string][2]string{
		"Density Uncertainty prior_std=0.1": {"0.5000", "–"},
		"Density Uncertainty prior_std=1":   {"*0.4500*", "chosen"},
		"Density Uncertainty prior_std=10":  {"0.6000", "–"},
		"Rank-1 BNN prior_std=0.01":         {"*0.2000*", "–"},
		"Rank-1 BNN prior_std=1":            {"0.4500", "–"},
		"Rank-1 BNN prior_std=0.1":          {"0.5000", "chosen"},
		"MC Dropout dropout_rate=0.1":       {"*0.2000*", "chosen"},
	} {
		if nll, chosen := cell(t, table, row, "NLL"), cell(t, table, row, "Paper"); nll != want[0] || chosen != want[1] {
			t.Errorf("%s: %s, %s, want %v", row, nll, chosen, want)
		}
	}
}
