package cifar

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment"
	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// committed is the index of the committed results, read once.
var committed = sync.OnceValues(tables.Committed)

// The metrics of test images are those of the kept predictions, up to their rounding.
func TestKeptPredictionsGiveTheStoredMetrics(t *testing.T) {
	x := must.Get(committed())(t)
	all := seeded(Small, 1).Of(ten, smallMethods...)
	checked := 0
	for _, e := range all {
		r, has := x.Find(e)
		if !has {
			continue
		}
		found := must.Get(e.Measure(must.Get(r.Predictions())(t), experiment.Classification))(t)
		for name, v := range found {
			value, has := r.Metrics[name]
			if !has || !scalar.EqualWithinAbs(v, value, 1e-5) {
				t.Errorf("%v: %s is %v, want %v", e, name, v, value)
			}
		}
		if len(found) == 0 {
			t.Errorf("%v: nothing was measured", e)
		}
		checked++
	}
	if want := len(all) - 1; checked != want { // density layers were not run
		t.Errorf("%d results were measured, want %d", checked, want)
	}
}

// Ours have a mark where the paper has a number.
func TestClassificationCells(t *testing.T) {
	table := tableOf(t, "cifar10-resnet14", resultsOf(measuring(0.9153, 0.004, 0.24, 0.002), seeded(Paper, paperSeeds).Of(ten, methods.Density))...)
	if got, want := lines(table)[0], "Density Uncertainty | 91.53 ± 0.20, worse | 0.0040 ± 0.0020, agrees | 0.2400 ± 0.0020, worse"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if !slices.Contains(table.NotRun, "MFVI") {
		t.Errorf("not run: %q", table.NotRun)
	}
	for name, want := range map[string]bool{"cifar10-resnet14": true, "cifar10-released": false} {
		if measured := strings.Join(tableOf(t, name).Measured, " "); strings.Contains(measured, "decay=all") != want {
			t.Errorf("%s: %s", name, measured)
		}
	}
}

// Without runs there are the paper's numbers alone.
func TestPapersNumbers(t *testing.T) {
	table := tableOf(t, "cifar100-wrn")
	got := lines(table)
	same(t, []string{got[0], got[5], got[7]}, []string{
		"The paper's numbers | MFVI | 74.2 ± 0.8 | 0.260 ± 0.006 | 1.197 ± 0.023", "The paper's numbers | DUE | out of memory | out of memory | out of memory",
		"The paper's numbers | Rank-1 Mixture (1.25%) | 82.3 ± 0.0 | 0.032 ± 0.003 | 0.692 ± 0.001",
	})
	if len(got) != 8 || len(table.NotRun) != 10 {
		t.Errorf("%d rows, %d not run", len(got), len(table.NotRun))
	}
}

// What was run with another weight decay, and what the paper does not have, is in rows of its own. The best of ours is bold
// in each column, among complete rows.
func TestRowsBesideThePapers(t *testing.T) {
	table := tableOf(t, "cifar10-resnet14", slices.Concat(
		resultsOf(measuring(0.92, 0.01, 0.3, 0.002), seeded(Paper, paperSeeds).Of(ten, methods.Density)),
		resultsOf(measuring(0.91, 0.02, 0.226, 0.002), seeded(paper.withDecay(true), paperSeeds).Of(ten, methods.Density)),
		resultsOf(measuring(0.99, 0.001, 0.01, 0), seeded(Paper, 2).Of(ten, methods.Rank1)),
		resultsOf(measuring(0.93, 0.03, 0.2, 0.001), seeded(Paper, paperSeeds).Of(ten, methods.Ensemble)))...)
	same(t, lines(table)[:4], []string{
		"Rank-1 BNN | 99.00 ± 0.00 (n=2 of 3) | 0.0010 ± 0.0000 (n=2 of 3) | 0.0100 ± 0.0000 (n=2 of 3)",
		"Density Uncertainty | 92.00 ± 0.20, agrees | *0.0100 ± 0.0020*, worse | 0.3000 ± 0.0020, worse",
		"Deep Ensemble | *93.00 ± 0.10* | 0.0300 ± 0.0010 | *0.2000 ± 0.0010*",
		"Density Uncertainty, decay=all | 91.00 ± 0.20, worse | 0.0200 ± 0.0020, worse | 0.2260 ± 0.0020, agrees",
	})
}

// The mixtures are told apart, and compared with the paper's.
func TestWideResNetRows(t *testing.T) {
	var found []experiment.Result
	for i, fraction := range ablationFractions {
		found = append(found, resultsOf(measuring(0.965, 0.011, 0.1*float64(i+1), 0.001), seeded(onWide.experiment, paperSeeds).Of(ten, mixture(fraction)))...)
	}
	figtest.Cells(t, tableOf(t, "rank1-ablation", found...), [][3]string{
		{"Rank-1 Mixture (1.25%)", "NLL", "*0.1000 ± 0.0010*, better"}, {"Rank-1 Mixture (2.5%)", "NLL", "0.2000 ± 0.0010, worse"}, {"Rank-1 Mixture (20%)", "NLL", "0.5000 ± 0.0010, worse"},
	})
	found = append(found, resultsOf(measuring(0.965, 0.011, 0.119, 0.001), seeded(onWide.experiment, paperSeeds).Of(ten, methods.Density))...) // beside the paper's full-rank LDL
	figtest.Cells(t, tableOf(t, "cifar10-wrn", found...), [][3]string{{"Rank-1 Mixture (1.25%)", "NLL", "*0.1000 ± 0.0010*, better"}, {"Density Uncertainty", "NLL", "0.1190 ± 0.0010, agrees"}})
}

func TestResultsWithoutMetrics(t *testing.T) {
	found := resultsOf(measuring(0.9, 0.1, 0.3, 0.01), seeded(Paper, paperSeeds).Of(ten, methods.MFVI))
	found[1].Metrics = nil
	must.GetErr(named(t, "cifar10-resnet14").Table(tables.Of(found)))(t, "no metric")
}

// The energy row is of the networks that were trained without the held-out images, and compared with the paper's. What SVHN
// would tell is not measured where the data were not there, and each method that has a score of its own is scored by it too.
func TestDetectionTable(t *testing.T) {
	detected := func(e experiment.Experiment) map[string]float64 {
		d := 0.01 * (float64(e.Seed) - 1)
		images := e.Task.Data.(Images)
		m := map[string]float64{detectionMetric(images.other(), "auroc"): 0.8 + d, "ood_svhn-first1083_auroc": 0.6 + d}
		for i, ending := range []string{byEntropy, byMutualInformation, byDempsterShafer, ByEnergy} {
			m[detectionMetric(images.other(), "auroc")+ending] = 0.6 + 0.05*float64(i) + d
		}
		if images.Name == CIFAR10 {
			m["ood_svhn_auroc"], m["ood_svhn_auprc"] = 0.9+d, 0.95+d
			m["ood_svhn_auroc_energy"], m["ood_svhn_auprc_energy"] = 0.5+d, 0.55+d
		}
		return m
	}
	table := tableOf(t, "ood-svhn", resultsOf(detected, seeded(Paper, paperSeeds).Of(ten, methods.Rank1, methods.Density, methods.SNGP), seeded(Paper, paperSeeds).Of(hundred, methods.DUE),
		seeded(Paper, paperSeeds).Of(withHeldOut(ten), methods.Density))...)
	got := lines(table)
	same(t, slices.Concat(got[:6], got[10:13]), []string{
		"CIFAR-10 | Rank-1 BNN, maximum probability | 0.950 ± 0.010, better | 0.900 ± 0.010, better | 0.800 ± 0.010 | 0.600 ± 0.010",
		"CIFAR-10 | Density Uncertainty, energy | 0.550 ± 0.010, worse | 0.500 ± 0.010, worse | 0.750 ± 0.010 | –",
		"CIFAR-10 | Density Uncertainty, maximum probability | 0.950 ± 0.010 | 0.900 ± 0.010 | 0.800 ± 0.010 | 0.600 ± 0.010",
		"CIFAR-10 | SNGP, Dempster-Shafer | – | – | 0.700 ± 0.010 | –",
		"CIFAR-10 | SNGP, maximum probability | 0.950 ± 0.010 | 0.900 ± 0.010 | 0.800 ± 0.010 | 0.600 ± 0.010",
		"CIFAR-10, the paper's numbers | MFVI | 0.903 ± 0.009 | 0.830 ± 0.014 | – | –",
		"CIFAR-100 | DUE, entropy | – | – | 0.600 ± 0.010 | –", "CIFAR-100 | DUE, maximum probability | – | – | 0.800 ± 0.010 | 0.600 ± 0.010",
		"CIFAR-100, the paper's numbers | MFVI | 0.803 ± 0.008 | 0.640 ± 0.017 | – | –",
	})
}

// Search spaces show each value, the best in bold and which was chosen.
func TestGrids(t *testing.T) {
	var chose []experiment.Result
	for _, e := range searchSpaces[0].experiments() {
		chose = append(chose, resultsOf(measuring(0.8, 0.02, 0.5, 0), experiment.Experiments{e})...)
	}
	if got := lines(tableOf(t, "cifar-processor-grid", chose...))[0]; got != "Density Uncertainty: init_std | 0.001, chosen | *0.5000* | 80.00 | 0.0200" {
		t.Errorf("the first row is %s", got)
	}
}

// The table has what the authors' code does differently from the text.
func TestFidelities(t *testing.T) {
	const text, code = "paper's text", "authors' code"
	figtest.Cells(t, tableOf(t, "cifar-fidelities"), [][3]string{
		{"Method.Layers.InitStd", text, "0.001"}, {"Method.Layers.InitStd", code, "0.0001"}, {"Recipe.LogLikelihoodScale", text, "1"}, {"Recipe.LogLikelihoodScale", code, "0.01"},
		{"Task.Data.ReleasedStats", text, "false"}, {"Task.Data.ReleasedStats", code, "true"},
	})
}

// Heads count: instead of 64*10 + 10 numbers SNGP has 2*128 for the normalisation and 1024*10 + 10. For 10 classes DUE has
// 10 points of 64, and 10*10 + 10 + 3 for each class. Density layers have two numbers of noise for each of 570 units.
func TestCosts(t *testing.T) {
	table := must.Get(Costs(backendtest.Open(t), nets.ResNet14, 10, Family{"plain", baselines.Deterministic{}},
		Family{"SNGP", baselines.SNGP{}}, Family{"DUE", baselines.DUE{Inducing: 10}}, Family{"density", dul.Density{}}))(t)
	same(t, lines(table), []string{
		"plain | 175,178 | 0 | 2.102 MB | 0.0533 | 0.16 | 1.00", "SNGP | 185,034 | 0 | 2.22 MB | 0.0533 | 0.16 | 1.00",
		"DUE | 176,298 | 0 | 2.116 MB | 0.0533 | 0.16 | 1.00", "density | 341,266 | 164,948 | 4.755 MB | 0.111 | 0.333 | 2.08",
	})
}

// A run of all image tables that is stopped leaves seed 0 of CIFAR-10 first, and has everything in the end.
func TestPaperImages(t *testing.T) {
	all := paperImages()
	for i, e := range all[:10] {
		if e.Seed != 0 || e.Task.Name != CIFAR10 || width(e) != 16 {
			t.Errorf("number %d is %s", i, e)
		}
	}
	added := func(e experiment.Experiment) bool {
		return slices.ContainsFunc(addedMethods, e.Method.Equal) && (width(e) == 16 || slices.ContainsFunc(singleNetworks, e.Method.Equal))
	}
	for _, name := range []string{"cifar10-resnet14", "cifar100-resnet14", "cifar10-wrn", "cifar100-wrn", "rank1-ablation", "ood-svhn"} {
		papers := slices.DeleteFunc(named(t, name).Runs(), added)
		if n := len(slices.Concat(all, papers).Distinct()); len(papers) == 0 || n != len(all) {
			t.Errorf("%d of %d experiments of %s are missing", n-len(all), len(papers), name)
		}
	}
	if len(all) != 120 {
		t.Errorf("%d experiments", len(all))
	}
}

// 200 epochs are ten million images. Each takes 6 microseconds, and 240 in the wide network with noise.
func TestRoofline(t *testing.T) {
	plain, wide := seeded(Paper, 1).Of(ten, methods.Deterministic), seeded(Wide, 2).Of(hundred, methods.Density)
	if got := Roofline(slices.Concat(plain, wide)); got != time.Minute+80*time.Minute {
		t.Errorf("%s, want 81 minutes", got)
	}
	if got := Roofline(experiment.Experiments{}); got != 0 {
		t.Errorf("nothing takes %s", got)
	}
}

// The committed choice follows from the committed results; -update writes it.
func TestCommittedChoice(t *testing.T) {
	figtest.GoldenText(t, "chosen.csv", string(must.Get(tables.Choose(must.Get(committed())(t), chosenColumns, candidates()))(t)))
}

// Each method of the comparison has its chosen value.
func TestProcessorRuns(t *testing.T) {
	values := map[string]float64{}
	for _, s := range searchSpaces {
		values[s.method.Name] = chosen()[s.method.Key].value
	}
	full, weights := named(t, "cifar-processor").Runs(), 0
	for _, e := range full {
		if err := e.Check(); err != nil || e.Recipe.Epochs != 10 || e.Task.Data.(Images).HeldOut != 5000 {
			t.Errorf("%v: %v", e, err)
		}
		if l, is := e.Method.Layers.(dul.Density); is && l.InitStd != values[e.Method.Name] {
			t.Errorf("%v starts with %g", e, l.InitStd)
		}
		if strings.HasSuffix(e.Preset, "changed") {
			weights++
		}
	}
	if len(full) != 23 || weights != 1 {
		t.Errorf("%d experiments, want 23, %d of them with weight decay on weights alone, want 1", len(full), weights)
	}
}

// Networks that are trained on the images that come with the program have the metrics that their methods allow, in the store
// too, and need no files.
func TestRunOnTheSample(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	images := Images{Name: CIFAR10, Sample: true, TrainN: 100, TestN: 20, HeldOut: 30}
	bounded := experiment.Method{Key: "bounded", Name: "Bounded", Layers: baselines.SpectralNormed{}}
	all := seeded(Processor, 1).Of(images, bounded, methods.Density, methods.SNGP).Change(func(e *experiment.Experiment) {
		if e.Recipe.Epochs, e.Recipe.Samples = 1, min(e.Recipe.Samples, 2); e.Recipe.PretrainEpochs > 1 {
			t.Errorf("%v pretrains for %d epochs", e, e.Recipe.PretrainEpochs)
		}
	})
	found := must.Get(experiment.Engine{Store: &experiment.Store{Folder: t.TempDir()}}.Run(t.Context(), all...))(t)
	for i, want := range [][]string{
		{"ood_cifar100_auroc_gaussian", "ood_svhn-first1083_auroc_classgaussian", "ood_cifar100_auroc_entropy"},
		{"posterior_std", "ood_cifar100_auroc_energy", "ood_cifar100_fpr95_energy", "ood_svhn-first1083_auprc_energy@stage_2_block_1/conv_2", "ood_cifar100_auroc_mutualinformation"},
		{"ood_cifar100_auroc_dempstershafer"},
	} {
		r := found[i]
		for _, name := range append(want, "accuracy", "nll", "brier", "ece10", "adaptive_ece15", "classwise_ece15", "aurc", "ood_cifar100_ap") {
			if _, has := r.Metrics[name]; !has {
				t.Errorf("%s has no metric %q", r.Method, name)
			}
		}
		for _, ending := range []string{"energy", "dempstershafer", "gaussian"} {
			measured := false
			for name := range r.Metrics {
				measured = measured || strings.Contains(name, ending)
			}
			if wanted := slices.ContainsFunc(want, func(name string) bool { return strings.Contains(name, ending) }); measured != wanted {
				t.Errorf("%s has metrics with %q: %t", r.Method, ending, measured)
			}
		}
		if again := must.Get(all[i].Measure(must.Get(r.Predictions())(t)))(t); again["nll"] != r.Metrics["nll"] || len(again) != len(r.Metrics) {
			t.Errorf("%s: the kept predictions have %d metrics and the NLL %v, and the result %d and %v", r.Method, len(again), again["nll"], len(r.Metrics), r.Metrics["nll"])
		}
	}
}

// resultsOf are made-up results of experiments.
func resultsOf(measure func(e experiment.Experiment) map[string]float64, lists ...experiment.Experiments) []experiment.Result {
	return figtest.Results(slices.Concat(lists...), measure)
}

// measuring makes metrics whose mean over 3 seeds is the given one, with the standard deviation sd.
func measuring(accuracy, ece, nll, sd float64) func(experiment.Experiment) map[string]float64 {
	return func(e experiment.Experiment) map[string]float64 {
		d := sd * (float64(e.Seed) - 1)
		return map[string]float64{
			experiment.MetricAccuracy: accuracy + d, experiment.MetricECE: ece + d, experiment.MetricNLL: nll + d, metricPosteriorStd: 1.2e-3,
		}
	}
}

// tableOf is a table of results.
func tableOf(t *testing.T, name string, all ...experiment.Result) report.Table {
	t.Helper()
	return must.Get(named(t, name).Table(tables.Of(all)))(t)
}

func named(t *testing.T, name string) tables.Exhibit {
	t.Helper()
	return figtest.Exhibit(t, Exhibits(), name)
}

// lines are the rows of a table with their groups, names and cells.
func lines(table report.Table) []string {
	var all []string
	for _, row := range table.Rows {
		cells := []string{row.Name}
		if row.Group != "" {
			cells = []string{row.Group, row.Name}
		}
		for _, cell := range row.Cells {
			cells = append(cells, cmp.Or(figtest.Text(cell), "–"))
		}
		all = append(all, strings.Join(cells, " | "))
	}
	return all
}

// same compares lines.
func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
