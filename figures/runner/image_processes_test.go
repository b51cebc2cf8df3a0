package runner

import (
	"context"
	"math"
	"strings"
	"testing"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/tables"
)

// SNGP and DUE go from images to metrics; DUE says before how much memory it takes.
func TestProcessesOnImages(t *testing.T) {
	for method, want := range map[string]string{experiment.SNGP: "", experiment.DUE: "inducing points for 10 classes"} {
		r, _ := withMadeUpImages(t)
		var notes []string
		r.Notes = func(text string) { notes = append(notes, text) }
		e := tinyImages(method)
		e.Epochs, e.Samples = 1, 1
		if method == experiment.DUE {
			e.Options["inducing_points"] = "4"
		}
		found, err := r.Run(context.Background(), []experiment.Experiment{e}, ignore)
		if err != nil {
			t.Fatal(err)
		}
		if nll := found[0].Metrics["nll"]; found[0].Diverged || !(nll > 0) || math.IsInf(nll, 1) || found[0].Metrics[tables.MetricParameters] < 170000 {
			t.Errorf("%s: %+v", method, found[0])
		}
		if said := strings.Join(notes, " "); !strings.Contains(said, want) || (method == experiment.DUE) != strings.Contains(said, "MB of memory") {
			t.Errorf("%s: notes %q", method, said)
		}
	}
}

// The learning rate of the two falls in steps, and is not the network's.
func TestProcessRecipe(t *testing.T) {
	for method, rate := range map[string]float64{experiment.SNGP: 0.05, experiment.DUE: 0.1} {
		e := imageExperiment(method, experiment.Paper)
		e.Network = experiment.WRN28x10
		recipe := imageRecipe(t, e)
		schedule := recipe.classification(e).Schedule
		if recipe.BatchSize != 128 || recipe.WeightDecay != 5e-4 || schedule(0, 200) != rate || math.Abs(schedule(60, 200)-rate/5) > 1e-15 {
			t.Errorf("%s: %+v, rate %v, then %v", method, recipe, schedule(0, 200), schedule(60, 200))
		}
	}
}
