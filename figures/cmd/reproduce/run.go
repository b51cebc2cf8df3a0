package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"densityuncertainty/dul/train"
	"densityuncertainty/environment"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

type runCommand struct {
	selection
	Changes []string `name:"set" sep:"none" placeholder:"PATH=VALUE" help:"Change a field of every experiment, such as Recipe.Epochs=3 or Method.Layers.InitStd=0.05; repeat it for several."`
	storeFlag
	Networks path `placeholder:"FOLDER" help:"Keep trained networks there as safetensors files."`
	GPU      bool `name:"gpu" help:"Refuse to compute on anything but a GPU."`
	DryRun   bool `help:"Only print what would run."`
}

// Run runs what the store lacks.
func (r runCommand) Run(ctx context.Context, c command) error {
	list, err := r.experiments(c)
	if err != nil {
		return err
	}
	if list, err = changed(list, r.Changes); err != nil {
		return err
	}
	store, index, err := r.open()
	if err != nil {
		return err
	}
	missing := index.Missing(list)
	c.tell("%s, %d already in %s, %d to run", results.Counted(len(list), "experiment", "experiments"), len(list)-len(missing), store.Folder, len(missing))
	if least := cifar.Roofline(missing); r.GPU && least > 0 {
		c.tell("on an H100 at least %s, by the sizes of what its kernels move and multiply; expect two or three times as long", least.Round(time.Minute))
	}
	if r.DryRun {
		var plan strings.Builder
		for _, e := range missing {
			fmt.Fprintln(&plan, e.ID(), e)
		}
		return c.say(plan.String())
	}
	if err := needGPU(r.GPU); err != nil {
		return err
	}
	if len(missing) == 0 {
		return nil
	}
	engine := experiment.Engine{Store: store, Networks: string(r.Networks)}
	found, err := c.carryOut(ctx, engine, missing)
	c.tell("%s, %d done now", results.Counted(len(missing), "experiment", "experiments"), len(found))
	if err != nil {
		return err
	}
	return divergence(found)
}

// divergence is an error that counts the results that diverged by their reasons; nil if there are none.
func divergence(list []experiment.Result) error {
	byReason, n := map[string][]experiment.Result{}, 0
	for _, r := range list {
		if r.Diverged {
			byReason[r.Reason] = append(byReason[r.Reason], r)
			n++
		}
	}
	if n == 0 {
		return nil
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		r := byReason[reason][0]
		reasons = append(reasons, fmt.Sprintf("%d: %s (%s on %s, split %d)", len(byReason[reason]), reason, r.Method, r.Task, r.Split))
	}
	return fmt.Errorf("%w: %d of %s\n  %s", train.ErrDiverged, n, results.Counted(len(list), "experiment", "experiments"), strings.Join(reasons, "\n  "))
}

// carryOut runs experiments and reports on them.
func (c command) carryOut(ctx context.Context, engine experiment.Engine, list experiment.Experiments) ([]experiment.Result, error) {
	engine.Progress, engine.Notes = (&reporter{tell: c.tell, now: time.Now}).progress, func(text string) { c.tell("%s", text) }
	return engine.Run(ctx, list...)
}

// needGPU is an error if a GPU is wanted and computations do not run on one.
func needGPU(wanted bool) error {
	if !wanted {
		return nil
	}
	if os.Getenv(environment.ConfigVariable) == "" { // what would be chosen for small networks is a processor
		if err := os.Setenv(environment.ConfigVariable, "xla:cuda"); err != nil {
			return fmt.Errorf("choosing the GPU: %w", err)
		}
	}
	backend, _, err := environment.Open()
	if err != nil {
		return fmt.Errorf("--gpu: %w", err)
	}
	defer backend.Finalize()
	if name := environment.Describe(backend).Backend; !strings.HasPrefix(name, "xla:") || !strings.Contains(name, "cuda") {
		return usagef("--gpu: this computes on %s; leave --gpu out, or set up a GPU (%s)", name, environment.ConfigVariable)
	}
	return nil
}
