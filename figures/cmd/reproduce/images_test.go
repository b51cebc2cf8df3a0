package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/predictions"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/run"
	"densityuncertainty/figures/runner"
)

// Changed experiments are small runs, other ones than the paper's.
func TestChangesMakeSmallRuns(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	args := []string{"run", "cifar10-resnet14", "--methods", "density,mfvi", "--seeds", "0,2", "--store", store}
	changed := append(args, "--epochs", "3", "--train-n", "100", "--test-n", "50", "--held-out", "20", "--samples", "4", "--set", "init_std=0.01", "--set", "batch_size=16")
	// The set has both methods also with weight decay on all parameters.
	if status, _, stderr := reproduce(t, changed...); status != 0 || !strings.Contains(stderr, "[8/8 runs, 100%") {
		t.Fatalf("run: %d\n%s", status, stderr)
	}
	lines, _, err := results.Read(store)
	if err != nil || len(lines) != 8 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	want := experiment.Experiment{Study: experiment.Images, Method: experiment.MFVI, Dataset: experiment.CIFAR10, Network: experiment.ResNet14, Epochs: 3, Samples: 4,
		Fidelity: experiment.Paper, Scale: experiment.Small, TrainN: 100, TestN: 50, HeldOut: 20, Options: map[string]string{"init_std": "0.01", "batch_size": "16"}}
	if got := lines[0].Experiment; got.ID() != want.ID() {
		t.Errorf("first experiment %+v, want %+v", got, want)
	}
	if status, _, stderr := reproduce(t, append(args, "--dry-run")...); status != 0 || !strings.Contains(stderr, "8 experiments, 0 already in") {
		t.Errorf("the set itself: %d\n%s", status, stderr)
	}
	if status, stdout, stderr := reproduce(t, append(args, "--dry-run", "--set", "decay=all")...); status != 0 || !strings.Contains(stderr, "4 experiments, 0 already in") || strings.Count(stdout, "\n") != 4 {
		t.Errorf("experiments that a change makes equal: %d\n%s\n%s", status, stdout, stderr)
	}
	status, stdout, stderr := reproduce(t, "table", "cifar-small", "--store", store)
	if status != 0 || strings.Count(stdout, "| CIFAR-10 | ResNet-14 |") != 4 || !strings.Contains(stdout, "init\\_std=0.01") {
		t.Errorf("table: %d\n%s\n%s", status, stdout, stderr)
	}
}

// A plan says once for each set of settings what DUE needs, and that too much is too much.
func TestPlanOfDUE(t *testing.T) {
	args := []string{"run", "cifar100-wrn", "--methods", "due,sngp", "--dry-run", "--store", t.TempDir()}
	for points, want := range map[string]string{"100": "up to 1180 MB of memory in a training step, with 100 inducing points for 100 classes", "20": "up to 190 MB"} {
		status, stdout, stderr := reproduce(t, append(args, "--set", "inducing_points="+points)...)
		if status != 0 || strings.Count(stdout, "\n") != 6 || strings.Count(stderr, want) != 1 {
			t.Errorf("%s points: %d\n%s\n%s", points, status, stdout, stderr)
		}
	}
	if status, _, stderr := reproduce(t, append(args, "--set", "inducing_points=5000")...); status != 1 || !strings.Contains(stderr, "5000 are too many") || !strings.Contains(stderr, "MB of memory") {
		t.Errorf("5000 points: %d\n%s", status, stderr)
	}
}

// A set without full experiments runs at its own scale.
func TestScaleOfASet(t *testing.T) {
	for set, want := range map[string]string{"cifar-small": "60 experiments", "grid": "12 experiments", "ood-svhn": "36 experiments", "cifar-gp": "30 experiments", "cifar10-wrn": "24 experiments"} {
		if status, _, stderr := reproduce(t, "run", set, "--dry-run", "--store", t.TempDir()); status != 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d\n%s", set, status, stderr)
		}
	}
	status, stdout, stderr := reproduce(t, "run", "all", "--dry-run", "--store", t.TempDir())
	ids := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(stdout), "\n") {
		id, _, _ := strings.Cut(line, " ")
		if ids[id] {
			t.Fatalf("listed twice: %s", line)
		}
		ids[id] = true
	}
	if status != 0 || len(ids) < 1000 {
		t.Errorf("all: %d, %d experiments\n%s", status, len(ids), stderr)
	}
}

func TestGrid(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	status, stdout, stderr := reproduce(t, "grid", "--epochs", "2", "--train-n", "100", "--methods", "density", "--store", store)
	if status != 0 || strings.Count(stdout, "| Density Uncertainty prior\\_std=") != 3 || !strings.Contains(stdout, "chosen") {
		t.Fatalf("%d\n%s\n%s", status, stdout, stderr)
	}
	lines, _, err := results.Read(store)
	if err != nil || len(lines) != 3 || lines[0].Experiment.Scale != experiment.Grid || lines[0].Experiment.Epochs != 2 {
		t.Errorf("lines %v, %v", lines, err)
	}
}

func TestOptions(t *testing.T) {
	status, stdout, stderr := reproduce(t, "options")
	if status != 0 || !strings.Contains(stdout, "| `padding` | zero | replicate |") || !strings.Contains(stdout, "| `hidden_layers` | 2 | 3 |") {
		t.Errorf("%d\n%s\n%s", status, stdout, stderr)
	}
}

// SIGTERM ends the program with the status that asks to be started again.
func TestSIGTERMAsksToBeRequeued(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	p := start(t, []string{childDelay + "=50ms"}, "run", "cifar-small", "--store", store)
	waitForLines(t, store, 1)
	for range 2 {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	if status := p.status(t); status != run.Requeue || !strings.Contains(p.stderr.String(), "run the same command again") {
		t.Errorf("status %d, want %d\n%s", status, run.Requeue, p.stderr.String())
	}
}

func TestJobArrayAndMerge(t *testing.T) {
	dir := t.TempDir()
	store, job := filepath.Join(dir, "runs"), filepath.Join(dir, "job")
	t.Setenv("DENSITYUNCERTAINTY_DATA", "/data")
	args := []string{"run", "cifar-small", "--methods", "density", "--datasets", "cifar10", "--store", store, "--engine", "slurm", "--slurm-dir", job,
		"--partition", "short", "--gres", "", "--time", "1:00", "--sbatch", "--account=a", "--program", os.Args[0], "--without-svhn"}
	if status, _, stderr := reproduce(t, args...); status != 0 || !strings.Contains(stderr, "with 3 tasks") || !strings.Contains(stderr, "sbatch "+job+"/job.sh") {
		t.Fatalf("%d\n%s", status, stderr)
	}
	script, err := os.ReadFile(filepath.Join(job, "job.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--array=0-2\n", "--partition=short\n", "--account=a\n", "export DENSITYUNCERTAINTY_DATA='/data'", "--time=1:00\n", "\"$SLURM_ARRAY_TASK_ID\" '--without-svhn' &\n"} {
		if !bytes.Contains(script, []byte(want)) {
			t.Errorf("the script lacks %q:\n%s", want, script)
		}
	}

	for index := range 3 {
		for _, want := range []string{"1 to run", "1 already in"} { // a requeued task that was finished
			if status, _, stderr := reproduce(t, "task", job, fmt.Sprint(index)); status != 0 || !strings.Contains(stderr, want) {
				t.Fatalf("task %d: %d\n%s", index, status, stderr)
			}
		}
	}
	if status, _, stderr := reproduce(t, "task", job, "3"); status != 1 || !strings.Contains(stderr, "no task 3") {
		t.Errorf("a task too many: %d\n%s", status, stderr)
	}
	kept := filepath.Join(job, "results", "predictions")
	if err := os.MkdirAll(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kept, "a"+predictions.Extension), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	merge := []string{"merge", filepath.Join(job, "results"), "--store", store}
	for _, want := range []string{"3 results added", "0 results added"} {
		if status, _, stderr := reproduce(t, merge...); status != 0 || !strings.Contains(stderr, want) {
			t.Fatalf("merge: %d, want %q\n%s", status, want, stderr)
		}
		checkComplete(t, store, 3)
	}
	if content, err := os.ReadFile(filepath.Join(store, "predictions", "a"+predictions.Extension)); err != nil || string(content) != "content" {
		t.Errorf("predictions: %q, %v", content, err)
	}

	// Another result of the same experiment is reported and not taken.
	lines, _, err := results.Read(store)
	if err != nil {
		t.Fatal(err)
	}
	other, err := results.OpenStore(filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	lines[1].Metrics = map[string]float64{"accuracy": 0.75, "nll": 1, "ece10": 0.1}
	if _, _, err := other.Append(lines[1]); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := reproduce(t, "merge", other.Dir(), "--store", store); status != 1 || !strings.Contains(stderr, "1 results differ") || !strings.Contains(stderr, lines[1].ID) {
		t.Errorf("a conflict: %d\n%s", status, stderr)
	}
	checkComplete(t, store, 3)

	if status, _, stderr := reproduce(t, args...); status != 0 || !strings.Contains(stderr, "0 to run") {
		t.Errorf("nothing is missing: %d\n%s", status, stderr)
	}
}

func TestSubmit(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sbatch"), []byte("#!/bin/sh\necho Submitted \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	args := []string{"run", "cifar10-wrn", "--engine", "slurm", "--slurm-dir", filepath.Join(dir, "job"), "--program", "p", "--submit", "--store", dir}
	if status, stdout, stderr := reproduce(t, args...); status != 0 || stdout != "Submitted "+filepath.Join(dir, "job", "job.sh")+"\n" {
		t.Errorf("%d\n%s\n%s", status, stdout, stderr)
	}
}

func TestRescore(t *testing.T) {
	dir := t.TempDir()
	e := experiment.Experiment{Study: experiment.Images, Method: experiment.MFVI, Dataset: experiment.CIFAR10, Network: experiment.ResNet14, Epochs: 1, Samples: 2,
		Fidelity: experiment.Paper, Scale: experiment.Small, TrainN: 10}
	p := &predictions.Predictions{Experiment: e.ID(), Dataset: e.Dataset, Classes: 2, Samples: 2, Labels: []int{0, 1, 1}, Probs: []float64{0.75, 0.25, 0.5, 0.5, 0.25, 0.75}}
	if err := os.Mkdir(filepath.Join(dir, "predictions"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "predictions", predictions.FileName(e.ID()))
	if err := predictions.Write(file, p); err != nil {
		t.Fatal(err)
	}
	back, err := predictions.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	scores, err := predictions.Score(back)
	if err != nil {
		t.Fatal(err)
	}
	store, err := results.OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := results.Result{ID: e.ID(), Experiment: e, Metrics: map[string]float64{"accuracy": 0.1, "parameters": 7}, Batched: 1, Finished: time.Now()}
	if _, _, err := store.Append(r); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := reproduce(t, "rescore", "--store", dir); status != 1 || !strings.Contains(stderr, e.ID()) || !strings.Contains(stderr, "accuracy, ") {
		t.Errorf("a line with other numbers: %d\n%s", status, stderr)
	}
	out := filepath.Join(dir, "new")
	args := []string{"rescore", "--store", dir, "--out", out}
	if status, _, stderr := reproduce(t, args...); status != 0 {
		t.Fatalf("%d\n%s", status, stderr)
	}
	lines, _, err := results.Read(out)
	if err != nil || len(lines) != 1 || lines[0].Metrics["parameters"] != 7 {
		t.Fatalf("lines %v, %v", lines, err)
	}
	for name, score := range scores {
		if lines[0].Metrics[name] != score {
			t.Errorf("%s is %v, want %v", name, lines[0].Metrics[name], score)
		}
	}
	if status, _, stderr := reproduce(t, "rescore", "--store", out, "--predictions", filepath.Join(dir, "predictions")); status != 0 || !strings.Contains(stderr, "1 lines scored") {
		t.Errorf("a line with its numbers: %d\n%s", status, stderr)
	}
	if status, _, stderr := reproduce(t, args...); status != 1 || !strings.Contains(stderr, "already has a result") {
		t.Errorf("an old store: %d\n%s", status, stderr)
	}
	if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := reproduce(t, "rescore", "--store", dir); status != 1 || !strings.Contains(stderr, file) {
		t.Errorf("a damaged file: %d\n%s", status, stderr)
	}
}

// Checkpoints go once the result is stored, unless they are to be kept.
func TestCheckpointsOfFinishedRuns(t *testing.T) {
	for _, keep := range []bool{false, true} {
		dir := t.TempDir()
		store, err := results.OpenStore(filepath.Join(dir, "runs"))
		if err != nil {
			t.Fatal(err)
		}
		set, ok := experiment.SetByName("cifar-small")
		if !ok {
			t.Fatal("no set cifar-small")
		}
		e := set.Experiments[0]
		folder := runner.WorkFolder(dir, e)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		r := results.Result{ID: e.ID(), Experiment: e, Metrics: map[string]float64{"accuracy": 1}, Batched: 1, Finished: time.Now()}
		if added, _, err := (tidy{store, places{work: dir, keep: keep}}).Append(r); err != nil || !added {
			t.Fatal(added, err)
		}
		if _, err := os.Stat(folder); (err == nil) != keep {
			t.Errorf("keep %v: %v", keep, err)
		}
	}
}

// Several processes share the work of a set; a stop ends them all, and the next run goes on.
func TestDevices(t *testing.T) {
	dir := t.TempDir()
	store, log := filepath.Join(dir, "runs"), filepath.Join(dir, "log")
	args := []string{"run", "cifar-small", "--methods", "density,mfvi", "--store", store, "--devices", "3,5,5", "--without-svhn"}
	p := start(t, []string{childDelay + "=100ms", childLog + "=" + log}, args...)
	waitForLines(t, store, 3)
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if status := p.status(t); status != exitInterrupted {
		t.Fatalf("status %d\n%s", status, p.stderr.String())
	}
	before, _, err := results.Read(store)
	if err != nil || len(before) < 3 || len(before) == 12 {
		t.Fatalf("%d lines, %v", len(before), err)
	}
	if status, _, stderr := reproduce(t, args...); status != 0 || !strings.Contains(stderr, "2, device 5: ") || !strings.Contains(stderr, "[1/1 runs, 100%") {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	checkComplete(t, store, 12)
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), " without-svhn true device=3\n") || !strings.Contains(string(content), "device=5\n") {
		t.Errorf("devices of the first processes:\n%s", content)
	}
	if left, err := filepath.Glob(filepath.Join(store, "work", "*")); err != nil || len(left) != 0 {
		t.Errorf("left in the folder for work: %v, %v", left, err)
	}
	broken := []string{"run", "cifar10-resnet14", "--methods", "mfvi", "--seeds", "0", "--store", filepath.Join(dir, "none"), "--devices", "0"}
	p = start(t, []string{childDelay + "=soon"}, broken...)
	if status := p.status(t); status != exitFailure || !strings.Contains(p.stderr.String(), "0, device 0: reproduce: ") || !strings.Contains(p.stderr.String(), "task 0 on device 0") {
		t.Errorf("a failing task: %d\n%s", status, p.stderr.String())
	}
}
