package cifar

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
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
		found := must.Get(experiment.Measure(e, must.Get(r.Predictions())(t), experiment.Classification))(t)
		for name, v := range found {
			if value, has := r.Metrics[name]; !has || math.Abs(v-value) > 1e-5 {
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
	for _, c := range []struct{ table, row, want string }{
		{"rank1-ablation", "Rank-1 Mixture (1.25%)", "*0.1000 ± 0.0010*, better"},
		{"rank1-ablation", "Rank-1 Mixture (2.5%)", "0.2000 ± 0.0010, worse"},
		{"rank1-ablation", "Rank-1 Mixture (20%)", "0.5000 ± 0.0010, worse"},
		{"cifar10-wrn", "Rank-1 Mixture (1.25%)", "0.1000 ± 0.0010, better"},
	} {
		if got := figtest.Cell(t, tableOf(t, c.table, found...), c.row, "NLL"); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.table, c.row, got, c.want)
		}
	}
	full := tableOf(t, "cifar10-wrn", resultsOf(measuring(0.965, 0.011, 0.119, 0.001), seeded(onWide.experiment, paperSeeds).Of(ten, methods.Density))...)
	if got := figtest.Cell(t, full, "Density Uncertainty", "NLL"); got != "0.1190 ± 0.0010, agrees" {
		t.Errorf("beside the paper's full-rank LDL: %s", got)
	}
}

func TestResultsWithoutMetrics(t *testing.T) {
	found := resultsOf(measuring(0.9, 0.1, 0.3, 0.01), seeded(Paper, paperSeeds).Of(ten, methods.MFVI))
	found[1].Metrics = nil
	fails(t, "a result without metrics", errorOf(named(t, "cifar10-resnet14").Table(index(found...))), "no metric")
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

// The searches show each value, the best in bold and which was chosen.
func TestGrids(t *testing.T) {
	var chose []experiment.Result
	for _, e := range searches[0].candidates() {
		chose = append(chose, resultsOf(measuring(0.8, 0.02, 0.5, 0), experiment.Experiments{e})...)
	}
	if got := lines(tableOf(t, "cifar-processor-grid", chose...))[0]; got != "Density Uncertainty: init_std | 0.001, chosen | *0.5000* | 80.00 | 0.0200" {
		t.Errorf("the first row is %s", got)
	}
}

// The table of what text and code differ in has what the authors' code does otherwise.
func TestFidelities(t *testing.T) {
	table := tableOf(t, "cifar-fidelities")
	for _, c := range []struct{ row, paper, released string }{
		{"Method.Layers.InitStd", "0.001", "0.0001"}, {"Recipe.LogLikelihoodScale", "1", "0.01"}, {"Task.Data.ReleasedStats", "false", "true"},
	} {
		if p, r := figtest.Cell(t, table, c.row, "paper's text"), figtest.Cell(t, table, c.row, "authors' code"); p != c.paper || r != c.released {
			t.Errorf("%s is %s and %s, want %s and %s", c.row, p, r, c.paper, c.released)
		}
	}
}
