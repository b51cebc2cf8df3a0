package cifar

import (
	"math"
	"slices"
	"testing"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// In the stored runs, and in the epochs of a run that was looked at, noise is at most its bound, and close to it while it is
// small: only the likelihood holds it down.
func TestNoiseBound(t *testing.T) {
	x := must.Get(tables.Committed())(t)
	for _, e := range slices.Concat(seeded(Chosen(Processor), 2).Of(ten, methods.Density, methods.DensityConstant, methods.DensityDiagonal),
		seeded(Chosen(onProcessor.withDecay(false)), 1).Of(ten, methods.Density), seeded(Chosen(Processor), 1).Of(hundred, methods.Density, methods.DensityConstant)) {
		r, has := x.Find(e)
		if !has {
			continue
		}
		bound := must.Get(noiseBound(e))(t)
		if part := r.Metrics[metricPosteriorStd] / bound[len(bound)-1]; !(part < 1.0001 && part > 0.98) {
			t.Errorf("%v: the noise %g is %g of its bound", e, r.Metrics[metricPosteriorStd], part)
		}
	}
	e := seeded(Paper, 1).Of(Images{Name: CIFAR10, TrainN: 44928, HeldOut: 5072}, methods.Density)[0]
	e.Recipe.Epochs = 12
	for i, g := range e.Recipe.Groups {
		if slices.Contains(g.Roles, params.Variational) {
			e.Recipe.Groups[i].Rate, e.Recipe.Groups[i].Optimizer = 200./12, train.SGD{Momentum: 0.9, Decay: 1e-4}
		}
	}
	bound := must.Get(noiseBound(e))(t)
	for i, measured := range []float64{0.02100, 0.10996, 0.23361, 0.33268} {
		if part := measured / bound[i]; !(part < 1 && part > []float64{0.99, 0.94, 0.8, 0.7}[i]) {
			t.Errorf("after epoch %d the noise %g is %g of its bound", i+1, measured, part)
		}
	}
	must.GetErr(noiseBound(seeded(Paper, 1).Of(ten, methods.Rank1)[0]))(t) // Rank-1 BNN has a bound
}

// The levels whose effect is measured are at least the bounds of both networks and both data sets, by less than a tenth, or
// nothing is bounded and noise ends near the prior.
func TestBoundings(t *testing.T) {
	for _, b := range boundings {
		for _, wide := range []bool{false, true} {
			for _, d := range []Images{ten, hundred} {
				e := b.of(wide, d)
				stds := must.Get(noiseBound(e))(t)
				if last := stds[len(stds)-1]; len(stds) != 200 || b.std == 0 && last < 0.85 || b.std > 0 && !(last <= b.std && last > 0.9*b.std) {
					t.Errorf("%s, %v: the bound is %g after %d epochs", b.name, e, last, len(stds))
				}
			}
		}
	}
}

// Without noise all draws are one, noise of the network's own size is hardly seen, as in the stored run, and much noise is.
func TestNoise(t *testing.T) {
	own := must.Get(tables.Committed())(t)
	r, _ := own.Find(exportedExperiment(methods.Density))
	var list experiment.Experiments
	for _, std := range []float64{0, r.Metrics[metricPosteriorStd], 0.3} {
		e := noisy(std)
		d := e.Task.Data.(Images)
		d.TestN, d.Sets = 40, []string{TestSet, SVHNExcerpt}
		e.Task.Data, e.Recipe.Samples = d, 2
		list = append(list, e)
	}
	found := must.Get(experiment.Run(t.Context(), list...))(t)
	for i, want := range [][2]float64{{0, 1e-9}, {1e-6, 1e-3}, {0.05, 3}} {
		if got := found[i].Metrics[MetricMutualInformation]; !(math.Abs(got) <= want[1] && got >= want[0]-1e-9) {
			t.Errorf("%v: the mutual information is %g", list[i], got)
		}
	}
	must.Near(t, found[1].Metrics["nll"], found[0].Metrics["nll"], 0.01, "the NLL with its own noise")
	if m := found[1].Metrics; !(m["accuracy"] >= 0.7) || m["ood_svhn-first1083_auroc"] == 0 {
		t.Errorf("with its own noise: %v", m)
	}
}
