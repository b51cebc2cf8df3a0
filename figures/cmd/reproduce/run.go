package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

const runDoc = `reproduce run carries out the experiments of a set (or of all sets) that are not in the store yet.
Stop it with Ctrl-C and run it again to go on: what is finished is stored and not repeated.
With --again it repeats experiments that are in the store, and says which come out the same.

Usage: reproduce run SET|all [flags]
`

func (c command) run(ctx context.Context, args []string) error {
	r, err := c.request(args)
	if err != nil {
		return err
	}
	return c.carryOut(ctx, r)
}

// A request is what a command line asks to be run.
type request struct {
	name    string // of the sets
	wanted  []results.Experiment
	folders folders
	batch   int
	again   int // splits of each group to compare with the store, in the place of running what it lacks
	dry     bool
	slurm   slurmFlags
	// places are those of several processes, with a batch at a time each; none for this process alone.
	places []place
}

// request reads the command line.
func (c command) request(args []string) (request, error) {
	var r request
	flags := newFlags("run")
	methods := flags.String("methods", "", "only these `methods`, separated by commas")
	datasets := flags.String("datasets", "", "only these `data sets`, separated by commas")
	splits := flags.String("splits", "", "only these `splits`, for example 0-4 or 0,3,7")
	seeds := flags.String("seeds", "", "only these `seeds`, for example 0-2")
	fidelity := flags.String("fidelity", "", "only this `fidelity`: paper or released")
	scale := flags.String("scale", "", "only this `scale`: "+strings.Join(results.Scales(), ", ")+"; quick is a small run that is never compared with the paper (default the set's own: full where it has that)")
	changes := changeFlags(flags)
	r.folders.flags(flags)
	r.slurm.flags(flags)
	flags.IntVar(&r.batch, "batch", 0, "train at most this `many` splits together, 0 for all")
	flags.IntVar(&r.again, "again", 0, "run so `many` splits of each group that the store has once more, and compare: nothing is stored")
	devices := flags.String("devices", "", "run in several processes, one for each of these `GPUs`, such as 0,1,2; a number that is repeated has as many")
	processes := flags.Int("processes", 0, "run in so `many` processes, each with its share of the processor's cores; small networks fill one core")
	flags.BoolVar(&r.dry, "dry-run", false, "only print what would run")
	positional, err := c.parse(flags, runDoc, args)
	if err != nil {
		return r, err
	}
	wanted, err := selected("run", "set", sets(), func(s results.Set) string { return s.Name }, positional)
	if err != nil {
		return r, err
	}
	var lacks []error
	for i, set := range wanted {
		if set.Lacks != "" {
			lacks = append(lacks, fmt.Errorf("the set %s is not complete: %s", set.Name, set.Lacks))
		}
		if *scale == "" && len(set.Experiments) > 0 {
			wanted[i].Experiments = set.At(set.Experiments[0].Scale)
		}
	}
	r.name, r.wanted = positional[0], results.Union(wanted...)
	filter := results.Filter{Methods: words(*methods), Datasets: words(*datasets), Fidelity: *fidelity, Scale: *scale}
	if filter.Splits, err = parseNumbers("splits", *splits); err != nil {
		return r, err
	}
	numbers, err := parseNumbers("seeds", *seeds)
	if err != nil {
		return r, err
	}
	for _, n := range numbers {
		filter.Seeds = append(filter.Seeds, uint64(n))
	}
	if err := checkFilter(filter); err != nil {
		return r, err
	}
	if r.wanted, err = selectBy(filter, r.name, r.wanted); err != nil {
		return r, usageError{errors.Join(append([]error{err}, lacks...)...)}
	}
	for _, lack := range lacks {
		c.print(c.stderr, lack.Error()+"\n", exitOK)
	}
	changed, rescaled, err := changes.apply(r.wanted)
	if err != nil {
		return r, err
	}
	if rescaled > 0 {
		c.print(c.stderr, fmt.Sprintf("%s so changed that the scale is %s\n", results.Counted(rescaled, "experiment is", "experiments are"), results.Small), exitOK)
	}
	r.wanted = results.Union(results.Set{Experiments: changed}) // a change can make two equal
	if r.batch < 0 {
		return r, usagef("--batch is %d, want at least 1, or 0 for all", r.batch)
	}
	if r.again < 0 {
		return r, usagef("--again is %d, want at least 1", r.again)
	}
	if r.again > 0 {
		if err := onlyCompares(flags); err != nil {
			return r, err
		}
	}
	if r.places, err = gpuPlaces(words(*devices)); err != nil {
		return r, err
	}
	switch {
	case *processes < 0:
		return r, usagef("--processes is %d, want at least 1", *processes)
	case *processes > 0 && len(r.places) > 0:
		return r, usagef("--processes is for the processor and --devices for GPUs; give one of them")
	case *processes > 0:
		r.places = processorPlaces(*processes)
	}
	if r.folders.networks != "" && !slices.ContainsFunc(r.wanted, func(e results.Experiment) bool { return e.Study == results.Images }) {
		return r, usagef("--networks is for image runs, and none of these experiments is one")
	}
	if err := r.slurm.check(flags); err != nil {
		return r, err
	}
	return r, r.folders.fill()
}

// carryOut runs, lists or hands to Slurm the wanted experiments that the store lacks.
func (c command) carryOut(ctx context.Context, r request) error {
	lines, err := c.readIfThere(r.folders.store)
	if err != nil {
		return err
	}
	if r.again > 0 {
		return c.again(ctx, r, lines)
	}
	missing := results.ByID(lines).Missing(r.wanted)
	batches := jobs.Batches(missing, r.batch)
	c.print(c.stderr, fmt.Sprintf("%s, %d already in %s, %d to run in %s\n", results.Counted(len(r.wanted), "experiment", "experiments"),
		len(r.wanted)-len(missing), r.folders.store, len(missing), results.Counted(len(batches), "batch", "batches")), exitOK)
	if r.dry {
		return c.plan(missing)
	}
	switch {
	case len(missing) == 0:
		return nil
	case r.slurm.engine == engineSlurm:
		return c.writeJob(ctx, r, batches)
	case len(r.places) > 0:
		return c.inProcesses(ctx, r, batches)
	}
	return c.train(ctx, r.folders, batches)
}

// plan prints what would be run, and where that is much, the memory that it needs.
func (c command) plan(missing []results.Experiment) error {
	said := make(map[string]bool)
	for _, e := range missing {
		if _, err := fmt.Fprintln(c.stdout, e.ID(), e); err != nil {
			return fmt.Errorf("printing the plan: %w", err)
		}
		if e.Study != results.Images || said[e.Group()] {
			continue
		}
		said[e.Group()] = true
		p, m, err := imageProtocol(e)
		if err != nil {
			return err
		}
		needs, err := p.Memory(m)
		if err != nil {
			return fmt.Errorf("%v: %w", e, err)
		}
		if needs != "" {
			c.print(c.stderr, fmt.Sprintf("%v: %s\n", e, needs), exitOK)
		}
	}
	return nil
}

// readIfThere reads the lines of a store that may not exist yet.
func (c command) readIfThere(store string) ([]results.Result, error) {
	if _, err := os.Stat(store); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return c.read(paths{store})
}

// train carries out batches in this process.
func (c command) train(ctx context.Context, at folders, batches [][]results.Experiment) error {
	store, err := results.OpenStore(at.store)
	if err != nil {
		return err
	}
	runner, report, err := c.runnerFor(at, batches)
	if err != nil {
		return err
	}
	return jobs.All(ctx, runner, removingCheckpoints{store, at}, batches, report)
}

// runnerFor is what carries out batches in this process, and what reports on them.
func (c command) runnerFor(at folders, batches [][]results.Experiment) (jobs.Runner, *jobs.Reporter, error) {
	nowhere := studiesOn(jobs.Machine{})
	report := jobs.NewReporter(c.stderr, isTerminal(c.stderr), time.Now, nowhere, batches)
	runner, err := c.newRunner(settings{at, jobs.WorkOf(nowhere, batches), report.Note})
	return runner, report, err
}

// selectBy are the experiments of the sets called name that pass the filter. Where there are none it says which flag takes
// away the last, and what it could be.
func selectBy(f results.Filter, name string, all []results.Experiment) ([]results.Experiment, error) {
	for _, by := range []struct {
		flag   string
		filter results.Filter
		of     func(results.Experiment) string
	}{
		{"scale", results.Filter{Scale: f.Scale}, func(e results.Experiment) string { return e.Scale }},
		{"fidelity", results.Filter{Fidelity: f.Fidelity}, func(e results.Experiment) string { return e.Fidelity }},
		{"methods", results.Filter{Methods: f.Methods}, func(e results.Experiment) string { return e.Method }},
		{"datasets", results.Filter{Datasets: f.Datasets}, func(e results.Experiment) string { return e.Dataset }},
		{"splits", results.Filter{Splits: f.Splits}, func(e results.Experiment) string { return strconv.Itoa(e.Split) }},
		{"seeds", results.Filter{Seeds: f.Seeds}, func(e results.Experiment) string { return strconv.FormatUint(e.Seed, 10) }},
	} {
		left := by.filter.Apply(all)
		if len(left) == 0 {
			var there []string
			for _, e := range all {
				if value := by.of(e); !slices.Contains(there, value) {
					there = append(there, value)
				}
			}
			return nil, fmt.Errorf("--%s: %s has no such experiment; with the other flags there are %s", by.flag, name, strings.Join(there, ", "))
		}
		all = left
	}
	return all, nil
}

// checkFilter finds misspelt names, which would otherwise select nothing.
func checkFilter(f results.Filter) error {
	check := func(flag string, values, allowed []string) error {
		for _, v := range values {
			if !slices.Contains(allowed, v) {
				return usagef("--%s: unknown %q, want %s", flag, v, strings.Join(allowed, ", "))
			}
		}
		return nil
	}
	if err := check("methods", f.Methods, methods.All().Names()); err != nil {
		return err
	}
	if err := check("datasets", f.Datasets, datasetNames()); err != nil {
		return err
	}
	if f.Fidelity != "" {
		if err := check("fidelity", []string{f.Fidelity}, []string{results.Paper, results.Released}); err != nil {
			return err
		}
	}
	if f.Scale != "" {
		return check("scale", []string{f.Scale}, results.Scales())
	}
	return nil
}

// words splits a list at commas; an empty text is an empty list.
func words(text string) []string {
	if text == "" {
		return nil
	}
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// maxRange bounds a range, so that a slip of the finger does not fill the memory.
const maxRange = 1000

// parseNumbers reads numbers and ranges: "0-4,7" is 0, 1, 2, 3, 4, 7.
func parseNumbers(flag, text string) ([]int, error) {
	var list []int
	for _, word := range words(text) {
		from, to, isRange := strings.Cut(word, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first < 0 || last < first || last-first > maxRange {
			return nil, usagef("--%s: %q is not a number or a range such as 0-4, of at most %d", flag, word, maxRange)
		}
		for s := first; s <= last; s++ {
			list = append(list, s)
		}
	}
	return list, nil
}

// isTerminal reports whether w is a terminal rather than a file, pipe or buffer.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// folders are the folders of a run.
type folders struct {
	store       string
	work        string // of checkpoints
	predictions string
	networks    string // of trained networks; "" keeps none
	keep        bool   // checkpoints of finished experiments
	withoutSVHN bool   // go on where it is missing
	gpu         bool   // refuse to compute on anything else
}

func (p *folders) flags(flags *flag.FlagSet) {
	p.storeFlags(flags)
	folderFlag(flags, &p.work, "work", "`folder` for checkpoints (default out/work of the checkout; with --store the folder work there)")
	folderFlag(flags, &p.networks, "networks", "`folder` in which image runs keep their trained networks as safetensors files (default none)")
	flags.BoolVar(&p.gpu, gpuFlag, false, "be an error unless this computes on GPUs, as the processes of --devices must")
	flags.BoolVar(&p.keep, "keep", false, "keep the checkpoints of runs that are finished")
	flags.BoolVar(&p.withoutSVHN, withoutSVHNFlag, false, "run the experiments of the table ood-svhn even if SVHN's test part is not there: its columns then stay empty")
}

// folderFlag adds a flag for a folder. An empty name is refused: it is a variable of a shell that is not set, and the
// results must not go to the default then.
func folderFlag(flags *flag.FlagSet, folder *string, name, doc string) {
	flags.Func(name, doc, func(text string) error {
		if text == "" {
			return errEmptyName
		}
		*folder = text
		return nil
	})
}

// storeFlags are those of commands that do not train.
func (p *folders) storeFlags(flags *flag.FlagSet) {
	folderFlag(flags, &p.store, "store", "`folder` of the results (default figures/runs of the checkout)")
	folderFlag(flags, &p.predictions, "predictions", "`folder` for the predictions of image runs (default the folder predictions in the store)")
}

// The names of flags that are passed on to the processes that a command starts.
const (
	withoutSVHNFlag = "without-svhn"
	gpuFlag         = "gpu"
)

// fill sets the defaults.
func (p *folders) fill() error {
	if p.store == "" {
		dir, err := defaultStore()
		if err != nil {
			return err
		}
		p.store = dir
		if p.work == "" {
			p.work = filepath.Join(dir, "..", "..", "out", "work")
		}
	}
	if p.work == "" {
		p.work = filepath.Join(p.store, "work")
	}
	if info, err := os.Stat(p.store); err == nil && !info.IsDir() {
		return fmt.Errorf("the store %s is not a folder; name one with --store", p.store)
	}
	if p.predictions == "" {
		p.predictions = filepath.Join(p.store, predictions.Folder)
	}
	return nil
}

// removingCheckpoints is a store that removes an experiment's checkpoints once its result is kept.
type removingCheckpoints struct {
	jobs.Store
	at folders
}

// Append keeps a result.
func (t removingCheckpoints) Append(r results.Result) (added bool, note string, err error) {
	added, note, err = t.Store.Append(r)
	if err != nil || t.at.keep {
		return added, note, err
	}
	if err := os.RemoveAll(jobs.WorkFolder(t.at.work, r.Experiment)); err != nil {
		// The result is safe; a folder that stays is no reason to stop.
		note = strings.TrimPrefix(note+"; ", "; ") + fmt.Sprintf("the checkpoints of %v stay: %v", r.Experiment, err)
	}
	return added, note, nil
}
