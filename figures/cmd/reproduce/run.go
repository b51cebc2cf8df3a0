package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"densityuncertainty/dul/train"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

type runCommand struct {
	selection
	Epochs *int `placeholder:"N" help:"Train for N epochs, in the place of each experiment's own number."`
	storeFlag
	Networks string `placeholder:"FOLDER" help:"Keep trained networks there as safetensors files."`
	DryRun   bool   `help:"Only print what would run."`
}

// Run runs what the store lacks.
func (r runCommand) Run(ctx context.Context, c command) error {
	list, err := r.experiments(c)
	if err != nil {
		return err
	}
	if r.Epochs != nil {
		if list, err = lasting(list, *r.Epochs); err != nil {
			return err
		}
	}
	store, index, err := r.open()
	if err != nil {
		return err
	}
	found, missing := index.Results(list), experiment.Experiments(nil)
	for _, r := range found {
		if r.ID == "" {
			missing = append(missing, *r.Experiment)
		}
	}
	c.tell("%s, %d already in %s, %d to run", report.Counted(len(list), "experiment", "experiments"), len(list)-len(missing), store.Folder, len(missing))
	if least := cifar.Roofline(missing); least > 0 {
		c.tell("on an H100 at least %s, by the sizes of what its kernels move and multiply; expect two or three times as long", least.Round(time.Minute))
	}
	if r.DryRun {
		var plan strings.Builder
		for _, e := range missing {
			fmt.Fprintln(&plan, e.ID(), e)
		}
		return c.say(plan.String())
	}
	if len(missing) > 0 {
		now, err := c.carryOut(ctx, experiment.Engine{Store: store, Networks: r.Networks}, missing)
		c.tell("%s, %d done now", report.Counted(len(missing), "experiment", "experiments"), len(now))
		if err != nil {
			return err
		}
		found = append(found, now...)
	}
	if bad := slices.DeleteFunc(found, func(r experiment.Result) bool { return r.Reason == "" }); len(bad) > 0 {
		reasons := map[string]int{}
		for _, r := range bad {
			reasons[r.Reason]++
		}
		text := fmt.Sprintf("%d of %s", len(bad), report.Counted(len(list), "experiment", "experiments"))
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			text += fmt.Sprintf("\n  %d: %s", reasons[reason], reason)
		}
		return fmt.Errorf("%w: %s", train.ErrDiverged, text)
	}
	return nil
}

// lasting are experiments with another number of epochs, each once. The names of their presets say so.
func lasting(list experiment.Experiments, epochs int) (experiment.Experiments, error) {
	list = list.Change(func(e *experiment.Experiment) {
		if e.Recipe.Epochs != epochs {
			e.Recipe.Epochs = epochs
			e.Preset += fmt.Sprintf(", %d epochs", epochs)
		}
	})
	for _, e := range list {
		if err := e.Check(); err != nil {
			return nil, usagef("--epochs %d: %w", epochs, err)
		}
	}
	return list.Distinct(), nil
}

// carryOut runs experiments and reports on them.
func (c command) carryOut(ctx context.Context, engine experiment.Engine, list experiment.Experiments) ([]experiment.Result, error) {
	engine.Progress, engine.Notes = (&reporter{tell: c.tell}).progress, func(text string) { c.tell("%s", text) }
	return engine.Run(ctx, list...)
}

// logEvery is how often progress is written.
const logEvery = 30 * time.Second

// A reporter writes lines of progress, with the time left, now and then.
type reporter struct {
	tell func(format string, args ...any)

	started, written time.Time
	first            float64   // how much was done when progress was first heard of
	firstAt          time.Time // from which on the speed is measured
}

// progress is experiment.Engine.Progress.
func (r *reporter) progress(done float64, note string) {
	now := time.Now()
	if r.started.IsZero() {
		r.started = now
	}
	if r.firstAt.IsZero() && done > 0 { // a run that goes on begins with what an earlier process did
		r.first, r.firstAt = done, now
	}
	if now.Sub(r.written) < logEvery {
		return
	}
	r.written = now
	head := fmt.Sprintf("%.0f%%, %v", 100*done, now.Sub(r.started).Round(time.Second))
	if done > r.first && done < 1 {
		left := time.Duration(float64(now.Sub(r.firstAt)) * (1 - done) / (done - r.first))
		head += fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	r.tell("[%s] %s", head, note)
}

// A selection says which experiments a command is about.
type selection struct {
	Name     string   `arg:"" help:"The table or figure whose runs are meant, or all. \"reproduce list\" shows them."`
	Methods  []string `sep:"none" placeholder:"NAMES" help:"Only these methods, separated by commas."`
	Datasets []string `sep:"none" placeholder:"NAMES" help:"Only these data sets, separated by commas."`
	Splits   []string `sep:"none" placeholder:"NUMBERS" help:"Only these splits, such as 0,3,7."`
	Seeds    []string `sep:"none" placeholder:"NUMBERS" help:"Only these seeds."`
}

// experiments are the selected ones, each once. It is an error if one of the names or numbers selects nothing.
func (s selection) experiments(c command) (experiment.Experiments, error) {
	exhibits, err := selected("table or figure", c.exhibits, slices.Clone, s.Name)
	if err != nil {
		return nil, err
	}
	var list experiment.Experiments
	for _, e := range exhibits {
		list = append(list, e.Runs()...)
	}
	for _, by := range []struct {
		flag   string
		wanted []string
		of     func(experiment.Experiment) string
	}{
		{"methods", s.Methods, func(e experiment.Experiment) string { return e.Method.ID() }},
		{"datasets", s.Datasets, datasetOf},
		{"splits", s.Splits, func(e experiment.Experiment) string { return strconv.Itoa(e.Split) }},
		{"seeds", s.Seeds, func(e experiment.Experiment) string { return strconv.FormatUint(e.Seed, 10) }},
	} {
		if len(by.wanted) == 0 {
			continue
		}
		wanted := strings.Split(strings.Join(by.wanted, ","), ",")
		if slices.Contains(wanted, "") {
			return nil, usagef("--%s is empty, as a variable of a shell that is not set, or has two commas in a row or one at an end: %q", by.flag, strings.Join(by.wanted, ","))
		}
		var there []string
		list = slices.DeleteFunc(list, func(e experiment.Experiment) bool {
			value := by.of(e)
			if !slices.Contains(there, value) {
				there = append(there, value)
			}
			return !slices.Contains(wanted, value)
		})
		for _, value := range wanted {
			if !slices.Contains(there, value) {
				return nil, usagef("--%s: %s has no experiments of %q; with the other flags there are %s", by.flag, s.Name, value, strings.Join(there, ", "))
			}
		}
	}
	return list.Distinct(), nil
}

// datasetOf is the name of the data set of an experiment: the name of its task without what follows a comma, such as the
// kind of splits.
func datasetOf(e experiment.Experiment) string {
	name, _, _ := strings.Cut(e.Task.Name, ",")
	return strings.ReplaceAll(name, " ", "-")
}

// selected returns choose(list) for "all", and otherwise choose of the named exhibit or part. Errors call it kind.
func selected(kind string, list tables.Exhibits, choose func(tables.Exhibits) tables.Exhibits, asked string) (tables.Exhibits, error) {
	found := list
	if asked != "all" {
		one, _ := list.Named(asked)
		found = tables.Exhibits{one}
	}
	if found = choose(found); len(found) > 0 && found[0].Name != "" {
		return found, nil
	}
	var names []string
	for _, one := range choose(list) {
		names = append(names, one.Name)
	}
	return nil, usagef("unknown %s %q, want %s or all", kind, asked, strings.Join(names, ", "))
}
