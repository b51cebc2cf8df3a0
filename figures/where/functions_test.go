package where

import (
	"math"
	"slices"
	"testing"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/toy"
)

// An anchor that is drawn again is replaced by its nearest input that is not in the group.
func TestNeighbours(t *testing.T) {
	const n = 40
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i * i)
	}
	groups, dyads := neighbours(nets.Rows(x, 1), 3), metrics.Dyads(n, dyadSize, dyadCount, 3)
	for k, group := range groups {
		for place, i := range group {
			if slices.Contains(group[:place], i) {
				t.Fatalf("group %v of the anchors %v has an input twice", group, dyads[k])
			}
			anchor := x[dyads[k][place]]
			for j := range x {
				if !slices.Contains(group[:place], j) && math.Abs(x[j]-anchor) < math.Abs(x[i]-anchor) {
					t.Fatalf("group %v of the anchors %v has %d in place %d, and %d is nearer", group, dyads[k], i, place, j)
				}
			}
		}
	}
}

// With two functions, one of them right and the other far off, joint predictions lose log 2 for a group, and independent
// draws lose it for each target.
func TestJointMetrics(t *testing.T) {
	for _, p := range jointProblems() {
		e := p.Of(p.data, methods.Density)[0]
		data := must.Get(e.Task.Data.Load(t.Context(), 0))(t)
		set := experiment.Prediction{Set: data.Sets[0].Name, Targets: data.Sets[0].Targets}
		right, noise := set.Targets, 1.0
		if right == nil {
			noise = toy.CubicNoise / data.Unit
			for _, x := range toy.Grid() {
				right = append(right, (x*x*x-data.Zero)/data.Unit)
			}
		}
		wrong := slices.Clone(right)
		for i := range wrong {
			wrong[i] += 100 * noise
		}
		std := slices.Repeat([]float64{noise}, len(right))
		set.Prediction = predict.Prediction{Mixture: predict.Mixture{Mean: [][]float64{right, wrong}, NoiseStd: [][]float64{std, std}}, Width: 1}
		found := must.Get(experiment.Measure(e, &experiment.Predictions{Sets: []experiment.Prediction{set}, Unit: data.Unit, Zero: data.Zero}))(t)
		joint, marginal := found[p.prefix+metricJoint], found[p.prefix+metricMarginal]
		if want := -math.Ln2 * (1 - 1./dyadSize); math.Abs(joint-marginal-want) > 1e-9 {
			t.Errorf("%s: the joint value minus the marginal one is %v, want %v", p.Title, joint-marginal, want)
		}
		// Targets are at the function itself, or on the cubic with its noise around it.
		want, bound := 0.5*math.Log(2*math.Pi)+math.Log(noise*data.Unit)+math.Ln2, 1e-9
		if set.Targets == nil {
			const targets = dyadSize * dyadCount
			want, bound = want+0.5, 4*math.Sqrt(0.5/targets)
		}
		if math.Abs(marginal-want) > bound {
			t.Errorf("%s: the marginal value is %v, want %v within %v", p.Title, marginal, want, bound)
		}
	}
}

// A row is compared if all splits were run, and its difference is tested; what was not run is listed.
func TestFunctionTable(t *testing.T) {
	var list []experiment.Result
	for _, p := range jointProblems() {
		for i, e := range p.Of(p.data, methods.Density) {
			if p.prefix == "" && p.Title != "Wine Quality Red" {
				joint := 1 + float64(i)/1000
				list = append(list, experiment.Result{ID: e.ID(), Metrics: map[string]float64{
					metricJoint: joint, metricMarginal: 2, gapPrefix + metricJoint: 2 + float64(i%2)/1000, gapPrefix + metricMarginal: 2,
				}})
			}
		}
	}
	table := must.Get(functionTable(tables.Of(list)))(t)
	for row, want := range map[string]string{"Cubic": report.Better, "Cubic, in the gap": report.Worse, "Yacht Hydrodynamics": report.Better} {
		i := slices.IndexFunc(table.Rows, func(r report.Row) bool { return r.Group == groupGain && r.Name == row })
		if got := table.Rows[i].Cells[0].Verdict; got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
	if got := figtest.Cell(t, table, groupJoint+", Yacht Hydrodynamics", methods.Density.Name); got != "*1.009 ± 0.006*" {
		t.Errorf("the cell of density is %q", got)
	}
	if !slices.Contains(table.NotRun, groupJoint+", Wine Quality Red") || !slices.Contains(table.NotRun, methods.Rank1.Name) || len(table.Columns) != 2 {
		t.Errorf("not run: %q, columns %q", table.NotRun, table.Columns)
	}
}

// Six methods run on the cubic's data sets and on 20 splits of six sets, and every experiment can be carried out.
func TestFunctionRuns(t *testing.T) {
	list := exhibit(t, "where-functions").Runs()
	if want := 6 * 7 * 20; len(list) != want {
		t.Errorf("%d experiments, want %d", len(list), want)
	}
	for _, e := range list {
		must.Do(t, e.Check())
	}
}
