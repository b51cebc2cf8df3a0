package cifar

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// spoken is what an experiment says of n images of 10 classes, with its result on device "card": logits of noise that all
// runs of a seed share, in which the label stands out by skill, times sharpness.
func spoken(t *testing.T, e experiment.Experiment, n int, skill, sharpness float64) experiment.Result {
	t.Helper()
	rng := rand.New(rand.NewPCG(e.Seed, 9))
	p := new(experiment.Predictions)
	for _, name := range []string{TestSet, HeldOutSet, CIFAR100} {
		set := experiment.Prediction{Set: name}
		var logits []float64
		for i := range n {
			set.Labels = append(set.Labels, i%10)
			for c := range 10 {
				logit := rng.NormFloat64()
				if c == i%10 {
					logit += skill
				}
				logits = append(logits, sharpness*logit)
			}
		}
		set.Width, set.Probabilities = 10, must.Get(metrics.Softmax(logits, 10, 1))(t)
		if name != HeldOutSet || isPlain(e.Method) {
			p.Sets = append(p.Sets, set)
		}
	}
	r := resultsOf(func(experiment.Experiment) map[string]float64 { return must.Get(Scores(p))(t) }, experiment.Experiments{e})[0]
	return r.With(p)
}

// Predictions whose logits are the logarithm of probabilities of the model that made the labels are the best in every
// proper score. Sharper ones are worse, and calibrated again by a temperature. Less skill is worse in all but calibration.
func TestDifferences(t *testing.T) {
	const n = 3000
	var found []experiment.Result
	add := func(seeds int, m experiment.Method, skill, sharpness float64) {
		for _, e := range list(Chosen(Processor), ten, seeds, m) {
			// With noise N(0, 1) and the label ahead by skill, log p(label) grows with skill times the logit.
			found = append(found, spoken(t, e, n, skill, skill*sharpness))
		}
	}
	add(2, methods.Density, 2, 1)
	add(2, methods.Deterministic, 2, 1.6)
	add(1, methods.Rank1, 1.7, 1)
	found = append(found, resultsOf(func(experiment.Experiment) map[string]float64 { return nil }, list(Chosen(Processor), ten, 1, methods.MFVI))...)
	table := tableOf(t, "cifar-processor-differences", found...)
	var got []string
	verdict := map[string]string{}
	for _, row := range table.Rows {
		name := row.Cells[0][0].Text
		got = append(got, name+" "+row.Cells[1][0].Text)
		for k, cell := range row.Cells[2:] {
			if len(cell) > 1 {
				verdict[name+" "+judgements[k].heading] = cell[1].Text
			}
		}
	}
	if want := []string{"Density Uncertainty 0 1", "Deterministic 0 1", "Deterministic, temperature scaled 0 1", "Deep Ensemble, 2 deterministic 0 1", "Rank-1 BNN 0"}; !slices.Equal(got, want) {
		t.Fatalf("rows %q, want %q", got, want)
	}
	for name, want := range map[string]string{
		"Deterministic NLL": "worse", "Deterministic ECE": "worse", "Deterministic Brier": "worse", "Deterministic Accuracy (%)": "undecided",
		"Deterministic, temperature scaled NLL": "undecided", "Rank-1 BNN NLL": "worse", "Rank-1 BNN Accuracy (%)": "worse", "Rank-1 BNN AURC": "worse",
		"Rank-1 BNN ECE": "undecided", "Deep Ensemble, 2 deterministic NLL": "better", "Deep Ensemble, 2 deterministic Accuracy (%)": "better",
	} {
		if got := verdict[name]; !strings.HasSuffix(got, ", "+want) {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
	}
	if len(table.Notes) != 1 || !strings.Contains(table.Notes[0], "MFVI, seed 0") {
		t.Errorf("notes %q", table.Notes)
	}
	other := must.Get(spoken(t, *found[0].Experiment, n, 2, 1).Predictions())(t)
	other.Sets[0].Labels[0] = 7
	found[0] = found[0].With(other)
	fails(t, "with other labels", errorOf(NamedTable("cifar-processor-differences", index(found...))), "other test images")
	// Without runs of density, or without predictions, there is nothing to compare.
	for _, some := range [][]experiment.Result{nil, found[2:], resultsOf(func(experiment.Experiment) map[string]float64 { return nil }, list(Chosen(Processor), ten, 1, methods.Density))} {
		if table := tableOf(t, "cifar-processor-differences", some...); len(table.Rows) > 0 {
			t.Errorf("of %d results: %d rows", len(some), len(table.Rows))
		}
	}
}

// A difference of which the seeds disagree is undecided.
func TestSeedsThatDisagree(t *testing.T) {
	const n = 3000
	swapped := make([]contender, 2)
	for k, first := range []uint64{0, 1} {
		swapped[k] = contender{"", map[uint64]*judgedRun{}}
		for _, e := range list(Processor, ten, 2, methods.Density) {
			skill := 2.0
			if e.Seed == first {
				skill = 1.5
			}
			p := must.Get(spoken(t, e, n, skill, 2).Predictions())(t)
			swapped[k].runs[e.Seed] = must.Get(newJudgedRun(p.Sets[0].Probabilities, 10, p.Sets[0].Labels))(t)
		}
	}
	d := must.Get(resampled(swapped, n))(t)
	if _, same, err := d.difference(swapped[1], swapped[0], 0, []uint64{0, 1}); err != nil || same {
		t.Errorf("seeds that disagree have the same sign: %v, %v", same, err)
	}
	alone, _, err := d.difference(swapped[1], swapped[0], 0, []uint64{0})
	want := d.mean(swapped[1], 0, []uint64{0}) - d.mean(swapped[0], 0, []uint64{0})
	if err != nil || math.Abs(alone.Mean-want) > 1e-12 || alone.Low > alone.Mean || alone.High < alone.Mean {
		t.Errorf("%+v (%v), want a mean of %v", alone, err, want)
	}
}

// Runs by the text's and by the released settings are compared with the density layers of the same.
func TestDifferencesOfSettings(t *testing.T) {
	var found []experiment.Result
	for _, e := range slices.Concat(list(ReleasedGPU, ten, 2, methods.Rank1, methods.Density, methods.Deterministic), list(GPU, ten, 2, methods.Density, methods.Deterministic)) {
		found = append(found, spoken(t, e, 100, 2, 2))
	}
	table := tableOf(t, "cifar-gpu-differences", found...)
	var got []string
	for _, row := range table.Rows {
		got = append(got, fmt.Sprint(row.Cells[0][0].Text, " ", row.Cells[1][0].Text, " ", len(row.Cells[2])))
	}
	if want := []string{
		"Density Uncertainty 0 1 1", "Deterministic 0 1 2", "Deterministic, temperature scaled 0 1 2", "Deep Ensemble, 2 deterministic 0 1 2",
		"Density Uncertainty, released 0 1 1", "Deterministic, released 0 1 2", "Deterministic, released, temperature scaled 0 1 2",
		"Deep Ensemble, 2 deterministic, released 0 1 2", "Rank-1 BNN, released 0 1 2",
	}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	if !strings.Contains(table.Caption, "60 epochs") {
		t.Errorf("the caption is %s", table.Caption)
	}
}

// Five plain networks are a deep ensemble in every table of the comparison, with the costs of all of them. Four are none,
// and an ensemble that was trained as such stays as it is.
func TestEnsembleOfPredictions(t *testing.T) {
	var found []experiment.Result
	for i, e := range list(Processor, ten, methods.EnsembleMembers, methods.Deterministic) {
		r := spoken(t, e, 200, 2, 3)
		r.Metrics[results.MetricParameters], r.Metrics[results.MetricSecondsPerEpoch] = 7, 10
		r.Device = []string{"a", "b", "a", "b", "a"}[i]
		found = append(found, r)
	}
	row := func(t report.Table, method string) []string {
		i := slices.IndexFunc(t.Rows, func(row report.Row) bool { return row.Cells[0][0].Text == method })
		if i < 0 {
			return nil
		}
		return texts(t.Rows[i])[1:]
	}
	made := row(tableOf(t, "cifar-processor", found...), methods.Ensemble.Name)
	single := row(tableOf(t, "cifar-processor", found...), methods.Deterministic.Name)
	if len(made) != len(single) || made[2] != "1" || made[11] != "50" || made[12] != "a and b" || made[9] == "–" || made[4] >= single[4] {
		t.Fatalf("the ensemble's row is %q, that of one network %q", made, single)
	}
	byMember := row(tableOf(t, "cifar-processor-ood", found...), methods.Ensemble.Name)
	if byMember == nil || byMember[1] != "maximum probability" {
		t.Errorf("detection by the ensemble: %q", byMember)
	}
	// It is made of five results. A table that has no use for it uses none.
	for name, want := range map[string]int{"cifar-processor": 5, "cifar10-resnet14": 5, "cifar100-resnet14": 0} {
		x := index(found...)
		must.Get(NamedTable(name, x))(t)
		if got := len(x.Used()); got != want {
			t.Errorf("%s is made of %d results, want %d", name, got, want)
		}
	}
	// A mean over some of the runs says of how many.
	detected := slices.Clone(found)
	for i, r := range detected {
		detected[i].Metrics = maps.Clone(r.Metrics)
		if detected[i].Metrics["ood_cifar100_auroc"] = 0.7; i == 0 {
			delete(detected[i].Metrics, "ood_cifar100_auroc")
		}
	}
	if got := row(tableOf(t, "cifar-processor-ood", detected...), methods.Deterministic.Name); got[2] != "5" || got[3] != "0.700 ± 0.000 (n=4)" {
		t.Errorf("of four of five runs: %q", got)
	}
	const title = "Deep Ensemble (not in the paper)"
	trained := resultsOf(func(experiment.Experiment) map[string]float64 { return map[string]float64{results.MetricNLL: 0.125} }, list(Processor, ten, 1, methods.Ensemble))
	if got := row(tableOf(t, "cifar-processor", append(slices.Clip(found), trained...)...), methods.Ensemble.Name); got[4] != "0.1250" {
		t.Errorf("a trained ensemble has the row %q", got)
	}
	if got := figtest.Cell(t, tableOf(t, "ood-svhn", found...), title, processorColumns[0].heading); !strings.HasSuffix(got, "(n=1)") {
		t.Errorf("its maximum probability beside the paper's: %q", got)
	}
	if got := figtest.Cell(t, tableOf(t, "cifar10-resnet14", found[1:]...), title, processorHeading); got != "not run" {
		t.Errorf("of four networks: %q", got)
	}
	found[2] = found[2].With(nil)
	if got := row(tableOf(t, "cifar-processor", found...), methods.Ensemble.Name); got != nil {
		t.Errorf("without one's predictions: %q", got)
	}
}

// The table of detection has a row for each score that was measured, energies in the order of the layers, and the largest
// number of each column in bold.
func TestProcessorDetection(t *testing.T) {
	found := resultsOf(func(e experiment.Experiment) map[string]float64 {
		m := map[string]float64{}
		for set, at := range map[string][2]float64{SVHNExcerpt: {0.7, 0.8}, CIFAR100: {0.75, 0.6}} {
			own := ByClassGaussian
			if !isPlain(e.Method) {
				own = ByEnergy
				for _, layer := range []string{"output", "stem", "stage_1_block_0/conv_1"} {
					m[detectionMetric(set, "auroc")+byLayer(layer)], m[detectionMetric(set, "auprc")+byLayer(layer)] = 0.5, 0.4
				}
			}
			m[detectionMetric(set, "auroc")], m[detectionMetric(set, "auprc")] = at[0], at[0]
			m[detectionMetric(set, "auroc")+own], m[detectionMetric(set, "auprc")+own] = at[1], at[1]
		}
		return m
	}, list(Chosen(Processor), ten, 1, methods.Density, methods.Deterministic))
	table := tableOf(t, "cifar-processor-ood", found...)
	if want := []string{"Data set", "Method", "Score", "n", "CIFAR-100 AUROC", "CIFAR-100 AUPRC", "SVHN (1,083) AUROC", "SVHN (1,083) AUPRC"}; !slices.Equal(table.Columns, want) {
		t.Fatalf("columns %q, want %q", table.Columns, want)
	}
	both := tableOf(t, "cifar-processor-ood", append(slices.Clip(found), resultsOf(func(experiment.Experiment) map[string]float64 {
		return map[string]float64{"ood_cifar10_auroc": 0.25, "ood_cifar10_auprc": 0.125}
	}, list(Processor, hundred, 1, methods.Deterministic))...)...)
	if got := both.Columns[4:6]; !slices.Equal(got, []string{"Other CIFAR AUROC", "Other CIFAR AUPRC"}) {
		t.Errorf("columns %q", got)
	}
	if last := texts(both.Rows[len(both.Rows)-1]); last[0] != "CIFAR-100" || last[4] != "0.250" || last[5] != "0.125" || last[6] != "–" {
		t.Errorf("the row of CIFAR-100: %q", last)
	}
	var rows []string
	for _, row := range table.Rows {
		rows = append(rows, row.Cells[0][0].Text+": "+row.Cells[1][0].Text)
	}
	want := []string{"Deterministic: maximum probability", "Deterministic: Gaussian of each class", "Density Uncertainty: maximum probability", "Density Uncertainty: energy",
		"Density Uncertainty: energy, stem", "Density Uncertainty: energy, stage_1_block_0/conv_1", "Density Uncertainty: energy, output"}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %q\nwant %q", rows, want)
	}
	bold := 0
	for r, row := range table.Rows {
		for k, cell := range row.Cells {
			if cell[0].Bold {
				bold++
				if r != map[int]int{3: 0, 4: 0, 5: 1, 6: 1}[k] {
					t.Errorf("row %d, column %d is bold: %s", r, k, cell[0].Text)
				}
			}
		}
	}
	if bold != 4 {
		t.Errorf("%d cells are bold, want 4", bold)
	}
}
