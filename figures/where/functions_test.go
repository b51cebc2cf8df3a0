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
	"densityuncertainty/figures/methods"
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
		found := must.Get(e.Measure(&experiment.Predictions{Sets: []experiment.Prediction{set}, Unit: data.Unit, Zero: data.Zero}))(t)
		joint, marginal := found[p.prefix+metricJoint], found[p.prefix+metricMarginal]
		must.Near(t, joint-marginal, -math.Ln2*(1-1./dyadSize), 1e-9, "%s: the joint value minus the marginal one", p.Title)
		// Targets are at the function itself, or on the cubic with its noise around it.
		want, bound := 0.5*math.Log(2*math.Pi)+math.Log(noise*data.Unit)+math.Ln2, 1e-9
		if set.Targets == nil {
			const targets = dyadSize * dyadCount
			want, bound = want+0.5, 4*math.Sqrt(0.5/targets)
		}
		must.Near(t, marginal, want, bound, "%s: the marginal value", p.Title)
	}
}
