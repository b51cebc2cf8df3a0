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
	for _, e := range slices.Concat(list(Chosen(Processor), ten, 2, methods.Density, methods.DensityConstant, methods.DensityDiagonal),
		list(Chosen(onProcessor.withDecay(false)), ten, 1, methods.Density), list(Chosen(Processor), hundred, 1, methods.Density, methods.DensityConstant)) {
		r, has := x.Find(e)
		if !has {
			continue
		}
		bound := must.Get(NoiseBound(e))(t)
		if part := r.Metrics[metricPosteriorStd] / bound[len(bound)-1]; !(part < 1.0001 && part > 0.98) {
			t.Errorf("%v: the noise %g is %g of its bound", e, r.Metrics[metricPosteriorStd], part)
		}
	}
	e := list(Paper, Images{Name: CIFAR10, TrainN: 44928, HeldOut: 5072}, 1, methods.Density)[0]
	e.Recipe.Epochs = 12
	for i, g := range e.Recipe.Groups {
		if slices.Contains(g.Roles, params.Variational) {
			e.Recipe.Groups[i].Rate, e.Recipe.Groups[i].Optimizer = 200./12, train.SGD{Momentum: 0.9, Decay: 1e-4}
		}
	}
	bound := must.Get(NoiseBound(e))(t)
	for i, measured := range []float64{0.02100, 0.10996, 0.23361, 0.33268} {
		if part := measured / bound[i]; !(part < 1 && part > []float64{0.99, 0.94, 0.8, 0.7}[i]) {
			t.Errorf("after epoch %d the noise %g is %g of its bound", i+1, measured, part)
		}
	}
	if _, err := NoiseBound(list(Paper, ten, 1, methods.Rank1)[0]); err == nil {
		t.Error("Rank-1 BNN has a bound")
	}
}

// The levels whose effect is measured are at least the bounds of both networks and both data sets, by less than a tenth, or
// nothing is bounded and noise ends near the prior.
func TestBoundings(t *testing.T) {
	for _, b := range boundings {
		for _, wide := range []bool{false, true} {
			for _, d := range []Images{ten, hundred} {
				e := b.of(wide, d)
				stds := must.Get(NoiseBound(e))(t)
				if last := stds[len(stds)-1]; len(stds) != 200 || b.std == 0 && last < 0.85 || b.std > 0 && !(last <= b.std && last > 0.9*b.std) {
					t.Errorf("%s, %v: the bound is %g after %d epochs", b.name, e, last, len(stds))
				}
			}
		}
	}
}

// Without noise all draws are one, and noise of 0.3 is seen.
func TestNoise(t *testing.T) {
	small := func(std float64) experiment.Experiment {
		e := noisy(std)
		d := e.Task.Data.(Images)
		d.TestN, e.Task.Data, e.Recipe.Samples = 20, d, 2
		d.Sets = []string{TestSet, SVHNExcerpt}
		e.Task.Data = d
		return e
	}
	found := must.Get(experiment.Run(t.Context(), small(0), small(0.3)))(t)
	none, some := found[0].Metrics, found[1].Metrics
	if math.Abs(none[MetricMutualInformation]) > 1e-9 || some[MetricMutualInformation] < 0.001 || none["nll"] == some["nll"] {
		t.Errorf("without noise %v, with noise %v", none, some)
	}
	if _, has := none["ood_svhn-first1083_auroc"]; !has {
		t.Errorf("there is no detection in %v", none)
	}
}
