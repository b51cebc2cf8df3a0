package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

func TestRescore(t *testing.T) {
	dir := t.TempDir()
	r := imageResult()
	r.Metrics = map[string]float64{"accuracy": 0.1, "parameters": 7, "ood_svhn_auroc_mutualinformation": 0.5}
	storeWith(t, dir, r)
	file := writePredictions(t, dir, 0, 1, 1)
	p := must.Get(predictions.Read(file))(t)
	scores := must.Get(predictions.Score(p))(t)
	for _, want := range []string{r.ID, "accuracy 0.666667, in the store 0.1; ", "nll 0.", "in the store none", "ood_svhn_auroc_mutualinformation none, in the store 0.5"} {
		fails(t, exitFailure, want, "rescore", "--store", dir)
	}
	out := filepath.Join(dir, "new")
	succeeds(t, "1 with other numbers", "rescore", "--store", dir, "--out", out)
	line := holds(t, out, 1)[0]
	if line.Version != r.Version || line.ScoredBy != environment.Version() {
		t.Errorf("version %q, scored by %q, want %q and this program's", line.Version, line.ScoredBy, r.Version)
	}
	metrics := line.Metrics
	if _, has := metrics["ood_svhn_auroc_mutualinformation"]; has {
		t.Error("a metric that is scored no more is kept")
	}
	if metrics["parameters"] != 7 {
		t.Errorf("what is not scored is %v", metrics["parameters"])
	}
	for name, score := range scores {
		if metrics[name] != score {
			t.Errorf("%s is %v, want %v", name, metrics[name], score)
		}
	}
	succeeds(t, "1 line scored", "rescore", "--store", out)
	fails(t, exitFailure, "already has a result", "rescore", "--store", dir, "--out", out)
	must.Do(t, os.WriteFile(file, []byte("damaged"), 0o600))
	fails(t, exitFailure, file, "rescore", "--store", dir)
}

// The committed lines have the numbers that the predictions beside them give.
func TestCommittedPredictions(t *testing.T) {
	succeeds(t, ", 0 with other numbers", "rescore")
}

// Numbers that differ by the rounding of the kept predictions are the same, others are not.
func TestRescoreRounds(t *testing.T) {
	for _, c := range []struct {
		name  string
		off   float64
		wrong bool
	}{{"rounded", 3e-6, false}, {"wrong", 3e-5, true}} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			p, err := predictions.Read(writePredictions(t, dir, 0, 1, 1))
			if err != nil {
				t.Fatal(err)
			}
			r := imageResult()
			if r.Metrics, err = predictions.Score(p); err != nil {
				t.Fatal(err)
			}
			r.Metrics["nll"] += c.off
			storeWith(t, dir, r)
			status, _, stderr := reproduce("rescore", "--store", dir)
			if (status != exitOK) != c.wrong || strings.Contains(stderr, "nll") != c.wrong {
				t.Errorf("status %d\n%s", status, stderr)
			}
		})
	}
}

// Predict makes up the predictions of a network whose file has the negative log likelihood as its content.
func (r fake) Predict(_ context.Context, e results.Experiment, networks string, _ func(float64, string)) (map[string]float64, error) {
	content, err := os.ReadFile(filepath.Join(networks, cifar.NetworkFile(e, 0, 1)))
	if err != nil {
		return nil, err
	}
	var nll float64
	if _, err := fmt.Sscan(string(content), &nll); err != nil {
		return nil, err
	}
	p := &predictions.Predictions{Experiment: e.ID(), Dataset: e.Dataset, Classes: 2, Samples: 1, Labels: []int{1}, Probs: []float64{1 - math.Exp(-nll), math.Exp(-nll)},
		Others: []predictions.Set{{Name: "later", MaxProbability: []float64{0.5}}}}
	return map[string]float64{results.MetricNLL: nll}, predictions.Write(filepath.Join(r.predictions, predictions.FileName(e.ID())), p)
}

// Networks that draw no samples predict again for a new store; the old one stays as it is.
func TestRescoreByNetworks(t *testing.T) {
	dir, networks := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	p := cifar.Paper(cifar.CIFAR10, cifar.ResNet14).Small()
	e := p.Experiments(methods.Deterministic)[0]
	line := madeUp(e)
	line.Metrics = map[string]float64{results.MetricNLL: 0.25, "parameters": 7}
	storeWith(t, dir, line, imageResult())
	file := filepath.Join(networks, cifar.NetworkFile(e, 0, 1))
	noisy := filepath.Join(networks, cifar.NetworkFile(imageResult().Experiment, 0, 1))
	must.Do(t, os.WriteFile(noisy, []byte("0.25"), 0o600))
	out := filepath.Join(dir, "new")
	args := []string{"rescore", "--store", dir, "--networks", networks, "--out", out}
	fails(t, exitUsage, "name a folder for them with --out", args[:5]...)
	fails(t, exitUsage, networks+" has no network of a run in "+dir+" that draws no samples", args...)
	must.Do(t, os.WriteFile(file, []byte("0.26"), 0o600))
	fails(t, exitFailure, "has NLL 0.26, and the line in the store 0.25: it is another network", args...)
	must.Do(t, os.WriteFile(file, []byte("0.250002"), 0o600))
	succeeds(t, "1 line scored", args...)
	for _, line := range holds(t, out, 2) {
		if _, has := line.Metrics["ood_later_auroc"]; has != (line.ID == e.ID()) || has && (line.Metrics["parameters"] != 7 || math.Abs(line.Metrics[results.MetricNLL]-0.25) > 1e-5) {
			t.Errorf("%v has the metrics %v", line.Experiment, line.Metrics)
		}
	}
	// New predictions of fewer sets than the old ones are not taken for these.
	old := &predictions.Predictions{Experiment: e.ID(), Dataset: e.Dataset, Classes: 2, Samples: 1, Labels: []int{1}, Probs: []float64{0.2, 0.8},
		Others: []predictions.Set{{Name: "later", MaxProbability: []float64{0.5}}, {Name: "gone", MaxProbability: []float64{0.5}}}}
	folder := filepath.Join(t.TempDir(), "predictions")
	must.Do(t, os.Mkdir(folder, 0o700))
	must.Do(t, predictions.Write(filepath.Join(folder, predictions.FileName(e.ID())), old))
	args = []string{"rescore", "--store", dir, "--networks", networks, "--out", filepath.Join(dir, "newer"), "--predictions", folder}
	if status, _, stderr := reproduce(args...); status != exitFailure || !strings.Contains(stderr, "have the set gone, whose images are not at hand now") {
		t.Errorf("fewer sets: status %d\n%s", status, stderr)
	}
	old.Others = old.Others[:1]
	must.Do(t, predictions.Write(filepath.Join(folder, predictions.FileName(e.ID())), old))
	succeeds(t, "1 line scored", args...)
	if entries, err := os.ReadDir(filepath.Join(dir, predictions.Folder)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("predictions in the old store: %v, %v", entries, err)
	}
	left := must.Get(filepath.Glob(filepath.Join(os.TempDir(), "reproduce-rescore-*")))(t)
	if len(left) > 0 {
		t.Errorf("left behind: %s", strings.Join(left, ", "))
	}
}
