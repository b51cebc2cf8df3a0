package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"densityuncertainty/datasets/fetch"
	"densityuncertainty/environment"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/results"
)

// The engines.
const (
	engineHere  = "here"
	engineSlurm = "slurm"
)

// slurmDoc begins the description of flags that are for job arrays alone.
const slurmDoc = "slurm: "

// slurmFlags say how a job array is made.
type slurmFlags struct {
	jobs.JobArray
	engine string
	submit bool
}

func (s *slurmFlags) flags(flags *flag.FlagSet) {
	flags.StringVar(&s.engine, "engine", engineHere, "`engine`: here, or slurm to write a job array")
	flags.StringVar(&s.Folder, "slurm-dir", "", slurmDoc+"`folder` for script, tasks, logs, results and checkpoints, seen by all nodes (default out/slurm/SET here)")
	flags.StringVar(&s.Program, "program", "", slurmDoc+"`path` of this program on the nodes (default that of the running one)")
	flags.StringVar(&s.Partition, "partition", "", slurmDoc+"`partition`")
	flags.StringVar(&s.Gres, "gres", "gpu:1", slurmDoc+"generic `resources` of a task, empty for none")
	flags.IntVar(&s.CPUs, "cpus", 0, slurmDoc+"`processors` of a task")
	flags.StringVar(&s.Time, "time", "", slurmDoc+"time `limit` of a task, such as 04:00:00; a task that needs longer is requeued")
	flags.IntVar(&s.Parallel, "parallel", 0, slurmDoc+"at most this `many` tasks at a time")
	flags.Var((*paths)(&s.Lines), "sbatch", slurmDoc+"a further `line` for sbatch, such as --account=name; repeat it for several")
	flags.BoolVar(&s.submit, "submit", false, slurmDoc+"submit the job array with sbatch")
}

// check reports flags that do not fit together.
func (s *slurmFlags) check(flags *flag.FlagSet) error {
	if s.engine != engineHere && s.engine != engineSlurm {
		return usagef("--engine: unknown %q, want %s or %s", s.engine, engineHere, engineSlurm)
	}
	var err error
	flags.Visit(func(f *flag.Flag) {
		switch {
		case s.engine == engineHere && strings.HasPrefix(f.Usage, slurmDoc):
			err = usagef("--%s is for --engine %s", f.Name, engineSlurm)
		case s.engine == engineSlurm && (f.Name == "devices" || f.Name == "processes"):
			err = usagef("--%s is for --engine %s", f.Name, engineHere)
		case s.engine == engineSlurm && (f.Name == "work" || f.Name == "predictions"):
			err = usagef("--%s is for --engine %s: tasks keep checkpoints, results and predictions in the folder of the job array (--slurm-dir), "+
				"and \"reproduce merge\" brings the latter two to where its flags say", f.Name, engineHere)
		}
	})
	return err
}

// passedOn are the variables that a task needs as they are here.
var passedOn = []string{fetch.EnvData, fetch.EnvCache, environment.ConfigVariable, environment.VersionVariable,
	// Where XLA's plugins and CUDA's libraries are, and how they compute.
	"LD_LIBRARY_PATH", "PJRT_PLUGIN_LIBRARY_PATH", "XLA_FLAGS", "GOPJRT_CUDA_CHECKS", "NVIDIA_TF32_OVERRIDE"}

// writeJob writes a job array for the batches, and submits it if that was asked for.
func (c command) writeJob(ctx context.Context, r request, batches [][]results.Experiment) error {
	job := r.slurm.JobArray
	job.Name = "densityuncertainty-" + r.name
	if job.Folder == "" {
		job.Folder = filepath.Join("out", "slurm", r.name)
	}
	var err error
	if job.Folder, err = filepath.Abs(job.Folder); err != nil {
		return fmt.Errorf("finding the job array's folder: %w", err)
	}
	if job.Program == "" {
		if job.Program, err = os.Executable(); err != nil {
			return fmt.Errorf("finding this program: %w", err)
		}
		if strings.Contains(job.Program, "go-build") {
			return usagef("this program was started by \"go run\" and is gone when the job starts; build it, or name one with --program")
		}
	}
	for _, name := range passedOn {
		if value := os.Getenv(name); value != "" {
			job.Environment = append(job.Environment, name+"="+value)
		}
	}
	if r.folders.withoutSVHN {
		job.Flags = append(job.Flags, "--"+withoutSVHNFlag)
	}
	if r.folders.gpu {
		job.Flags = append(job.Flags, "--"+gpuFlag)
	}
	if r.folders.keep {
		job.Flags = append(job.Flags, "--keep")
	}
	if r.folders.networks != "" {
		networks, err := filepath.Abs(r.folders.networks)
		if err != nil {
			return fmt.Errorf("the folder for networks: %w", err)
		}
		job.Flags = append(job.Flags, "--networks="+networks)
	}
	if err := job.Write(batches); err != nil {
		return err
	}
	c.print(c.stderr, fmt.Sprintf("wrote %s with %s\n", job.Script(), results.Counted(len(batches), "task", "tasks")), exitOK)
	merge := fmt.Sprintf("When tasks are done, bring their results into the store, as often as you like:\n  reproduce merge %s --store %s\n",
		filepath.Join(job.Folder, "results"), r.folders.store)
	if !r.slurm.submit {
		c.print(c.stderr, fmt.Sprintf("Submit it with:\n  sbatch %s\n%s", job.Script(), merge), exitOK)
		return nil
	}
	sbatch := exec.CommandContext(ctx, "sbatch", job.Script())
	sbatch.Stdout, sbatch.Stderr = c.stdout, c.stderr
	if err := sbatch.Run(); err != nil {
		return fmt.Errorf("submitting %s: %w", job.Script(), err)
	}
	c.print(c.stderr, merge, exitOK)
	return nil
}

const taskDoc = `reproduce task runs one task of a job array that "reproduce run --engine slurm" wrote: the experiments of
line INDEX of its tasks.jsonl, counted from 0, but for those that the task finished before. On SIGTERM it
saves a checkpoint and ends with status 75, which asks to be requeued. Its results go to the folder, each
task's to a store of its own, unless flags say otherwise.

Usage: reproduce task FOLDER INDEX [flags]
`

func (c command) task(ctx context.Context, args []string) error {
	flags := newFlags("task")
	var given folders
	given.flags(flags)
	positional, err := c.parse(flags, taskDoc, args)
	if err != nil {
		return err
	}
	if len(positional) != 2 {
		return usagef("task wants a folder and the number of a task")
	}
	index, err := strconv.Atoi(positional[1])
	if err != nil {
		return usagef("task: %q is not the number of a task", positional[1])
	}
	batch, err := jobs.Task(positional[0], index)
	if err != nil {
		return err
	}
	store, work, kept := jobs.TaskPlaces(positional[0], index)
	at := folders{store: cmp.Or(given.store, store), work: cmp.Or(given.work, work), predictions: cmp.Or(given.predictions, kept), networks: given.networks, keep: given.keep, withoutSVHN: given.withoutSVHN, gpu: given.gpu}
	if err := c.carryOut(ctx, request{wanted: batch, folders: at}); err != nil || given.store != "" {
		return err
	}
	// The store is this task's alone: what is missing now a run of the same task is at, or one whose node died was.
	own, err := results.OpenStore(at.store)
	if err != nil {
		return err
	}
	missing, err := own.Missing(batch)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("task %d lacks %s, which another run of it has claimed in %s; start it again when that has ended",
			index, results.Counted(len(missing), "experiment", "experiments"), at.store)
	}
	return nil
}
