package where

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// madeImages are made-up runs of question 10. Densities have a lower NLL and a higher area than the others, by 0.2, and
// trainings the variance 0.01^2 x 10/4. The networks say the same of all images, but for densities by lower.
func madeImages(lower float64, change func(e experiment.Experiment, metrics map[string]float64)) *tables.Index {
	all := map[string]experiment.Result{}
	for _, m := range fewMethods() {
		for _, e := range fewRuns(m) {
			by, confident := 0.01*(float64(e.Seed)-2), 0.6
			density := m.Key == startingAt(methods.Density, 0.01).Key || m.Key == startingAt(methods.Density, 0.1).Key
			found := map[string]float64{mutualInformation: 0.02, corruptedNLL: 2, corruptedECE: 0.1, "train_nll": 0.1}
			for _, s := range imageScores[:comparedScores] {
				found[s.metric] = 0.5 + by
			}
			if density {
				confident += lower
				found[results.MetricNLL] -= 0.2
				found["ood_"+cifar.CIFAR100+"_auroc"] += 0.2
			}
			if change != nil {
				change(e, found)
			}
			p := &experiment.Predictions{}
			for _, name := range []string{cifar.TestSet, cifar.CIFAR100, cifar.SVHNExcerpt} {
				s := experiment.Prediction{Set: name}
				s.Width = 2
				for i := range 200 {
					s.Probabilities, s.MutualInformation = append(s.Probabilities, confident, 1-confident), append(s.MutualInformation, 0)
					if name == cifar.TestSet {
						s.Labels = append(s.Labels, i%2)
					}
				}
				p.Sets = append(p.Sets, s)
			}
			all[e.ID()] = experiment.Result{ID: e.ID(), Seed: e.Seed, Metrics: found}.With(p)
		}
	}
	return tables.NewIndex(all)
}

// rowsOf are the two differences.
func rowsOf(t *testing.T, x *tables.Index) []report.Row {
	t.Helper()
	table := must.Get(ImageTable(x))(t)
	rows := table.Rows[len(table.Rows)-2:]
	if rows[0].Name != "start 0.01" || rows[1].Name != "start 0.1" {
		t.Fatalf("the last rows are %+v", rows)
	}
	return rows
}

// If networks say the same of all images, an interval has the spread of trainings alone, and otherwise that of images, too.
func TestImageTable(t *testing.T) {
	for _, lower := range []float64{0, 0.3} {
		x := madeImages(lower, nil)
		for _, row := range rowsOf(t, x) {
			nll, ece, auroc := row.Cells[0], row.Cells[1], row.Cells[3]
			if nll.Verdict != report.Better || auroc.Verdict != report.Better || ece.Verdict != report.NotSignificant {
				t.Errorf("%s: the verdicts are %q, %q and %q", row.Name, nll.Verdict, auroc.Verdict, ece.Verdict)
			}
			// Differences of the NLL at an image are -log(0.9/0.6) and -log(0.1/0.4), each on half of the images.
			images := (math.Log(0.4/0.1) + math.Log(0.9/0.6)) / 2 / math.Sqrt(200)
			if lower == 0 {
				images = 0
			}
			quantile := distuv.StudentsT{Sigma: 1, Nu: float64(4 * len(fewMethods()))}.Quantile(0.975)
			want := quantile * math.Hypot(images, 0.01*math.Sqrt(2.5*2/5))
			if d := nll.Difference; math.Abs(d.Mean+0.2) > 1e-9 || math.Abs((d.High-d.Low)/2/want-1) > 0.1*lower+1e-9 {
				t.Errorf("%s: the difference is %+v, and half the interval should be %g", row.Name, *d, want)
			}
		}
	}
	table := must.Get(ImageTable(madeImages(0.3, nil)))(t)
	for _, row := range table.Rows {
		if row.Name == methods.Ensemble.Name { // of equal networks
			if want := fmt.Sprintf("%.3f", -(math.Log(0.6)+math.Log(0.4))/2); row.Cells[0].Text != want {
				t.Errorf("the ensemble has the NLL %q, want %s", row.Cells[0].Text, want)
			}
			return
		}
	}
	t.Error("there is no ensemble")
}

// A level without noise has no verdict, and none has if the plain network is not too sure, or a run diverged.
func TestImageTableVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(e experiment.Experiment, found map[string]float64)
		first, later string
	}{
		"without noise": {func(e experiment.Experiment, found map[string]float64) {
			if e.Method.Key == startingAt(methods.DensityMean, 0.01).Key {
				found[mutualInformation] = 0.009
			}
		}, "", report.Better},
		"not too sure": {func(e experiment.Experiment, found map[string]float64) {
			if e.Method.Same(methods.Deterministic) {
				found["train_nll"] = 0.45
			}
		}, "", ""},
		"diverged": {func(e experiment.Experiment, found map[string]float64) {
			if e.Method.Same(methods.Rank1) && e.Seed == 3 {
				found[results.MetricNLL] = math.NaN()
			}
		}, "", ""},
	} {
		rows := rowsOf(t, madeImages(0, c.change))
		if got, later := rows[0].Cells[0], rows[1].Cells[0]; got.Verdict != c.first || later.Verdict != c.later || got.Text != later.Text {
			t.Errorf("%s: %+v and %+v", name, got, later)
		}
	}
	lost := madeImages(0, nil)
	r, _ := lost.Find(fewRuns(startingAt(methods.Density, 0.1))[0])
	if _, err := ImageTable(lost.With(r.With(nil))); err == nil {
		t.Error("runs without predictions have differences")
	}
}
