package cifar

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/baselines"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
)

// Networks that are trained on the images that come with the program have the metrics that their methods allow, in the store
// too, and need no files.
func TestRunOnTheSample(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	images := Images{Name: CIFAR10, Sample: true, TrainN: 100, TestN: 20, HeldOut: 30}
	bounded := experiment.Method{Key: "bounded", Name: "Bounded", Layers: baselines.SpectralNormed{}}
	all := seeded(Processor, 1).Of(images, bounded, methods.Density, methods.SNGP).Change(func(e *experiment.Experiment) {
		if e.Recipe.Epochs, e.Recipe.Samples = 1, min(e.Recipe.Samples, 2); e.Recipe.PretrainEpochs > 1 {
			t.Errorf("%v pretrains for %d epochs", e, e.Recipe.PretrainEpochs)
		}
	})
	found := must.Get(experiment.Engine{Store: &experiment.Store{Folder: t.TempDir()}}.Run(t.Context(), all...))(t)
	for i, want := range [][]string{
		{"ood_cifar100_auroc_gaussian", "ood_svhn-first1083_auroc_classgaussian", "ood_cifar100_auroc_entropy"},
		{"posterior_std", "ood_cifar100_auroc_energy", "ood_cifar100_fpr95_energy", "ood_svhn-first1083_auprc_energy@stage_2_block_1/conv_2", "ood_cifar100_auroc_mutualinformation"},
		{"ood_cifar100_auroc_dempstershafer"},
	} {
		r := found[i]
		for _, name := range append(want, "accuracy", "nll", "brier", "ece10", "adaptive_ece15", "classwise_ece15", "aurc", "ood_cifar100_ap") {
			if _, has := r.Metrics[name]; !has {
				t.Errorf("%s has no metric %q", r.Method, name)
			}
		}
		for _, ending := range []string{"energy", "dempstershafer", "gaussian"} {
			measured := false
			for name := range r.Metrics {
				measured = measured || strings.Contains(name, ending)
			}
			if wanted := slices.ContainsFunc(want, func(name string) bool { return strings.Contains(name, ending) }); measured != wanted {
				t.Errorf("%s has metrics with %q: %t", r.Method, ending, measured)
			}
		}
		if again := must.Get(experiment.Measure(all[i], must.Get(r.Predictions())(t)))(t); again["nll"] != r.Metrics["nll"] || len(again) != len(r.Metrics) {
			t.Errorf("%s: the kept predictions have %d metrics and the NLL %v, and the result %d and %v", r.Method, len(again), again["nll"], len(r.Metrics), r.Metrics["nll"])
		}
	}
}
