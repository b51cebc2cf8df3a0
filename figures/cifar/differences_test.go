package cifar

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// spoken is the result of an experiment with its predictions for n images of 10 classes. Their logits are noise that all
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
		set.Width, set.Probabilities = 10, metrics.Softmax(logits, 10, 1)
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
		for _, e := range seeded(Chosen(Processor), seeds).Of(ten, m) {
			// With noise N(0, 1) and the label ahead by skill, log p(label) grows with skill times the logit.
			found = append(found, spoken(t, e, n, skill, skill*sharpness))
		}
	}
	add(2, methods.Density, 2, 1)
	add(2, methods.Deterministic, 2, 1.6)
	add(1, methods.Rank1, 1.7, 1)
	table := tableOf(t, "cifar-processor-differences", found...)
	var got []string
	verdict := map[string]string{}
	for _, row := range table.Rows {
		got = append(got, row.Name+" "+row.Cells[0].Text)
		for k, j := range comparedNumbers(false) {
			verdict[row.Name+" "+j.Title] = row.Cells[1+k].Verdict
		}
	}
	same(t, got, []string{"Density Uncertainty 0 1", "Deterministic 0 1", "Rank-1 BNN 0"})
	for name, want := range map[string]string{
		"Density Uncertainty NLL": "", "Deterministic NLL": report.Worse, "Deterministic ECE": report.Worse, "Deterministic Brier": report.Worse, "Deterministic Accuracy (%)": report.NotSignificant,
		"Rank-1 BNN NLL": report.Worse, "Rank-1 BNN Accuracy (%)": report.Worse, "Rank-1 BNN AURC": report.Worse, "Rank-1 BNN ECE": report.NotSignificant,
	} {
		if verdict[name] != want {
			t.Errorf("%s: %q, want %s", name, verdict[name], want)
		}
	}
	// A temperature makes up for too much sharpness, and for nothing else.
	for _, row := range tableOf(t, "cifar-processor-temperature", found...).Rows {
		text, of := lines(report.Table{Rows: []report.Row{row}})[0], row.Cells
		if after := of[2].Verdict; row.Name == "Deterministic" && (after != report.NotSignificant || of[4].Verdict != report.NotSignificant || of[0].Text < "1.5" || of[0].Text > "1.7" || of[2].Text >= of[1].Text) ||
			row.Name == "Rank-1 BNN" && (after != report.Worse || of[0].Text < "0.9" || of[0].Text > "1.1") {
			t.Errorf("with a temperature: %s", text)
		}
	}
	without := resultsOf(func(experiment.Experiment) map[string]float64 { return nil }, seeded(Chosen(Processor), 1).Of(ten, methods.MFVI))
	must.GetErr(named(t, "cifar-processor-differences").Table(tables.Of(without)))(t, experiment.ErrNoPredictions, "MFVI")
	// Without runs of density there is nothing to compare.
	for _, some := range [][]experiment.Result{nil, found[2:]} {
		if table := tableOf(t, "cifar-processor-differences", some...); len(table.Rows) > 0 {
			t.Errorf("of %d results: %d rows", len(some), len(table.Rows))
		}
	}
}

// Probabilities three times too sure are calibrated by the temperature 3, which the held-out images tell.
func TestTempered(t *testing.T) {
	p := must.Get(spoken(t, seeded(Paper, 1).Of(ten, methods.Deterministic)[0], 3000, 2, 6).Predictions())(t)
	found, before := must.Get(Tempered(p))(t), must.Get(Scores(p))(t)
	must.Near(t, found[metricTemperature], 3, 0.3, "the temperature")
	if !(found["ece10_tempered"] <= 0.04 && before["ece10"] >= 0.1 && found["nll_tempered"] <= before["nll"]-0.1 && found["brier_tempered"] <= before["brier"]) {
		t.Errorf("%v, before %v", found, before)
	}
}

// A difference of which the seeds disagree is not significant.
func TestSeedsThatDisagree(t *testing.T) {
	const n = 3000
	swapped := make([]comparedRow, 2)
	for k, first := range []uint64{0, 1} {
		swapped[k] = comparedRow{runs: map[uint64]*comparedRun{}}
		for _, e := range seeded(Processor, 2).Of(ten, methods.Density) {
			skill := 2.0
			if e.Seed == first {
				skill = 1.5
			}
			p := must.Get(spoken(t, e, n, skill, 2).Predictions())(t)
			swapped[k].runs[e.Seed] = must.Get(compareRuns([]*imageScores{must.Get(scoresAt(&p.Sets[0], false))(t)}, false))(t)[0]
		}
	}
	if _, same := swapped[1].difference(swapped[0], 0, []uint64{0, 1}); same {
		t.Error("seeds that disagree have the same sign")
	}
	alone, _ := swapped[1].difference(swapped[0], 0, []uint64{0})
	want := swapped[1].runs[0].values[0] - swapped[0].runs[0].values[0]
	if !scalar.EqualWithinAbs(alone.Mean, want, 1e-12) || !(alone.Low <= alone.Mean && alone.Mean <= alone.High) {
		t.Errorf("%+v, want a mean of %v", alone, want)
	}
}

// If only one of two methods diverged, the verdict is against it.
func TestDivergedContenders(t *testing.T) {
	var found []experiment.Result
	for _, e := range slices.Concat(seeded(Chosen(Processor), 2).Of(ten, methods.Density, methods.Rank1), seeded(Chosen(Processor), 1).Of(ten, methods.MFVI)) {
		found = append(found, spoken(t, e, 100, 2, 2))
	}
	verdicts := func() string {
		var all []string
		table := tableOf(t, "cifar-processor-differences", found...)
		for _, row := range table.Rows {
			all = append(all, row.Name+" "+row.Cells[1].Verdict)
		}
		if text := strings.Join(lines(table), " "); strings.Contains(text, "NaN") {
			t.Errorf("of a method without a finite run it has %s", text)
		}
		return strings.Join(all, ", ")
	}
	found[3].Diverged, found[4].Diverged = true, true
	if got, want := verdicts(), "Density Uncertainty , MFVI worse, Rank-1 BNN worse"; got != want {
		t.Errorf("others diverged: %s, want %s", got, want)
	}
	found[0].Diverged, found[3].Diverged, found[4].Diverged = true, false, false
	if got, want := verdicts(), "Density Uncertainty , MFVI better, Rank-1 BNN better"; got != want {
		t.Errorf("density diverged: %s, want %s", got, want)
	}
}

// Five plain networks are a deep ensemble in every table of the comparison. Four are none, and an ensemble that was trained
// as such stays as it is.
func TestEnsembleOfPredictions(t *testing.T) {
	var found []experiment.Result
	for _, e := range slices.Concat(seeded(Processor, methods.Ensemble.Members).Of(ten, methods.Deterministic), seeded(Chosen(Processor), 2).Of(ten, methods.Density)) {
		found = append(found, spoken(t, e, 300, 1, 3))
	}
	cell := func(table, row, column string, all ...experiment.Result) string {
		made := tableOf(t, table, all...)
		if !slices.ContainsFunc(made.Rows, func(r report.Row) bool { return r.Name == row }) {
			return "no row"
		}
		return figtest.Cell(t, made, row, column)
	}
	const name = "Deep Ensemble"
	if made, single := cell("cifar-processor", name, "NLL", found...), cell("cifar-processor", "Deterministic", "NLL", found...); made >= single || cell("cifar-processor", name, "n", found...) != "1" {
		t.Errorf("the ensemble has the NLL %s, one network %s", made, single)
	}
	if got := cell("cifar-processor-ood", name, "mutual information", found...); len(got) < 5 || got == "–" {
		t.Errorf("detection by the ensemble: %s", got)
	}
	if got := cell("cifar-processor-differences", name, "Seeds", found...); got != "0 1" {
		t.Errorf("it stands beside the seeds %s", got)
	}
	// It is made of five results. A table that has no use for it uses none.
	for name, want := range map[string]int{"cifar-processor": 7, "cifar10-resnet14": 0} {
		x := tables.Of(found)
		must.Get(named(t, name).Table(x))(t)
		if got := len(slices.DeleteFunc(x.Asked(), func(r experiment.Result) bool { return r.ID == "" })); got != want {
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
	if got := cell("cifar-processor-ood", "Deterministic", "maximum probability", detected...); got != "0.700 ± 0.000 (n=4 of 5)" {
		t.Errorf("of four of five runs: %s", got)
	}
	trained := resultsOf(measuring(0.9, 0.1, 0.125, 0), seeded(Processor, 1).Of(ten, methods.Ensemble))
	trained[0].Metrics["brier"], trained[0].Metrics["aurc"] = 1, 1
	if got := cell("cifar-processor", name, "NLL", append(slices.Clip(found), trained...)...); got != "*0.12*" {
		t.Errorf("a trained ensemble: %s", got)
	}
	if got := cell("cifar-processor", name, "NLL", found[1:]...); got != "no row" {
		t.Errorf("of four networks: %s", got)
	}
}

// The tables of detection have a column for each score that was measured, and a row for each layer in the order of the
// layers; the largest number of a group is bold.
func TestProcessorDetection(t *testing.T) {
	found := resultsOf(func(e experiment.Experiment) map[string]float64 {
		m := map[string]float64{}
		for set, at := range map[string][2]float64{SVHNExcerpt: {0.7, 0.8}, CIFAR100: {0.75, 0.6}} {
			own := byClassGaussian
			if !isPlain(e.Method) {
				own = ByEnergy
				for i, layer := range []string{"output", "stem", "stage_1_block_0/conv_1"} {
					m[detectionMetric(set, "auroc")+byLayer(layer)] = 0.5 + 0.1*float64(i)
				}
			}
			for _, metric := range []string{"auroc", "auprc"} {
				m[detectionMetric(set, metric)], m[detectionMetric(set, metric)+own] = at[0], at[1]
			}
		}
		return m
	}, seeded(Chosen(Processor), 1).Of(ten, methods.Density, methods.Deterministic))
	found = append(found, resultsOf(func(experiment.Experiment) map[string]float64 { return map[string]float64{"ood_cifar10_auroc": 0.25} },
		seeded(Processor, 1).Of(hundred, methods.Deterministic))...)
	table := tableOf(t, "cifar-processor-ood", found...)
	same(t, table.Columns, []string{"Method", "n", "maximum probability", "Gaussian of each class", "energy"})
	same(t, lines(table), []string{
		"CIFAR-10, shown CIFAR-100 | Deterministic | 1 | *0.750* | 0.600 | –", "CIFAR-10, shown CIFAR-100 | Density Uncertainty | 1 | 0.750 | – | 0.600",
		"CIFAR-10, shown SVHN (1,083) | Deterministic | 1 | 0.700 | *0.800* | –", "CIFAR-10, shown SVHN (1,083) | Density Uncertainty | 1 | 0.700 | – | 0.800",
		"CIFAR-100, shown CIFAR-10 | Deterministic | 1 | 0.250 | – | –",
	})
	same(t, lines(tableOf(t, "cifar-processor-layers", found...))[3:], []string{
		"CIFAR-10, shown SVHN (1,083) | stem | 0.600", "CIFAR-10, shown SVHN (1,083) | stage_1_block_0/conv_1 | *0.700*", "CIFAR-10, shown SVHN (1,083) | output | 0.500",
	})
}

// The scores that are kept of images are those of their probabilities.
func TestKeptScores(t *testing.T) {
	p := must.Get(spoken(t, seeded(Processor, 1).Of(ten, methods.Density)[0], 200, 2, 2).Predictions())(t)
	want := []*imageScores{must.Get(scoresAt(&p.Sets[0], false))(t), must.Get(scoresAt(&p.Sets[0], true))(t)}
	must.Do(t, keepScores(p))
	if got := []*imageScores{must.Get(scoresAt(&p.Sets[0], false))(t), must.Get(scoresAt(&p.Sets[0], true))(t)}; !reflect.DeepEqual(got, want) || p.Sets[0].Probabilities != nil {
		t.Errorf("the kept scores are others")
	}
}

// keepScores keeps of the predictions of test images what the tables of differences and temperatures need, in the place of
// probabilities of many classes.
func keepScores(p *experiment.Predictions) error {
	test, err := p.Set(TestSet)
	if err != nil {
		return err
	}
	kept := map[string][]float64{}
	for scaled, ending := range map[bool]string{false: "", true: scaledEnding} {
		s, err := scoresAt(test, scaled)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		right := make([]float64, len(s.nll))
		for i, r := range s.outcomes.Right {
			if r {
				right[i] = 1
			}
		}
		kept["nll"+ending], kept["brier"+ending], kept["confidence"+ending], kept["right"+ending] = s.nll, s.brier, s.outcomes.Confidence, right
		kept["temperature"+ending] = []float64{s.temperature}
	}
	test.Probabilities, test.PerExample = nil, kept
	return nil
}
