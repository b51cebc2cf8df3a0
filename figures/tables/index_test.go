package tables_test

import (
	"errors"
	"math"
	"testing"

	"densityuncertainty/dul"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// The error of predicting the mean is how far the one test target is from it, which standardised targets say. A run counts
// as diverged if its error is more than three times that, or a metric is not finite. Its result stays as it is.
func TestRunsThatBlewUp(t *testing.T) {
	data := task().Data.(experiment.Table)
	for split := range data.Splits() {
		d := must.Get(data.Load(t.Context(), split))(t)
		must.Near(t, data.MeanError(split), math.Abs(d.Sets[0].Targets[0])*d.Unit, 1e-6, "split %d: the error of the mean", split)
	}
	unit := data.MeanError(0)
	for _, c := range []struct {
		name      string
		rmse, own float64
		diverged  bool
	}{
		{"poor", 2.99 * unit, 0, false}, {"blew up", 3.01 * unit, 0, true}, {"a metric is not finite", 0, math.NaN(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := made(t, density(dul.Density{}), 1)[0]
			r.Metrics["rmse"], r.Metrics["own"] = c.rmse, c.own
			x := tables.Of([]experiment.Result{r})
			found, _ := x.Find(*r.Experiment)
			if found.Diverged != c.diverged || len(found.Metrics) == 0 != c.diverged {
				t.Errorf("found %+v, want diverged %t", found, c.diverged)
			}
			if asked := x.Asked(); len(asked) != 1 || asked[0].ID != r.ID || r.Diverged || r.Metrics["rmse"] != c.rmse {
				t.Errorf("asked %+v; the result is now %+v", asked, r)
			}
			table := must.Get(tables.Against([]experiment.Result{r}, "density", "nll"))(t)
			if got, want := table.Rows[0].Cells[0].Text, map[bool]string{false: "1.000", true: "1 of 1 diverged"}[c.diverged]; got != want {
				t.Errorf("its cell is %q, want %q", got, want)
			}
		})
	}
}

// Where runs of one side alone diverged, the verdict is against it, whatever the numbers of its other runs.
func TestVerdictsOnDivergence(t *testing.T) {
	reference, other := experiment.Method{Name: "reference", Layers: dul.Density{}}, density(dul.Density{InitStd: 0.5})
	lose := func(list []experiment.Result) []experiment.Result {
		list[1].Diverged, list[1].Metrics = true, nil
		return list
	}
	best, worst := []float64{1, 1.1, 1.2}, []float64{9, 9.2, 9.3}
	for _, c := range []struct {
		name           string
		its, reference []experiment.Result
		verdict        string
	}{
		{"it diverged", lose(made(t, other, best...)), made(t, reference, worst...), report.Worse},
		{"the reference diverged", made(t, other, worst...), lose(made(t, reference, best...)), report.Better},
		{"both diverged", lose(made(t, other, worst...))[:2], lose(made(t, reference, best...))[:2], ""},
		{"it was not run on all splits", lose(made(t, other, worst...))[:2], made(t, reference, best...), ""},
		{"neither diverged", made(t, other, worst...), made(t, reference, best...), report.Worse},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := map[string]experiment.Experiments{}
			for _, m := range []experiment.Method{reference, other} {
				for _, r := range made(t, m, 0, 0, 0) {
					all[m.Name] = append(all[m.Name], *r.Experiment)
				}
			}
			var family tables.Family[string]
			test := tables.Number{Name: "nll"}.Over(all[other.Name]).Against(all[reference.Name])
			family.AddTested("mine", tables.Of(append(c.its, c.reference...)), test)
			got := append(family.Tests(), tables.Test[string]{})[0]
			if got.Verdict != c.verdict || (got.Difference != nil) != (c.name == "neither diverged") {
				t.Errorf("got %+v, want %q", got, c.verdict)
			}
		})
	}
}

// What was computed is kept with the index and those made of it, by its key; an error is not.
func TestCached(t *testing.T) {
	type key struct{ id string }
	x, calls := tables.Of(nil), 0
	compute := func() (int, error) {
		if calls++; calls == 1 {
			return 0, errors.New("not yet")
		}
		return calls, nil
	}
	must.GetErr(tables.Cached(x, key{"a"}, compute))(t)
	for _, of := range []*tables.Index{x, x.Fresh(), x.With(experiment.Result{ID: "other"})} {
		if got := must.Get(tables.Cached(of, key{"a"}, compute))(t); got != 2 {
			t.Errorf("call %d, want that of 2", got)
		}
	}
	if got := must.Get(tables.Cached(x, key{"b"}, compute))(t); got != 3 {
		t.Errorf("another key has call %d, want 3", got)
	}
}
