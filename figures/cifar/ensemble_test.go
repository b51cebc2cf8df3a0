package cifar

import (
	"context"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// SNGP and DUE go from images to metrics; DUE says before how much memory it takes.
func TestProcesses(t *testing.T) {
	for _, c := range []struct {
		method         methods.Method
		inducing       int
		memory         bool
		dempsterShafer bool
	}{{methods.SNGP, 0, false, true}, {methods.DUE, 4, true, false}} {
		t.Run(c.method.Name, func(t *testing.T) {
			r, _ := withMadeUpImages(t)
			var notes []string
			r.Notes = func(text string) { notes = append(notes, text) }
			found := outcome(t, r, tiny(c.method, oneEpoch, func(p *Protocol) { p.Inducing = c.inducing }))
			if nll := found.Metrics["nll"]; found.Diverged || !(nll > 0) || math.IsInf(nll, 1) || found.Metrics[results.MetricParameters] < 170000 {
				t.Errorf("%+v", found)
			}
			if auroc, has := found.Metrics["ood_cifar100_auroc_dempstershafer"]; has != c.dempsterShafer || auroc < 0 || auroc > 1 {
				t.Errorf("detection by the Dempster-Shafer score: %v, %v", has, auroc)
			}
			said := strings.Join(notes, " ")
			if strings.Contains(said, "MB of memory") != c.memory || strings.Contains(said, "4 inducing points for 10 classes") != c.memory {
				t.Errorf("notes %q", said)
			}
		})
	}
}

// The length scale that is asked for is that of the network that is trained.
func TestLengthScale(t *testing.T) {
	r, _ := withMadeUpImages(t)
	var nll []float64
	for _, scale := range []float64{0, 1, 20} {
		e := tiny(methods.SNGP, oneEpoch, func(p *Protocol) { p.LengthScale = scale })
		nll = append(nll, outcome(t, r, e).Metrics["nll"])
	}
	if nll[0] != nll[1] || nll[0] == nll[2] {
		t.Errorf("negative log likelihoods %v for no length scale of one's own, for 1, which is the same, and for 20", nll)
	}
}

// An ensemble is the mixture of members of which the first is the single network of the same seed, costs as much as
// all of them, and goes on after a stop with the member that it was at. The single network has a temperature of its own.
func TestEnsemble(t *testing.T) {
	run := func(ctx context.Context, r *Runner, e results.Experiment, report func(float64, string)) (results.Result, *predictions.Predictions, error) {
		found, err := r.Run(ctx, []results.Experiment{e}, report)
		if err != nil {
			return results.Result{}, nil, err
		}
		p := must.Get(predictions.Read(filepath.Join(r.Predictions, predictions.FileName(e.ID()))))(t)
		return found[0], p, nil
	}
	runnerIn := func(folder string) *Runner {
		r, _ := withMadeUpImages(t)
		r.Work, r.Predictions = filepath.Join(folder, "work"), filepath.Join(folder, "predictions")
		return r
	}
	single, ensemble := tiny(methods.Deterministic, oneEpoch), tiny(methods.Ensemble, oneEpoch)
	one, alone := must.Get2(run(context.Background(), runnerIn(t.TempDir()), single, ignore))(t)
	if len(alone.HeldOutLabels) != 6 || len(alone.HeldOutProbs) != 60 || alone.Samples != 1 {
		t.Errorf("predictions of %d held-out images, %d samples", len(alone.HeldOutLabels), alone.Samples)
	}

	folder := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, _, err := run(ctx, runnerIn(folder), ensemble, func(_ float64, note string) {
		if strings.HasPrefix(note, "member 3 of 5, training") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "member 3 of 5 of the ensemble") {
		t.Fatalf("the stopped run: %v", err)
	}
	var last float64
	var notes strings.Builder
	five, mixture := must.Get2(run(context.Background(), runnerIn(folder), ensemble, forward(t, &last, &notes)))(t)
	again := notes.String()
	if last < 0.999 || last > 1.001 || strings.Contains(again, "member 2 of 5, training") || !strings.Contains(again, "member 5 of 5, training") {
		t.Errorf("progress ended at %v, after\n%s", last, again)
	}
	whole, _ := must.Get2(run(context.Background(), runnerIn(t.TempDir()), ensemble, ignore))(t)
	if got, want := withoutSpeed(five), withoutSpeed(whole); !maps.Equal(got, want) {
		t.Errorf("stopped and continued: %v, in one go %v", got, want)
	}
	for _, metric := range []string{results.MetricParameters, results.MetricTrainingGFLOP} {
		if ratio := five.Metrics[metric] / one.Metrics[metric]; math.Abs(ratio-5) > 1e-9 {
			t.Errorf("%s of an ensemble is %v times that of one network", metric, ratio)
		}
	}
	// The first member is a fifth of the mixture.
	for i, p := range mixture.Probs {
		if p < alone.Probs[i]/5-1e-6 {
			t.Fatalf("probability %d is %v, a fifth of the first member's is %v", i, p, alone.Probs[i]/5)
		}
	}
	if slices.Max(mixture.MutualInformation) < 1e-4 || slices.Max(alone.MutualInformation) > 1e-9 || mixture.Samples != 5 {
		t.Errorf("mutual information of members %v, of one network %v; %d samples", mixture.MutualInformation, alone.MutualInformation, mixture.Samples)
	}
}

// What DUE needs is known before anything is computed, also where it is too much.
func TestMemory(t *testing.T) {
	memoryHere := memory
	t.Cleanup(func() { memory = memoryHere })
	if here := memory(); here < 1<<28 || here > 1<<50 {
		t.Errorf("this computer has %d bytes", here)
	}
	memory = func() int { return 8 << 30 }
	p := Paper(CIFAR100, WRN28x10)
	for _, c := range []struct {
		name   string
		points int
		want   string
	}{{"as many as classes", 0, "up to 1252 MB"}, {"few", 20, "up to 252 MB"}, {"too many", 1000, "This computer has 8590 MB, for which at most "}} {
		t.Run(c.name, func(t *testing.T) {
			p := p
			p.Inducing = c.points
			says, err := p.Memory(methods.DUE)
			if err != nil || !strings.Contains(says, c.want) || strings.Contains(says, "This computer") != (c.points == 1000) {
				t.Errorf("%s, %v; want %s", says, err, c.want)
			}
			if _, most, found := strings.Cut(says, "at most "); found {
				number, _, _ := strings.Cut(most, " ")
				if says, err := with(t, p, map[string]string{optionInducing: number}).Memory(methods.DUE); err != nil || strings.Contains(says, "This computer") {
					t.Errorf("with as many as fit: %s, %v", says, err)
				}
			}
		})
	}
	if says, err := p.Memory(methods.SNGP); says != "" || err != nil {
		t.Errorf("of a method without inducing points: %q, %v", says, err)
	}
	p.Inducing = 1001
	fails(t, "more than images", errorOf(p.Memory(methods.DUE)), "1001 are too many", "MB of memory")
	r, _ := withMadeUpImages(t)
	e := tiny(methods.DUE, func(p *Protocol) { p.Inducing = 17 }) // of 16 images
	fails(t, "a run with more than images", errorOf(r.Run(context.Background(), []results.Experiment{e}, ignore)), "too many")
}
