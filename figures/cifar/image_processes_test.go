package runner

import (
	"context"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/predictions"
	"densityuncertainty/figures/results"
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
		if auroc, has := found[0].Metrics["ood_cifar100_auroc_dempstershafer"]; has != (method == experiment.SNGP) || auroc < 0 || auroc > 1 {
			t.Errorf("%s: detection by the Dempster-Shafer score: %v, %v", method, has, auroc)
		}
		if said := strings.Join(notes, " "); !strings.Contains(said, want) || (method == experiment.DUE) != strings.Contains(said, "MB of memory") {
			t.Errorf("%s: notes %q", method, said)
		}
	}
}

// An ensemble is the mixture of members of which the first is the single network
// of the same seed, costs as much as all of them, and goes on after a stop with
// the member that it was at. The single network has a temperature of its own.
func TestEnsembleOfImages(t *testing.T) {
	run := func(ctx context.Context, r *Runner, e experiment.Experiment, report func(float64, string)) (results.Result, *predictions.Predictions, error) {
		found, err := r.Run(ctx, []experiment.Experiment{e}, report)
		if err != nil {
			return results.Result{}, nil, err
		}
		p, err := predictions.Read(filepath.Join(r.Predictions, predictions.FileName(e.ID())))
		if err != nil {
			t.Fatal(err)
		}
		return found[0], p, nil
	}
	runnerIn := func(folder string) *Runner {
		r, _ := withMadeUpImages(t)
		r.Work, r.Predictions = filepath.Join(folder, "work"), filepath.Join(folder, "predictions")
		return r
	}
	single, ensemble := tinyImages(experiment.Deterministic), tinyImages(experiment.Ensemble)
	single.Epochs, ensemble.Epochs = 1, 1
	one, alone, err := run(context.Background(), runnerIn(t.TempDir()), single, ignore)
	if err != nil {
		t.Fatal(err)
	}
	if len(alone.HeldOutLabels) != 6 || len(alone.HeldOutProbs) != 60 || alone.Samples != 1 {
		t.Errorf("predictions of %d held-out images, %d samples", len(alone.HeldOutLabels), alone.Samples)
	}

	folder := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, _, err = run(ctx, runnerIn(folder), ensemble, func(_ float64, note string) {
		if strings.HasPrefix(note, "member 3 of 5, training") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "member 3 of 5 of the ensemble") {
		t.Fatalf("the stopped run: %v", err)
	}
	last, again := 0.0, ""
	five, mixture, err := run(context.Background(), runnerIn(folder), ensemble, func(done float64, note string) {
		if done < last {
			t.Errorf("progress went back from %v to %v", last, done)
		}
		last = done
		again += note + "\n"
	})
	if err != nil {
		t.Fatal(err)
	}
	if last < 0.999 || last > 1.001 || strings.Contains(again, "member 2 of 5, training") || !strings.Contains(again, "member 5 of 5, training") {
		t.Errorf("progress ended at %v, after\n%s", last, again)
	}
	whole, _, err := run(context.Background(), runnerIn(t.TempDir()), ensemble, ignore)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := withoutSpeed(five), withoutSpeed(whole); !maps.Equal(got, want) {
		t.Errorf("stopped and continued: %v, in one go %v", got, want)
	}
	for _, metric := range []string{tables.MetricParameters, tables.MetricTrainingGFLOP} {
		if ratio := five.Metrics[metric] / one.Metrics[metric]; math.Abs(ratio-5) > 1e-9 {
			t.Errorf("%s of an ensemble is %v times that of one network", metric, ratio)
		}
	}
	// The first member is a fifth of the mixture.
	for i, p := range mixture.Probs {
		if p < alone.Probs[i]/5-1e-3 {
			t.Fatalf("probability %d is %v, a fifth of the first member's is %v", i, p, alone.Probs[i]/5)
		}
	}
	if slices.Max(mixture.MutualInformation) < 1e-4 || slices.Max(alone.MutualInformation) > 1e-9 || mixture.Samples != 5 {
		t.Errorf("mutual information of members %v, of one network %v; %d samples", mixture.MutualInformation, alone.MutualInformation, mixture.Samples)
	}
}

// What DUE needs is known before anything is computed, also where it is too much.
func TestMemoryOfDUE(t *testing.T) {
	memoryHere := memory
	t.Cleanup(func() { memory = memoryHere })
	if here := memory(); here < 1<<28 || here > 1<<50 {
		t.Errorf("this computer has %d bytes", here)
	}
	memory = func() int { return 8 << 30 }
	e := experiment.Experiment{Study: experiment.Images, Method: experiment.DUE, Dataset: experiment.CIFAR100, Network: experiment.WRN28x10, Epochs: 1, Samples: 1,
		Fidelity: experiment.Paper, Scale: experiment.Small}
	for points, want := range map[string]string{"": "up to 1180 MB", "20": "up to 190 MB", "1000": "This computer has 8590 MB, for which at most "} {
		e.Options = map[string]string{}
		if points != "" {
			e.Options[optionInducing] = points
		}
		says, err := MemoryOfDUE(e)
		if err != nil || !strings.Contains(says, want) || strings.Contains(says, "This computer") != (points == "1000") {
			t.Errorf("%q inducing points: %s, %v; want %s", points, says, err, want)
		}
		if _, most, found := strings.Cut(says, "at most "); found {
			e.Options[optionInducing], _, _ = strings.Cut(most, " ")
			if says, err := MemoryOfDUE(e); err != nil || strings.Contains(says, "This computer") {
				t.Errorf("with as many as fit: %s, %v", says, err)
			}
		}
	}
	e.Options[optionInducing] = "1001"
	if _, err := MemoryOfDUE(e); err == nil || !strings.Contains(err.Error(), "1001 are too many") || !strings.Contains(err.Error(), "MB of memory") {
		t.Errorf("more than images: %v", err)
	}
	r, _ := withMadeUpImages(t)
	tiny := tinyImages(experiment.DUE)
	tiny.Options[optionInducing] = "17" // of 16 images
	if _, err := r.Run(context.Background(), []experiment.Experiment{tiny}, ignore); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("a run with more than images: %v", err)
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
		for network, want := range map[string]float64{experiment.WRN28x10: 0.3, experiment.ResNet14: 0} {
			e.Network = network
			if got, err := imageRecipe(t, e).network(e); err != nil || got.Dropout != want {
				t.Errorf("%s with %s: dropout %v, want %v (error %v)", method, network, got.Dropout, want, err)
			}
		}
	}
}
