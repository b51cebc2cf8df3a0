package jobs

import (
	"context"
	"fmt"

	"densityuncertainty/environment"
	"densityuncertainty/figures/results"
)

// LiveFor is Live on a machine that it opens for the work, with the backend that the environment chooses, and closes.
func LiveFor(ctx context.Context, work environment.Work, on func(Machine) Runner, experiments []results.Experiment, progress func(done float64, note string)) ([]results.Result, error) {
	machine, err := OpenMachine(work)
	if err != nil {
		return nil, err
	}
	defer machine.Backend.Finalize()
	return Live(ctx, on(machine), experiments, progress)
}

// Live carries out experiments and returns their results in the order of the experiments, without a
// store: for runs that are short enough to be watched, as in a notebook. It calls progress, which may
// be nil, with the fraction of all the work that is done, from 0 to 1, and a few words on what it is
// doing. The first batch that fails ends it.
func Live(ctx context.Context, runner Runner, experiments []results.Experiment, progress func(done float64, note string)) ([]results.Result, error) {
	batches := Batches(experiments, 0)
	total, before := 0.0, 0.0
	for _, batch := range batches {
		total += cost(runner, batch)
	}
	byID := make(map[string]results.Result, len(experiments))
	for _, batch := range batches {
		share := cost(runner, batch)
		report := func(done float64, note string) {
			if progress != nil {
				progress((before+min(max(done, 0), 1)*share)/total, describe(batch)+": "+note)
			}
		}
		found, err := runner.Run(ctx, batch, report)
		if err == nil {
			err = allPresent(batch, found)
		}
		if err != nil {
			return nil, fmt.Errorf("jobs: %s: %w", describe(batch), err)
		}
		for _, r := range found {
			byID[r.ID] = r
		}
		before += share
		report(0, "done")
	}
	lines := make([]results.Result, len(experiments))
	for i, e := range experiments {
		lines[i] = byID[e.ID()]
	}
	return lines, nil
}
