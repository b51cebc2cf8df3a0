package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

func TestCPUTime(t *testing.T) {
	for seconds, want := range map[float64]string{0: "-", 0.5: "1m", 60: "1m", 3599: "1h00m", 14614: "4h04m"} {
		if got := cpuTime(seconds); got != want {
			t.Errorf("%g s: %s, want %s", seconds, got, want)
		}
	}
}

func TestRunAndList(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	args := []string{"run", "uci", "--scale=quick", "--methods", "density,rank1", "--datasets", "yacht", "--store", store}
	if plan := succeeds(t, "4 to run in 2 batches", append(args, "--dry-run")...); strings.Count(plan, "\n") != 4 {
		t.Errorf("the plan is\n%s", plan)
	}
	if _, err := os.Stat(store); !os.IsNotExist(err) {
		t.Errorf("a dry run made the store: %v", err)
	}
	succeeds(t, "[4/4 runs, 100%", args...)
	if _, _, stderr := reproduce(args...); !strings.Contains(stderr, "4 experiments, 4 already in") || strings.Contains(stderr, "[") {
		t.Errorf("the second run says\n%s", stderr)
	}
	list := succeeds(t, "", "list", "--store", store)
	if !strings.Contains(strings.Join(strings.Fields(list), " "), " uci 0 825 4 26 0 0 - UCI") || !strings.Contains(list, "uci-released") {
		t.Errorf("the list is\n%s", list)
	}
	var names struct{ Tables, Figures, Sets []struct{ Name, Doc string } }
	if err := json.Unmarshal([]byte(succeeds(t, "", "list", "--format", "json")), &names); err != nil ||
		len(names.Tables) != len(namedTables()) || names.Figures[0].Name != "figure1" || names.Sets[0].Doc == "" {
		t.Errorf("as JSON: %v, %v", names, err)
	}
	fails(t, exitFailure, "no such file", "list", "--store", filepath.Join(store, "missing"))
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"list"}, {"table", "uci-nll"}, {"run", "figure1"}} {
		fails(t, exitFailure, "is not inside a checkout of densityuncertainty; name the store's folder with --store", args...)
	}
}

// Experiments that are stored are run once more, and compared with their lines.
func TestRunAgain(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	args := []string{"run", "uci", "--scale=quick", "--methods", "density,rank1", "--datasets", "yacht", "--store", store}
	fails(t, exitUsage, "nothing to compare", append(args, "--again", "1")...)
	fails(t, exitUsage, "--again is -1", append(args, "--again", "-1")...)
	fails(t, exitUsage, "leave out --dry-run", append(args, "--again", "1", "--dry-run")...)
	fails(t, exitUsage, "leave out --engine", append(args, "--again", "1", "--engine", "slurm")...)
	succeeds(t, "", args...)
	file := filepath.Join(store, "uci-yacht-paper-quick.jsonl")
	kept := string(must.Get(os.ReadFile(file))(t))
	for _, c := range []struct{ many, want string }{{"1", "of 2 runs 2 come out as they are stored, and 0 more"}, {"9", "of 4 runs 4 come"}} {
		if got := succeeds(t, "100%", append(args, "--again", c.many)...); !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s of each: %q", c.many, got)
		}
	}
	// One line has another number, one a number that differs by rounding, and one diverged.
	lines := strings.SplitAfter(kept, "\n")
	lines[0] = strings.Replace(lines[0], `"nll":2`, `"nll":2.5`, 1)
	lines[1] = strings.Replace(lines[1], `"nll":2`, `"nll":2.00001`, 1)
	lines[3] = strings.Replace(lines[3], `"backend"`, `"diverged":true,"backend"`, 1)
	must.Do(t, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600))
	status, stdout, stderr := reproduce(append(args, "--again", "2")...)
	for _, want := range []string{"split 0, 20 epochs, 10 samples, seed 0 (paper, quick): nll 2.5, now 2, differs by 0.2 times itself", "diverged: true, now false (stored by test on fake, none; now test on fake, none)", "of 4 runs 1 come out as they are stored, and 1 more but for rounding"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if status != exitFailure || !strings.Contains(stderr, "2 of 4 runs are not as they are stored") {
		t.Errorf("status %d\n%s", status, stderr)
	}
	if after := must.Get(os.ReadFile(file))(t); string(after) != strings.Join(lines, "") {
		t.Error("the store changed")
	}
}

func TestDiffers(t *testing.T) {
	of := func(nll float64, curve ...float64) results.Result {
		return results.Result{Metrics: map[string]float64{"nll": nll, "seconds_per_epoch": nll}, Series: map[string][]float64{"mean": curve}}
	}
	less := results.Result{Metrics: map[string]float64{"other": 1}}
	for _, c := range []struct {
		name        string
		before, now results.Result
		want        string
		by          float64
	}{
		{"equal", of(1, 2, 3), of(1, 2, 3), "", 0},
		{"only a time", results.Result{Metrics: map[string]float64{"seconds_per_epoch": 1}}, results.Result{Metrics: map[string]float64{"seconds_per_epoch": 2}}, "", 0},
		{"a metric", of(2, 2, 3), of(1, 2, 3), "nll 2, now 1, differs by 0.5 times itself", 0.5},
		{"a curve more than a metric", of(4, 4, 8), of(3, 4, 4), "the series mean differs by 0.5 times its largest value", 0.5},
		{"digits of a curve", of(1, 2, 300000), of(1, 2, 300001), "", 0},
		{"a shorter curve", of(1, 2, 3), of(1, 2), "the series mean has 2 values, now 1", math.Inf(1)},
		{"nothing measured", of(1), results.Result{}, "nothing is measured any more", math.Inf(1)},
		{"another metric", results.Result{Metrics: map[string]float64{"nll": 1}}, less, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if text, by := differs(c.before, c.now); !strings.HasPrefix(text, c.want) || (text == "") != (c.want == "") || by != c.by {
				t.Errorf("%q by %v, want %q by %v", text, by, c.want, c.by)
			}
		})
	}
}

// A store that cannot be is an error before anything is trained.
func TestStoreThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, []byte("{}\n{}\n"), 0o600))
	corrupt := t.TempDir()
	line := filepath.Join(corrupt, "uci-yacht-paper.jsonl")
	must.Do(t, os.WriteFile(line, []byte("{}\n{}\n"), 0o600))
	for _, c := range []struct{ name, store, want string }{
		{"a file in its place", file, "the store " + file + " is not a folder; name one with --store"},
		{"below a file", filepath.Join(file, "runs"), "not a directory"},
		{"a line that is no result", corrupt, line + ":1:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, _, stderr := reproduce("run", "uci", "--datasets", "yacht", "--store", c.store)
			if status != exitFailure || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "runs, 0%") {
				t.Errorf("status %d\n%s", status, stderr)
			}
		})
	}
}

// Changed experiments are small runs, other ones than the paper's.
func TestChangesMakeSmallRuns(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	args := []string{"run", "cifar10-resnet14", "--methods", "density,mfvi", "--seeds", "0,2", "--store", store}
	// The set has both methods also with weight decay on all parameters.
	succeeds(t, "8 experiments are so changed that the scale is small\n", append(args, "--epochs", "3", "--dry-run")...)
	succeeds(t, "[8/8 runs, 100%", append(args, "--epochs", "3", "--train-n", "100", "--test-n", "50", "--held-out", "20", "--samples", "4",
		"--set", "init_std=0.01", "--set", "batch_size=16")...)
	want := results.Experiment{Study: results.Images, Method: "mfvi", Dataset: cifar.CIFAR10, Network: cifar.ResNet14, Epochs: 3, Samples: 4,
		Fidelity: results.Paper, Scale: results.Small, TrainN: 100, TestN: 50, HeldOut: 20, Options: map[string]string{"init_std": "0.01", "batch_size": "16"}}
	if got := holds(t, store, 8)[0].Experiment; got.ID() != want.ID() {
		t.Errorf("first experiment %+v, want %+v", got, want)
	}
	table := succeeds(t, "", "table", "cifar-small", "--store", store)
	if strings.Count(table, "| CIFAR-10 | ResNet-14 |") != 4 || !strings.Contains(table, "init\\_std=0.01") {
		t.Errorf("the table is\n%s", table)
	}
	for _, c := range []struct{ name, change, want string }{
		{"the set itself", "--seeds=0,2", "8 experiments, 0 already in"},
		{"a change makes some equal", "--set=decay=all", "4 experiments, 0 already in"},
		{"also with a value that is usual", "--set=decay=weights", "4 experiments, 0 already in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := succeeds(t, c.want, append(args, "--dry-run", c.change)...)
			if !strings.HasPrefix(c.want, fmt.Sprint(strings.Count(plan, "\n"))) || strings.Contains(plan, "decay=weights") || strings.Contains(plan, results.Small) {
				t.Errorf("the plan is\n%s", plan)
			}
		})
	}
}

// An option with its usual value is no other experiment, in any study.
func TestUsualOptions(t *testing.T) {
	for _, c := range []struct{ set, option, change string }{
		{"figure1", "hidden_layers=1", "hidden_layers=2"},
		{"uci", "clip=false", "clip=true"},
		{"uci", "learning_rate=0.01", "learning_rate=0.02"},
		{"uci", "init_std=0.1", "init_std=0.2"},
		{"cifar10-wrn", "batch_size=64", "batch_size=128"},
		{"uci-released", "clip=true", "clip=false"},
		{"cifar10-wrn", "noise=gaussian", "noise=uniform01"},
		{"cifar-released", "noise=uniform01", "noise=gaussian"},
	} {
		t.Run(c.set+" "+c.option, func(t *testing.T) {
			args := []string{"run", c.set, "--methods", "density", "--dry-run", "--store", t.TempDir(), "--set"}
			if plan := succeeds(t, "", append(args, c.option)...); plan == "" || strings.Contains(plan, c.option) {
				t.Errorf("the plan is\n%s", plan)
			}
			if plan := succeeds(t, "", append(args, c.change)...); !strings.Contains(plan, c.change) {
				t.Errorf("the changed plan is\n%s", plan)
			}
		})
	}
}

// A plan says once for each set of settings what DUE needs, and that too much is too much.
func TestPlanOfDUE(t *testing.T) {
	args := []string{"run", "cifar100-wrn", "--dry-run", "--store", t.TempDir()}
	for _, c := range []struct{ points, want string }{
		{"100", "up to 1252 MB of memory in a training step, with 100 inducing points for 100 classes"},
		{"20", "up to 252 MB"},
	} {
		t.Run(c.points, func(t *testing.T) {
			status, stdout, stderr := reproduce(append(args, "--methods", "due", "--set", "inducing_points="+c.points)...)
			if status != exitOK || strings.Count(stdout, "\n") != 3 || strings.Count(stderr, c.want) != 1 {
				t.Errorf("%d\n%s\n%s", status, stdout, stderr)
			}
		})
	}
	t.Run("both methods", func(t *testing.T) {
		if plan := succeeds(t, "MB of memory", append(args, "--methods", "due,sngp")...); strings.Count(plan, "\n") != 6 {
			t.Errorf("the plan is\n%s", plan)
		}
	})
	t.Run("too many", func(t *testing.T) {
		status, _, stderr := reproduce(append(args, "--methods", "due", "--set", "inducing_points=5000")...)
		if status != exitFailure || !strings.Contains(stderr, "5000 are too many") || !strings.Contains(stderr, "MB of memory") {
			t.Errorf("%d\n%s", status, stderr)
		}
	})
}

// A set without full experiments runs at its own scale.
func TestScaleOfASet(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"cifar-small", "60 experiments"}, {"grid", "12 experiments"}, {"ood-svhn", "36 experiments"}, {"cifar-gp", "30 experiments"}, {"cifar10-wrn", "24 experiments"},
	} {
		t.Run(c.set, func(t *testing.T) { succeeds(t, c.want, "run", c.set, "--dry-run", "--store", t.TempDir()) })
	}
	t.Run("all", func(t *testing.T) {
		ids := map[string]bool{}
		for line := range strings.Lines(succeeds(t, "", "run", "all", "--dry-run", "--store", t.TempDir())) {
			id, _, _ := strings.Cut(line, " ")
			if ids[id] {
				t.Errorf("listed twice: %s", line)
			}
			ids[id] = true
		}
		if len(ids) < 1000 {
			t.Errorf("%d experiments", len(ids))
		}
	})
}

func TestGrid(t *testing.T) {
	store := filepath.Join(t.TempDir(), "runs")
	succeeds(t, "", "run", "grid", "--epochs", "2", "--train-n", "100", "--methods", "density", "--store", store)
	table := succeeds(t, "", "table", "cifar-grid", "--store", store)
	if strings.Count(table, "| Density Uncertainty prior\\_std=") != 3 || !strings.Contains(table, "chosen") {
		t.Errorf("the table is\n%s", table)
	}
	if e := holds(t, store, 3)[0].Experiment; e.Scale != results.Grid || e.Epochs != 2 {
		t.Errorf("the first experiment is %+v", e)
	}
}

// The noise is chosen of the runs of a grid; without them the command says what it lacks, and leaves a file as it is.
func TestChoose(t *testing.T) {
	dir := t.TempDir()
	store, file := filepath.Join(dir, "runs"), filepath.Join(dir, "chosen.csv")
	without := quickStore(t, "figure1")
	must.Do(t, os.WriteFile(file, []byte("of before"), 0o600))
	for _, c := range []struct{ study, want string }{
		{"images", "nothing is chosen for density; density-constant; "},
		{"uci", "nothing is chosen for all methods on boston (gal splits); "},
	} {
		fails(t, exitFailure, c.want, "choose", c.study, "--store", without)
		fails(t, exitFailure, c.want, "choose", c.study, file, "--store", without)
	}
	if text := must.Get(os.ReadFile(file))(t); string(text) != "of before" {
		t.Errorf("without a grid it writes %q", text)
	}
	succeeds(t, "100%", "run", "processor-grid", "--methods", "rank1,vdropout", "--store", store)
	succeeds(t, "nothing is chosen for density; density-constant; ", "choose", "images", file, "--store", store)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "\nrank1,init_std,0.001,") || !strings.Contains(string(text), "\nvdropout,alpha,0.03,") {
		t.Errorf("%s (%v)", text, err)
	}
	fewer := filepath.Join(dir, "fewer")
	succeeds(t, "100%", "run", "processor-grid", "--methods", "rank1", "--store", fewer)
	before := must.Get(os.ReadFile(file))(t)
	fails(t, exitFailure, file+" has more choices than the runs here make", "choose", "images", file, "--store", fewer)
	if text := must.Get(os.ReadFile(file))(t); !bytes.Equal(text, before) {
		t.Errorf("choices of fewer methods took the place of\n%s:\n%s", before, text)
	}
}

func TestOptions(t *testing.T) {
	all := succeeds(t, "", "options")
	for _, c := range []struct{ study, has, lacks string }{
		{"toy", "| pretrain\\_steps |", "padding"},
		{"uci", "| hidden\\_layers | 2 | 3 |", "padding"},
		{"images", "| padding | zero | replicate |", "hidden\\_layers"},
	} {
		t.Run(c.study, func(t *testing.T) {
			one := succeeds(t, "", "options", c.study)
			if !strings.Contains(one, c.has) || strings.Contains(one, c.lacks) || !strings.Contains(all, one) {
				t.Errorf("it lacks %q or has %q:\n%s", c.has, c.lacks, one)
			}
		})
	}
}

// Checkpoints go once the result is stored, unless they are to be kept.
func TestCheckpointsOfFinishedRuns(t *testing.T) {
	e := cifar.Paper(cifar.CIFAR10, cifar.ResNet14).Small().Experiments(methods.MFVI)[0]
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			dir := t.TempDir()
			store := must.Get(results.OpenStore(filepath.Join(dir, "runs")))(t)
			folder := jobs.WorkFolder(dir, e)
			must.Do(t, os.MkdirAll(folder, 0o755))
			if added, _, err := (removingCheckpoints{store, folders{work: dir, keep: keep}}).Append(madeUp(e)); err != nil || !added {
				t.Fatal(added, err)
			}
			if _, err := os.Stat(folder); (err == nil) != keep {
				t.Errorf("the folder: %v", err)
			}
		})
	}
}

// jobArray is a command line that writes one with three tasks into the folder job.
func jobArray(store, job string) []string {
	return []string{"run", "cifar-small", "--methods", "density", "--datasets", "cifar10", "--store", store, "--engine", "slurm", "--slurm-dir", job, "--program", "/bin/reproduce"}
}

func TestJobArray(t *testing.T) {
	dir := t.TempDir()
	store, job := filepath.Join(dir, "runs"), filepath.Join(dir, "job")
	t.Setenv("DENSITYUNCERTAINTY_DATA", "/data")
	args := append(jobArray(store, job), "--partition", "short", "--gres", "", "--time", "1:00", "--sbatch", "--account=a", "--without-svhn", "--keep")
	succeeds(t, "with 3 tasks\nSubmit it with:\n  sbatch "+job+"/job.sh", args...)
	script := must.Get(os.ReadFile(filepath.Join(job, "job.sh")))(t)
	for _, want := range []string{"--array=0-2\n", "--partition=short\n", "--account=a\n", "export DENSITYUNCERTAINTY_DATA='/data'", "--time=1:00\n", "\"$SLURM_ARRAY_TASK_ID\" '--without-svhn' '--keep' &\n"} {
		if !bytes.Contains(script, []byte(want)) {
			t.Errorf("the script lacks %q:\n%s", want, script)
		}
	}
	for index := range 3 {
		for _, want := range []string{"1 to run", "1 already in"} { // a requeued task that was finished
			succeeds(t, want, "task", job, fmt.Sprint(index))
		}
	}
	fails(t, exitFailure, "no task 3", "task", job, "3")
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "/a plugin")
	if succeeds(t, "with 3 tasks", append(jobArray(store, job+"-2"), "--without-svhn")...); !bytes.Contains(must.Get(os.ReadFile(filepath.Join(job+"-2", "job.sh")))(t), []byte("export PJRT_PLUGIN_LIBRARY_PATH='/a plugin'")) {
		t.Error("the script does not say where plugins are")
	}
	// A task that another run is at, on a node that is not quite dead, has not succeeded.
	batch := must.Get(jobs.Task(job, 0))(t)
	folder, _, _ := jobs.TaskPlaces(job, 0)
	must.Do(t, os.RemoveAll(folder))
	own := must.Get(results.OpenStore(folder))(t)
	_, release, err := own.Claim(batch[:1])
	must.Do(t, err)
	fails(t, exitFailure, "task 0 lacks 1 experiment, which another run of it has claimed in "+folder, "task", job, "0")
	must.Do(t, release())
	succeeds(t, "", "task", job, "0")
	for _, want := range []string{"3 results added", "0 results added"} {
		succeeds(t, want, "merge", filepath.Join(job, "results"), "--store", store)
		holds(t, store, 3)
	}
	succeeds(t, "0 to run", args...)
}

func TestSubmit(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "sbatch"), []byte("#!/bin/sh\necho Submitted \"$1\"\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	stdout := succeeds(t, "", append(jobArray(dir, filepath.Join(dir, "job")), "--submit")...)
	if stdout != "Submitted "+filepath.Join(dir, "job", "job.sh")+"\n" {
		t.Errorf("sbatch was given %q", stdout)
	}
}
