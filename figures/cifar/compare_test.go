package cifar

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// spoken are predictions of n images of 10 classes for an experiment: logits of noise that all runs of a seed share, in
// which the label stands out by skill, times sharpness.
func spoken(t *testing.T, e results.Experiment, n int, skill, sharpness float64) *predictions.Predictions {
	t.Helper()
	rng := rand.New(rand.NewPCG(e.Seed, 9))
	draw := func() (labels []int, probs []float64) {
		var logits []float64
		for i := range n {
			labels = append(labels, i%10)
			for c := range 10 {
				logit := rng.NormFloat64()
				if c == i%10 {
					logit += skill
				}
				logits = append(logits, sharpness*logit)
			}
		}
		probs = must.Get(metrics.Softmax(logits, 10, 1))(t)
		return labels, probs
	}
	p := &predictions.Predictions{Experiment: e.ID(), Dataset: e.Dataset, Classes: 10, Samples: 1}
	p.Labels, p.Probs = draw()
	if e.Method == methods.Deterministic.Name {
		p.HeldOutLabels, p.HeldOutProbs = draw()
	}
	return p
}

// keepSpoken writes predictions to a store and returns the line of a run that said them, on device "card".
func keepSpoken(t *testing.T, store string, e results.Experiment, p *predictions.Predictions) results.Result {
	t.Helper()
	folder := filepath.Join(store, predictions.Folder)
	must.Do(t, os.MkdirAll(folder, 0o755))
	must.Do(t, predictions.Write(filepath.Join(folder, predictions.FileName(e.ID())), p))
	scores := must.Get(predictions.Score(p))(t)
	return linesOf(func(results.Experiment) map[string]float64 {
		return map[string]float64{results.MetricNLL: scores[results.MetricNLL]}
	}, []results.Experiment{e})[0]
}

// Predictions whose logits are the logarithm of probabilities of the model that made the labels are the best in every
// proper score; sharper ones are worse, and calibrated again by a temperature. Less skill is worse in all but
// calibration.
func TestDifferences(t *testing.T) {
	const n = 3000
	store := t.TempDir()
	p := Paper(CIFAR10, ResNet14).Processor()
	p.Seeds = []uint64{0, 1}
	one := p
	one.Seeds = []uint64{0}
	var lines []results.Result
	add := func(list []results.Experiment, skill, sharpness float64) {
		for _, e := range list {
			// With noise N(0, 1) and the label ahead by skill, log p(label) grows with skill times the logit.
			lines = append(lines, keepSpoken(t, store, e, spoken(t, e, n, skill, skill*sharpness)))
		}
	}
	add(p.Experiments(methods.Density), 2, 1)
	add(p.Experiments(methods.Deterministic), 2, 1.6)
	add(one.Experiments(methods.Rank1), 1.7, 1)
	lines = append(lines, linesOf(func(results.Experiment) map[string]float64 { return nil }, one.Experiments(methods.MFVI))...)

	named := Tables()
	i := slices.IndexFunc(named, func(t report.NamedTable) bool { return t.Name == "cifar-processor-differences" })
	table := must.Get(named[i].Of(lines, predictions.In(store)))(t)
	var got []string
	verdict := make(map[string]string)
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

	// The labels are those of all runs; a difference whose seeds disagree is undecided.
	swapped := make([]contender, 2)
	for k, first := range []uint64{0, 1} {
		swapped[k] = contender{"", make(map[uint64]*judgedRun)}
		for seed := range uint64(2) {
			skill := 2.0
			if seed == first {
				skill = 1.5
			}
			e := p.Experiments(methods.Density)[seed]
			q := spoken(t, e, n, skill, 2)
			swapped[k].runs[seed] = must.Get(newJudgedRun(q.Probs, 10, q.Labels))(t)
		}
	}
	d := must.Get(resampled(swapped, n))(t)
	if _, same, err := d.difference(1, 0, []uint64{0, 1}); err != nil || same {
		t.Errorf("seeds that disagree have the same sign: %v, %v", same, err)
	}
	alone, _, err := d.difference(1, 0, []uint64{0})
	want := d.mean(1, 0, []uint64{0}) - d.mean(0, 0, []uint64{0})
	if err != nil || math.Abs(alone.Mean-want) > 1e-12 || alone.Low > alone.Mean || alone.High < alone.Mean {
		t.Errorf("%+v (%v), want a mean of %v", alone, err, want)
	}
	other := spoken(t, lines[0].Experiment, n, 2, 1)
	other.Labels[0] = 7
	elsewhere := t.TempDir()
	lines[0] = keepSpoken(t, elsewhere, lines[0].Experiment, other)
	if _, err := named[i].Of(lines, predictions.In(elsewhere, store)); err == nil || !strings.Contains(err.Error(), "other test images") {
		t.Errorf("with other labels: %v", err)
	}
	if _, err := named[i].Of(lines, predictions.In(store, elsewhere)); err == nil || !strings.Contains(err.Error(), "they are of another training") {
		t.Errorf("predictions of another store than the line: %v", err)
	}
}

// Five plain networks are a deep ensemble in every table of the protocol, with the costs of all of them; four are none,
// and an ensemble that was trained as such stays as it is.
func TestEnsembleOfPredictions(t *testing.T) {
	store := t.TempDir()
	p := Paper(CIFAR10, ResNet14).Processor()
	p.Seeds = []uint64{0, 1, 2, 3, 4}
	var lines []results.Result
	for i, e := range p.Experiments(methods.Deterministic) {
		said, other := spoken(t, e, 200, 2, 3), spoken(t, e, 100, 0.5, 3)
		said.Others = []predictions.Set{{Name: CIFAR100, Probs: other.Probs, MaxProbability: must.Get(metrics.MaxProbability(other.Probs, 10))(t)}}
		line := keepSpoken(t, store, e, said)
		line.Metrics[results.MetricParameters], line.Metrics[results.MetricSecondsPerEpoch] = 7, 10
		line.Device = []string{"a", "b", "a", "b", "a"}[i]
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	table := func(name string, lines []results.Result) report.Table {
		all := Tables()
		i := slices.IndexFunc(all, func(t report.NamedTable) bool { return t.Name == name })
		return must.Get(all[i].Of(lines, predictions.In(store)))(t)
	}
	row := func(t report.Table, method string) (cells []string) {
		for _, row := range t.Rows {
			if len(row.Cells) > 0 && row.Cells[0][0].Text == method {
				for _, cell := range row.Cells {
					cells = append(cells, cell[0].Text)
				}
				return cells
			}
		}
		return nil
	}
	made := row(table("cifar-processor", lines), methods.Ensemble.Title)
	single := row(table("cifar-processor", lines), methods.Deterministic.Title)
	if len(made) != len(single) || made[2] != "1" || made[11] != "50" || made[12] != "a and b" || made[9] == "–" || made[4] >= "1" {
		t.Fatalf("the ensemble's row is %q, that of one network %q", made, single)
	}
	byMember := row(table("cifar-processor-ood", lines), methods.Ensemble.Title)
	if byMember == nil || byMember[1] != "maximum probability" {
		t.Errorf("detection by the ensemble: %q", byMember)
	}
	// It is made of five lines, which a table that has no use for them is not.
	for name, want := range map[string]int{"cifar-processor": 5, "cifar10-resnet14": 5, "cifar100-resnet14": 0} {
		watched, used := results.Watch(lines)
		table(name, watched)
		if got := len(used()); got != want {
			t.Errorf("%s is made of %d lines, want %d", name, got, want)
		}
	}
	// A mean over some of the runs says of how many.
	detected := slices.Clone(lines)
	for i, line := range detected {
		detected[i].Metrics = maps.Clone(line.Metrics)
		if i > 0 {
			detected[i].Metrics[detectionMetric(CIFAR100, "auroc")] = 0.7
		}
	}
	if got := row(table("cifar-processor-ood", detected), methods.Deterministic.Title); got[2] != "5" || got[3] != "0.700 ± 0.000 (n=4)" {
		t.Errorf("of four of five runs: %q", got)
	}
	const title = "Deep Ensemble (not in the paper)"
	if got := figtest.Cell(t, table("cifar10-resnet14", lines), title, processorHeading); !strings.HasSuffix(got, "(n=1)") {
		t.Errorf("beside the paper's: %q", got)
	}
	if got := figtest.Cell(t, table("cifar10-resnet14", lines[1:]), title, processorHeading); got != "not run" {
		t.Errorf("of four networks: %q", got)
	}
	if got := figtest.Cell(t, table("ood-svhn", lines), title, processorColumns[0].heading); !strings.HasSuffix(got, "(n=1)") {
		t.Errorf("its maximum probability beside the paper's: %q", got)
	}
	p.Seeds = []uint64{0}
	trained := linesOf(func(results.Experiment) map[string]float64 { return map[string]float64{results.MetricNLL: 0.125} }, p.Experiments(methods.Ensemble))
	if got := row(table("cifar-processor", append(slices.Clip(lines), trained...)), methods.Ensemble.Title); got[4] != "0.1250" {
		t.Errorf("a trained ensemble has the row %q", got)
	}
	must.Do(t, os.Remove(filepath.Join(store, predictions.Folder, predictions.FileName(lines[2].ID))))
	if got := row(table("cifar-processor", lines), methods.Ensemble.Title); got != nil {
		t.Errorf("without one's predictions: %q", got)
	}
}

// Runs with the text's and with the released settings are compared with the density layers of the same.
func TestDifferencesOfSettings(t *testing.T) {
	store := t.TempDir()
	var lines []results.Result
	for _, e := range slices.Concat(Released(CIFAR10, ResNet20).GPU().Experiments(methods.Rank1, methods.Density, methods.Deterministic),
		Paper(CIFAR10, ResNet14).GPU().Experiments(methods.Density, methods.Deterministic)) {
		lines = append(lines, keepSpoken(t, store, e, spoken(t, e, 100, 2, 2)))
	}
	table := must.Get(comparisons[1].differences(lines, nil, predictions.In(store)))(t)
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
	if !strings.Contains(table.Caption, "60 epochs") || table.Name != "cifar-gpu-differences" {
		t.Errorf("table %s: %s", table.Name, table.Caption)
	}
}

// Of several runs of density, those with the chosen value are what others are compared with, wherever they stand.
func TestReference(t *testing.T) {
	n, _ := searchOf(methods.Density.Name)
	group := func(value string, decay methods.Decay) results.Group {
		p := Paper(CIFAR10, ResNet14).Processor()
		if value != "" {
			p = n.with(p, value)
		}
		p.Decay = decay
		return results.Group{First: p.Experiments(methods.Density)[0]}
	}
	chosen := committedChoice()[methods.Density.Name]
	for _, c := range []struct {
		name   string
		groups []results.Group
		want   int
	}{
		{"the chosen value", []results.Group{group("0.03", methods.DecayAll), group(chosen, methods.DecayWeights), group(chosen, methods.DecayAll)}, 2},
		{"the first other", []results.Group{group("", methods.DecayWeights), group("0.03", methods.DecayAll), group("", methods.DecayAll)}, 1},
		{"none", []results.Group{group(chosen, methods.DecayWeights)}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := referenceOf(c.groups); got != c.want {
				t.Errorf("group %d, want %d", got, c.want)
			}
		})
	}
}

// Without runs of density, or without predictions, there is nothing to compare.
func TestDifferencesOfNothing(t *testing.T) {
	p := Paper(CIFAR10, ResNet14).Processor()
	lines := linesOf(func(results.Experiment) map[string]float64 { return nil }, p.Experiments(methods.Density))
	for _, list := range [][]results.Result{nil, lines} {
		table, err := comparisons[0].differences(list, nil, predictions.In(t.TempDir()))
		if err != nil || len(table.Rows) > 0 || len(table.Notes) != len(list) {
			t.Errorf("of %d lines: %d rows, notes %q, %v", len(list), len(table.Rows), table.Notes, err)
		}
	}
}

func TestProcessorDetection(t *testing.T) {
	p := Paper(CIFAR10, ResNet14).Processor()
	lines := linesOf(func(e results.Experiment) map[string]float64 {
		of := func(set string, byProbability, byOwn float64) map[string]float64 {
			m := map[string]float64{"ood_" + set + "_auroc": byProbability, "ood_" + set + "_auprc": byProbability}
			own := predictions.ByClassGaussian
			if e.Method == methods.Density.Name {
				own = methods.ByEnergy
				for _, layer := range []string{"output", "stem", "stage_1_block_0/conv_1"} {
					m["ood_"+set+"_auroc"+predictions.ByLayer(layer)] = 0.5
					m["ood_"+set+"_auprc"+predictions.ByLayer(layer)] = 0.4
				}
			}
			m["ood_"+set+"_auroc"+own], m["ood_"+set+"_auprc"+own] = byOwn, byOwn
			return m
		}
		m := of("svhn-first1083", 0.7, 0.8)
		for name, v := range of("cifar100", 0.75, 0.6) {
			m[name] = v
		}
		return m
	}, p.Experiments(methods.Density), p.Experiments(methods.Deterministic))
	table := tableOf(t, "cifar-processor-ood", lines)
	if want := []string{"Data set", "Method", "Score", "n", "CIFAR-100 AUROC", "CIFAR-100 AUPRC", "SVHN (1,083) AUROC", "SVHN (1,083) AUPRC"}; !slices.Equal(table.Columns, want) {
		t.Fatalf("columns %q, want %q", table.Columns, want)
	}
	both := tableOf(t, "cifar-processor-ood", append(slices.Clip(lines), linesOf(func(results.Experiment) map[string]float64 {
		return map[string]float64{"ood_cifar10_auroc": 0.25, "ood_cifar10_auprc": 0.125}
	}, Paper(CIFAR100, ResNet14).Processor().Experiments(methods.Deterministic))...))
	if want := []string{"Data set", "Method", "Score", "n", "Other CIFAR AUROC", "Other CIFAR AUPRC", "SVHN (1,083) AUROC", "SVHN (1,083) AUPRC"}; !slices.Equal(both.Columns, want) {
		t.Errorf("columns %q, want %q", both.Columns, want)
	}
	if last := both.Rows[len(both.Rows)-1]; last.Name != "CIFAR-100" || last.Cells[3][0].Text != "0.250" || last.Cells[4][0].Text != "0.125" || last.Cells[5][0].Text != "–" {
		t.Errorf("the row of CIFAR-100: %v %v", last.Name, last.Cells)
	}
	var scores []string
	for _, row := range table.Rows {
		scores = append(scores, row.Cells[0][0].Text+": "+row.Cells[1][0].Text)
	}
	want := []string{"Deterministic: maximum probability", "Deterministic: Gaussian of each class", "Density Uncertainty: maximum probability", "Density Uncertainty: energy",
		"Density Uncertainty: energy, stem", "Density Uncertainty: energy, stage_1_block_0/conv_1", "Density Uncertainty: energy, output"}
	if !slices.Equal(scores, want) {
		t.Errorf("rows %q\nwant %q", scores, want)
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
