package tables_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// task is a small table of your own.
func task() experiment.Task {
	set := &datasets.Regression{Name: "mine", N: 9, D: 1}
	for i := range set.N {
		set.X, set.Y = append(set.X, float64(i)), append(set.Y, float64(i*i))
	}
	return experiment.Task{Name: set.Name, Data: experiment.Table{Set: set, Count: 3}, Network: nets.MLP{Widths: []int{5}}, Likelihood: likelihood.Gaussian{}}
}

// density is a method with layers.
func density(layers dul.Density) experiment.Method {
	return experiment.Method{Name: "density", Layers: layers}
}

// made are made-up results of a method, each with the metric "nll" of its split.
func made(t *testing.T, m experiment.Method, nll ...float64) (list []experiment.Result) {
	t.Helper()
	for i, e := range must.Get(task().Experiments(experiment.Adam(1, 4, 0.1), 2, m))(t)[:len(nll)] {
		list = append(list, experiment.Result{ID: e.ID(), Group: e.Group(), Split: e.Split, Metrics: map[string]float64{"nll": nll[i]}}.Of(e))
	}
	return list
}

// Of a difference that is small with all of its interval, as of the RMSE of Naval, three decimals would show nothing.
func TestText(t *testing.T) {
	for _, c := range []struct {
		mean, low, high float64
		want            string
	}{
		{-0.00034, -0.00038, -0.0003, "-0.00034 [-0.00038, -0.00030]"},
		{0, -0.0199, 0.0199, "+0.000 [-0.020, +0.020]"},
		{-0.005, -0.015, 0.02, "-0.005 [-0.015, +0.020]"},
		{-0.005, -0.02, 0.01, "-0.005 [-0.020, +0.010]"},
		{-15.462, -20.4849, -10.439, "-15.462 [-20.485, -10.439]"},
	} {
		test := tables.Test[string]{Difference: &metrics.Difference{Mean: c.mean, Low: c.low, High: c.high}}
		if got := test.Text(); got != c.want {
			t.Errorf("%v in [%v, %v]: got %v, want %v", c.mean, c.low, c.high, got, c.want)
		}
	}
}

// Tests are made of equal splits alone, as many as are asked for. A verdict holds for the family: the first is decided by
// itself, and not beside 20 others.
func TestFamily(t *testing.T) {
	values := map[int]float64{0: 1, 1: 2.1, 2: 3.2}
	reference := map[int]float64{0: 1.1, 1: 2.3, 2: 3.3}
	family := tables.Family[string]{TestTrain: 1. / 9}
	for _, c := range []struct {
		name              string
		values, reference map[int]float64
		least             int
	}{{"other splits", values, map[int]float64{0: 1, 1: 2, 3: 3}, 0}, {"one split", map[int]float64{0: 1}, map[int]float64{0: 2}, 0}, {"too few", values, reference, 4}} {
		family.Add(c.name, c.values, c.reference, c.least)
	}
	if tests := family.Tests(); len(tests) != 0 {
		t.Errorf("there are tests %v", tests)
	}
	nearly := map[int]float64{0: 1.15, 1: 2.3, 2: 3.45}
	family.Add("nearly", values, nearly, 3)
	alone := family.Tests()[0].Verdict
	for i := range 20 {
		family.Add(fmt.Sprint(i), values, map[int]float64{0: 2, 1: 0, 2: 4}, 0)
	}
	tests := family.Tests()
	if alone != report.Better || tests[0].Verdict != report.NotSignificant || tests.Verdicts()[report.NotSignificant] != 21 {
		t.Errorf("alone %s, beside others %s", alone, tests.Tally())
	}
	if got, want := tests.Tally(), "21 comparisons: 0 better, 0 worse, 21 not significant."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (tables.Tests[string]{{Of: "yacht", Difference: tests[0].Difference, Verdict: report.Better}}).Sentence(); got != "yacht -0.200 [-0.343, -0.057], lower" {
		t.Errorf("got %q", got)
	}
}

// Splits of unequal size are corrected by their mean ratio, whatever their order, and without the rows that are held out. There
// is no test of differences that are all equal but for rounding.
func TestAgainstOfUnequalSplits(t *testing.T) {
	set := &datasets.Regression{Name: "mine", N: 12, D: 1, X: make([]float64, 12), Y: make([]float64, 12)}
	for i := range set.N {
		set.X[i], set.Y[i] = float64(i), float64(i*i)
	}
	rows := func(from, to int) (all []int) {
		for i := from; i < to; i++ {
			all = append(all, i)
		}
		return all
	}
	parts := []datasets.Split{{Train: rows(0, 4), Test: rows(4, 6)}, {Train: rows(0, 6), Test: rows(6, 12)}, {Train: rows(0, 8), Test: rows(8, 12)}}
	table := func(heldOut float64, ours ...float64) string {
		var list []experiment.Result
		for k, layers := range []dul.Density{{InitStd: 0.1}, {InitStd: 0.2}} {
			own := task()
			own.Data = experiment.Table{Set: set, Parts: parts, HeldOut: heldOut}
			method := experiment.Method{Name: fmt.Sprint(k), Layers: layers}
			for i, e := range must.Get(own.Experiments(experiment.Adam(1, 4, 0.1), 1, method))(t) {
				nll := float64(len(parts[i].Test))
				if k == 1 {
					nll += ours[len(parts[i].Test)/2-1]
				}
				list = append(list, experiment.Result{ID: e.ID(), Group: e.Group(), Split: e.Split, Metrics: map[string]float64{"nll": nll}}.Of(e))
			}
		}
		return must.Get(tables.Against(list, "0", "nll"))(t).Rows[1].Cells[1].Text
	}
	before := table(0, 0.5, 0.4, 0.9)
	if want := "+0.600 [-0.538, +1.738], n=3"; before != want { // 0.26458 sqrt(1/3 + 2/3) times 4.3027
		t.Errorf("got %s, want %s", before, want)
	}
	if got := table(0.5, 0.5, 0.4, 0.9); got == before {
		t.Error("held-out rows count as trained on")
	}
	slices.Reverse(parts)
	if after := table(0, 0.5, 0.4, 0.9); after != before {
		t.Errorf("%s, and in another order %s", before, after)
	}
	if got := table(0, 0.1, 0.3-0.2, 0.1); got != "no test" {
		t.Errorf("of equal differences: %s", got)
	}
}

// Methods are columns, and their runs are compared with those of the reference that have the same split and seed. The numbers
// are those of SciPy's ttest_rel, and with splits that overlap those of the corrected test.
func TestAgainst(t *testing.T) {
	a, b := density(dul.Density{InitStd: 0.1}), experiment.Method{Name: "other", Layers: dul.Density{InitStd: 0.2}}
	ours, theirs := made(t, a, 1, 2, 3), made(t, b, 1.5, 2.4, 3.9)
	text := func(table report.Table, err error) string {
		t.Helper()
		must.Do(t, err)
		var b strings.Builder
		fmt.Fprintln(&b, strings.Join(table.Columns, "|"))
		for _, row := range table.Rows {
			fmt.Fprint(&b, row.Name)
			for _, c := range row.Cells {
				fmt.Fprint(&b, "|", c.Text)
			}
			fmt.Fprintln(&b)
		}
		figtest.Renders(t, table)
		return b.String()
	}
	// The standard error of the differences 0.5, 0.4 and 0.9 is 0.26458 sqrt(1/3 + 1/8): a test example for 8 to train on.
	splits := "Metric|other|density\nnll|2.600 ± 1.212|2.000 ± 1.000\nnll − density|+0.600 [-0.171, +1.371], n=3|\nruns|3|3\n"
	if got := text(tables.Against(slices.Concat(theirs, ours), "density", "nll")); got != splits {
		t.Errorf("got\n%s\nwant\n%s", got, splits)
	}
	keyed := slices.Clone(ours)
	for i, r := range ours {
		e := *r.Experiment
		e.Method.Key = "d"
		keyed[i] = r.Of(e)
	}
	if got := text(tables.Against(slices.Concat(theirs, keyed), "d", "nll")); got != splits {
		t.Errorf("by its key: got\n%s", got)
	}
	// One experiment under two names has two columns, and a result that is there twice counts once.
	again := slices.Clone(ours)
	for i, r := range ours {
		e := *r.Experiment
		e.Method.Name = "again"
		again[i] = r.Of(e)
	}
	if got := text(tables.Against(slices.Concat(ours, again, ours), "density", "nll")); !strings.Contains(got, "|2.000 ± 1.000|2.000 ± 1.000\nnll − density||+0.000 [+0.000, +0.000]") {
		t.Errorf("twice: got\n%s", got)
	}
	if got := text(tables.Against(ours, "density", "nll")); got != "Metric|density\nnll|2.000 ± 1.000\nruns|3\n" {
		t.Errorf("of one method: got\n%s", got)
	}
	at := func(r experiment.Result, split int, seed uint64, nll float64) experiment.Result {
		e := *r.Experiment
		e.Split, e.Seed, r.Split, r.Seed = split, seed, split, seed
		r.ID, r.Metrics = e.ID(), map[string]float64{"nll": nll}
		return r.Of(e)
	}
	// Further seeds of a split, as far from each other, move nothing; the order of results does not matter.
	seeded := func(list []experiment.Result, by float64) (all []experiment.Result) {
		for _, r := range slices.Backward(list) {
			for seed, more := range []float64{by, 0, -by} {
				all = append(all, at(r, r.Split, uint64(seed), r.Metrics["nll"]+more))
			}
		}
		return all
	}
	many, others := seeded(theirs, 0.3), seeded(ours, 0.1)
	if got := text(tables.Against(slices.Concat(many, others), "density", "nll")); !strings.Contains(got, "|+0.600 [-0.171, +1.371], n=3|\nruns|9|9") {
		t.Errorf("with seeds: got\n%s", got)
	}
	lost := slices.Clone(theirs)
	lost[1].Diverged, lost[1].Metrics = true, nil
	if got := text(tables.Against(slices.Concat(lost, ours), "density", "nll")); !strings.Contains(got, "(1 of 3 diverged)|2.000 ± 1.000\nnll − density|no test|") {
		t.Errorf("diverged: got\n%s", got)
	}
	for what, list := range map[string][]experiment.Result{"other splits": slices.Concat(theirs[:2], ours[1:]), "other seeds": slices.Concat(many[1:], others[:8])} {
		if got := text(tables.Against(list, "density", "nll")); !strings.Contains(got, "nll − density|no test|") {
			t.Errorf("%s: got\n%s", what, got)
		}
	}
	some := slices.Clone(ours)
	some[1].Metrics = map[string]float64{"own": 7}
	if got := text(tables.Against(slices.Concat(theirs, some), "density", "nll", "own")); !strings.Contains(got, "|2.000 ± 1.414 (n=2 of 3)\nnll − density|no test|\nown|not measured|7.000 (n=1 of 3)\n") {
		t.Errorf("not measured: got\n%s", got)
	}
	// On one split the seeds are pairs, whose test needs no correction.
	for i := range ours {
		ours[i], theirs[i] = at(ours[i], 0, uint64(i), ours[i].Metrics["nll"]), at(theirs[i], 0, uint64(i), theirs[i].Metrics["nll"])
	}
	if got := text(tables.Against(slices.Concat(theirs, ours), "density", "nll")); !strings.Contains(got, "|+0.600 [-0.057, +1.257], n=3|") {
		t.Errorf("on one split: got\n%s", got)
	}
	theirs[2].Metrics["nll"] = 3.5 // 0.5, 0.4, 0.5
	if got := text(tables.Against(slices.Concat(theirs, ours), "density", "nll")); !strings.Contains(got, "|+0.467 [+0.323, +0.610], n=3 *|") {
		t.Errorf("significant: got\n%s", got)
	}
	twice := made(t, experiment.Method{Name: "density", Layers: dul.Density{InitStd: 0.3}}, 1)
	elsewhere := made(t, b, 1, 2)
	for i, r := range elsewhere {
		e := *r.Experiment
		e.Task.Data = experiment.Table{Set: &datasets.Regression{Name: "x", N: 4, D: 1, X: []float64{1, 2, 3, 4}, Y: []float64{1, 2, 3, 5}}}
		elsewhere[i] = r.Of(e)
	}
	for want, list := range map[string][]experiment.Result{
		`no result is of the method "density"; there are other`: theirs, "two experiments on mine are called": slices.Concat(ours, twice),
		"other and density on mine have other data": slices.Concat(ours, elsewhere),
	} {
		must.GetErr(tables.Against(list, "density", "nll"))(t, want)
	}
	for want, metrics := range map[string][]string{`no result has a metric "accuracy"; they have nll`: {"accuracy"}, "no metric was named; the results have nll": nil} {
		must.GetErr(tables.Against(ours, "density", metrics...))(t, want)
	}
}

// The curves have a panel for each part that some network has, and a line for each experiment.
func TestLearningCurves(t *testing.T) {
	folder := t.TempDir()
	density := *made(t, experiment.Method{Name: "density", Layers: dul.Density{InitStd: 0.1}}, 1)[0].Experiment
	plain := *made(t, experiment.Method{Name: "plain", Layers: baselines.Deterministic{}}, 1)[0].Experiment
	must.GetErr(tables.LearningCurves(folder, density, plain))(t, report.ErrNotRun)
	write := func(e experiment.Experiment, rows string) {
		must.Do(t, os.WriteFile(filepath.Join(folder, e.ID()+".csv"), []byte(rows), 0o600))
	}
	write(plain, "0,1,false,3,3,0,0,0\n0,2,false,2,2,0,0,0\n0,3,false,NaN,NaN,0,0,0\n")
	if f := must.Get(tables.LearningCurves(folder, density, plain))(t); len(f.Panels[0]) != 1 || f.Panels[0][0].X.Max != 2 {
		t.Errorf("of a plain network there are %d panels, to epoch %g", len(f.Panels[0]), f.Panels[0][0].X.Max)
	}
	write(density, "0,1,true,1,5,7,-3,0\n")
	if f := must.Get(tables.LearningCurves(folder, density, plain))(t); len(f.Panels[0]) != 3 {
		t.Errorf("of density layers there are %d panels", len(f.Panels[0]))
	} else {
		must.Get(f.Bytes(report.SVG))(t)
	}
	write(plain, "0,one")
	must.GetErr(tables.LearningCurves(folder, density, plain))(t, "line 1")
}
