package cifar

import (
	"slices"
	"testing"
	"time"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// A run of all image tables that is stopped leaves seed 0 of CIFAR-10 first, and has everything in the end.
func TestPaperImages(t *testing.T) {
	all := paperImages()
	for i, e := range all[:10] {
		if e.Seed != 0 || e.Task.Name != CIFAR10 || width(e) != 16 {
			t.Errorf("number %d is %s", i, e)
		}
	}
	added := func(e experiment.Experiment) bool {
		return slices.ContainsFunc(addedMethods, e.Method.Equal) && (width(e) == 16 || slices.ContainsFunc(singleNetworks, e.Method.Equal))
	}
	for _, name := range []string{"cifar10-resnet14", "cifar100-resnet14", "cifar10-wrn", "cifar100-wrn", "rank1-ablation", "ood-svhn"} {
		papers := slices.DeleteFunc(named(t, name).Runs(), added)
		if n := len(tables.Union(all, papers)); len(papers) == 0 || n != len(all) {
			t.Errorf("%d of %d experiments of %s are missing", n-len(all), len(papers), name)
		}
	}
	if len(all) != 120 {
		t.Errorf("%d experiments", len(all))
	}
}

// 200 epochs are ten million images, of 6 microseconds each, and of 240 in the wide network with noise.
func TestRoofline(t *testing.T) {
	plain, wide := seeded(Paper, 1).Of(ten, methods.Deterministic), seeded(Wide, 2).Of(hundred, methods.Density)
	if got := Roofline(slices.Concat(plain, wide)); got != time.Minute+80*time.Minute {
		t.Errorf("%s, want 81 minutes", got)
	}
	if got := Roofline(experiment.Experiments{}); got != 0 {
		t.Errorf("nothing takes %s", got)
	}
}
