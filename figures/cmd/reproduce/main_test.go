package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/run"
)

// The environment variables that make the test binary the reproduce program with a fake runner.
const (
	childMark  = "REPRODUCE_TEST_CHILD" // "1": be the program
	childDelay = "REPRODUCE_TEST_DELAY" // how long the fake runner takes for one experiment
	childLog   = "REPRODUCE_TEST_LOG"   // file to which the fake runner writes every experiment it starts
)

func TestMain(m *testing.M) {
	if os.Getenv(childMark) != "1" {
		os.Exit(m.Run())
	}
	newRunner = func(s settings) (run.Runner, error) { return fake{s}, nil }
	main()
}

// fake makes up results: they depend on the experiment alone.
type fake struct{ settings }

func (r fake) Run(ctx context.Context, batch []experiment.Experiment, progress func(float64, string)) ([]results.Result, error) {
	delay := time.Duration(0)
	if text := os.Getenv(childDelay); text != "" {
		var err error
		if delay, err = time.ParseDuration(text); err != nil {
			return nil, err
		}
	}
	var found []results.Result
	for i, e := range batch {
		progress(float64(i)/float64(len(batch)), fmt.Sprintf("experiment %d", i))
		if path := os.Getenv(childLog); path != "" {
			f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return found, err
			}
			_, err = fmt.Fprintln(f, e.ID(), withoutSVHNFlag, r.withoutSVHN, "device="+os.Getenv(deviceVariable))
			if err := errors.Join(err, f.Close()); err != nil {
				return found, err
			}
		}
		select {
		case <-ctx.Done():
			return found, ctx.Err()
		case <-time.After(delay):
		}
		r := results.Result{ID: e.ID(), Experiment: e, Metrics: map[string]float64{"rmse": 1, "nll": 2},
			Backend: "fake", Device: "none", Version: "test", Batched: len(batch), Finished: time.Now()}
		if e.Study == experiment.Images {
			r.Metrics = map[string]float64{"accuracy": 0.5, "nll": 1, "ece10": 0.1}
		}
		if e.Study == experiment.Toy {
			r.Series = map[string][]float64{"train_x": {-3, 3}, "train_y": {-27, 27}, "x": {-4, 0, 4}, "mean": {-64, 0, 64}, "std": {1, 2, 1},
				"q0.5": {-67, -6, 61}, "q2.5": {-66, -4, 62}, "q97.5": {-62, 4, 66}, "q99.5": {-61, 6, 67}}
		}
		if e.Dataset == experiment.TwoMoons {
			r.Series = map[string][]float64{"train_x": {-1, 1}, "train_y": {0, 1}, "label": {0, 1}, "x": {-1, 1}, "y": {0, 1}, "entropy": {0, 0.3, 0.6, 0.1}}
		}
		found = append(found, r)
	}
	return found, nil
}

// program is a started reproduce.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

func start(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Env = append(append(os.Environ(), childMark+"=1"), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// status waits for the end and returns the exit status, -1 after a signal.
func (p *program) status(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// reproduce runs the program to its end.
func reproduce(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	p := start(t, nil, args...)
	status = p.status(t)
	return status, p.stdout.String(), p.stderr.String()
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"list", "--help"}, {"run", "-h"}, {"run", "figure1", "--help"}, {"table", "--help"}, {"figure", "--help"},
		{"grid", "--help"}, {"options", "--help"}, {"rescore", "--help"}, {"merge", "--help"}, {"task", "--help"}} {
		status, stdout, stderr := reproduce(t, args...)
		if status != 0 || !strings.Contains(stdout, "Usage") || stderr != "" {
			t.Errorf("%v: status %d\n%s\n%s", args, status, stdout, stderr)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for want, line := range map[string]string{
		"no command":                 "",
		"unknown command":            "rnu figure1",
		"run wants one set":          "run",
		"unknown set":                "run figure9",
		"run wants one set: figure1": "run figure1 uci",
		"flag provided":              "run figure1 --sclae quick",
		"--seeds":                    "run cifar10-resnet14 --seeds x",
		"are for images":             "run uci --epochs 3",
		"train_n is -2":              "run cifar-small --train-n -2",
		"is not name=value":          "run cifar-small --set alpha",
		"there is no option":         "run cifar-small --set alhpa=1",
		"--engine: unknown":          "run cifar-small --engine pbs",
		"--submit is for":            "run cifar-small --submit",
		"grid takes no":              "grid cifar-small",
		"options takes no":           "options alpha",
		"task wants":                 "task out",
		"is not the number of":       "task out first",
		"merge wants":                "merge",
		"rescore takes no":           "rescore cifar-small",
		"--methods: unknown":         "run figure1 --methods denisty",
		"--datasets: unknown":        "run uci --datasets bostn",
		"--scale: unknown":           "run uci --scale medium",
		"--fidelity: unknown":        "run uci --fidelity text",
		"--splits":                   "run uci --splits 4-0",
		"no experiment of figure1":   "run figure1 --datasets boston",
		"list takes no":              "list figure1",
		"unknown table":              "table uci-nl",
		"table wants one name":       "table",
		"--format: unknown \"docx\"": "table uci-nll --format docx",
		"unknown figure":             "figure figure2",
		"figure wants one name":      "figure figure1 uci-nll",
		"--format: unknown \"gif\"":  "figure figure1 --format gif",
	} {
		status, stdout, stderr := reproduce(t, strings.Fields(line)...)
		if status != 2 || !strings.Contains(stderr, want) || stdout != "" || !strings.Contains(stderr, "--help") {
			t.Errorf("%q: status %d, want 2 and %q\n%s\n%s", line, status, want, stdout, stderr)
		}
	}
}

func TestRunAndList(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	args := []string{"run", "uci", "--scale=quick", "--methods", "density,rank1", "--datasets", "yacht", "--store", store}
	status, stdout, stderr := reproduce(t, append(args, "--dry-run")...)
	if status != 0 || strings.Count(stdout, "\n") != 4 || !strings.Contains(stderr, "4 to run in 2 batches") {
		t.Fatalf("dry run: %d\n%s\n%s", status, stdout, stderr)
	}
	if _, err := os.Stat(store); !os.IsNotExist(err) {
		t.Errorf("a dry run made the store: %v", err)
	}
	if status, _, stderr := reproduce(t, args...); status != 0 || !strings.Contains(stderr, "[4/4 runs, 100%") {
		t.Fatalf("run: %d\n%s", status, stderr)
	}
	if status, _, stderr := reproduce(t, args...); status != 0 || !strings.Contains(stderr, "4 experiments, 4 already in") || strings.Contains(stderr, "[") {
		t.Fatalf("second run: %d\n%s", status, stderr)
	}
	status, stdout, stderr = reproduce(t, "list", "--store", store)
	if status != 0 || !strings.Contains(stdout, "uci-released") {
		t.Fatalf("list: %d\n%s\n%s", status, stdout, stderr)
	}
	for _, line := range strings.Split(stdout, "\n") {
		if fields := strings.Fields(line); len(fields) > 5 && fields[0] == "uci" && strings.Join(fields[1:5], " ") != "0 825 4 26" {
			t.Errorf("list counts: %s", line)
		}
	}
	if status, _, stderr := reproduce(t, "list", "--store", filepath.Join(store, "missing")); status != 1 || !strings.Contains(stderr, "no such file") {
		t.Errorf("a missing store: %d %s", status, stderr)
	}
}

// waitForLines waits until the program has stored some results.
func waitForLines(t *testing.T, store string, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if lines, _, err := results.Read(store); err == nil && len(lines) >= n {
			return
		}
	}
	t.Fatalf("no %d results within 20 s", n)
}

func TestCtrlCThenContinue(t *testing.T) {
	store, log := filepath.Join(t.TempDir(), "runs"), filepath.Join(t.TempDir(), "log")
	env := []string{childDelay + "=40ms", childLog + "=" + log}
	args := []string{"run", "uci-released", "--datasets", "yacht", "--batch", "4", "--store", store}
	p := start(t, env, args...)
	waitForLines(t, store, 4)
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if status := p.status(t); status != 130 || !strings.Contains(p.stderr.String(), "To go on, run the same command again:\n  reproduce run uci-released --datasets yacht") {
		t.Fatalf("status %d\n%s", status, p.stderr.String())
	}
	before, notes, err := results.Read(store)
	if err != nil || len(notes) != 0 || len(before) < 4 || len(before) >= 40 {
		t.Fatalf("%d lines, %v, %v", len(before), notes, err)
	}
	if status, _, stderr := reproduce(t, args...); status != 0 || !strings.Contains(stderr, fmt.Sprintf("%d already in", len(before))) {
		t.Fatalf("continuing: %d\n%s", status, stderr)
	}
	checkComplete(t, store, 40)
	// Nothing that was stored before may have run again: every stored experiment was started once,
	// but for the one that Ctrl-C stopped.
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if started := strings.Count(string(content), "\n"); started > len(before)+1 {
		t.Errorf("the first program started %d experiments and stored %d", started, len(before))
	}
}

func TestKillThenContinue(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	args := []string{"run", "uci-released", "--datasets", "yacht", "--batch", "1", "--store", store}
	for n := range 4 {
		p := start(t, []string{childDelay + "=10ms"}, args...)
		waitForLines(t, store, 1+5*n)
		if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if status := p.status(t); status != -1 {
			t.Fatalf("the killed program ended with status %d\n%s", status, p.stderr.String())
		}
		if _, _, err := results.Read(store); err != nil {
			t.Fatal(err)
		}
	}
	if status, _, stderr := reproduce(t, args...); status != 0 {
		t.Fatalf("continuing: %d\n%s", status, stderr)
	}
	checkComplete(t, store, 40)
}

// checkComplete checks that the store holds n experiments, each once, and nothing odd.
func checkComplete(t *testing.T, store string, n int) {
	t.Helper()
	lines, notes, err := results.Read(store)
	if err != nil || len(notes) != 0 || len(lines) != n {
		t.Errorf("%d lines, want %d; notes %v; %v", len(lines), n, notes, err)
	}
}

// Two programs share one store and one list of work.
func TestTwoProgramsOneStore(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	args := []string{"run", "uci-released", "--datasets", "yacht,wine", "--batch", "2", "--store", store}
	one := start(t, []string{childDelay + "=1ms"}, args...)
	two := start(t, []string{childDelay + "=1ms"}, args...)
	if a, b := one.status(t), two.status(t); a != 0 || b != 0 {
		t.Fatalf("status %d and %d\n%s\n%s", a, b, one.stderr.String(), two.stderr.String())
	}
	checkComplete(t, store, 80)
}

func TestTableAndFigure(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "runs")
	for _, set := range []string{"figure1", "distance", "uci"} {
		if status, _, stderr := reproduce(t, "run", set, "--scale", "quick", "--store", store); status != 0 {
			t.Fatalf("run %s: %d\n%s", set, status, stderr)
		}
	}
	status, stdout, stderr := reproduce(t, "table", "uci-nll", "--store", store)
	if status != 0 || !strings.Contains(stdout, "quick, 20 epochs: 2.000") || !strings.Contains(stdout, "not run<br>paper") {
		t.Errorf("table: %d\n%s\n%s", status, stdout, stderr)
	}
	for format, ending := range map[string]string{"md": ".md", "latex": ".tex", "html": ".html"} {
		out := filepath.Join(dir, "tables", format)
		if status, stdout, stderr := reproduce(t, "table", "all", "--format", format, "--out", out, "--store", store); status != 0 || stdout != "" {
			t.Errorf("all tables: %d\n%s\n%s", status, stdout, stderr)
		}
		if info, err := os.Stat(filepath.Join(out, "uci-released"+ending)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", format, err)
		}
	}
	for _, format := range []string{"svg", "png", "pdf"} {
		out := filepath.Join(dir, "picture."+format)
		status, stdout, stderr := reproduce(t, "figure", "figure1", "--seed", "2", "--format", format, "--out", out, "--store", store)
		if status != 0 || !strings.Contains(stdout, "seed 2. QUICK RUN") {
			t.Errorf("figure: %d\n%s\n%s", status, stdout, stderr)
		}
		if info, err := os.Stat(out); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", format, err)
		}
	}
	out := filepath.Join(dir, "figures")
	if status, stdout, stderr := reproduce(t, "figure", "all", "--format", "png", "--out", out, "--store", store); status != 0 || strings.Count(stdout, "\n") != 7 {
		t.Errorf("all figures: %d\n%s\n%s", status, stdout, stderr)
	}
	named := filepath.Join(t.TempDir(), "picture.png")
	if status, _, stderr := reproduce(t, "figure", "figure1", "--out", named, "--store", store); status != 0 {
		t.Errorf("figure --out picture.png: status %d, %s", status, stderr)
	} else if picture, err := os.ReadFile(named); err != nil || !strings.HasPrefix(string(picture), "\x89PNG") {
		t.Errorf("figure --out picture.png wrote no PNG (error %v)", err)
	}
	if status, _, stderr := reproduce(t, "figure", "figure1", "--seed", "9", "--store", store); status != 1 || !strings.Contains(stderr, "run: reproduce run figure1") {
		t.Errorf("a seed without runs: %d\n%s", status, stderr)
	}
}

func TestCorruptedStore(t *testing.T) {
	store := t.TempDir()
	path := filepath.Join(store, "uci-yacht-paper.jsonl")
	if err := os.WriteFile(path, []byte("{}\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := reproduce(t, "run", "uci", "--datasets", "yacht", "--store", store); status != 1 || !strings.Contains(stderr, path+":1:") {
		t.Errorf("status %d\n%s", status, stderr)
	}
}
