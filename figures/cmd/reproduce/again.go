package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/tables"
)

type againCommand struct {
	selection
	Count int `default:"1" placeholder:"N" help:"Run at most N stored experiments of each group: experiments that differ in split and seed alone (default: 1)."`
	storeFlag
	GPU bool `name:"gpu" help:"Refuse to compute on anything but a GPU."`
}

// rounding is the largest relative difference of a metric that the order of sums is blamed for: a split that is trained
// alone adds in another order than splits that are trained together. Training can make more of it.
const rounding = 1e-5

// Run runs stored experiments again, and lists those that come out otherwise.
func (a againCommand) Run(ctx context.Context, c command) error {
	if a.Count < 1 {
		return usagef("--count is %d, want at least 1", a.Count)
	}
	wanted, index, err := stored(c, a.selection, a.storeFlag)
	if err != nil {
		return err
	}
	taken := map[string]int{}
	wanted = slices.DeleteFunc(wanted, func(e experiment.Experiment) bool {
		group := e.Group()
		taken[group]++
		return taken[group] > a.Count
	})
	if a.GPU {
		if err := needGPU(); err != nil {
			return err
		}
	}
	found, err := c.carryOut(ctx, experiment.Engine{}, wanted)
	var same, rounded int
	var others strings.Builder
	for _, now := range found {
		before, _ := index.Find(*now.Experiment)
		differing := differences(before.Metrics, now.Metrics)
		most := difference{}
		if len(differing) > 0 {
			most = slices.MaxFunc(differing, func(a, b difference) int { return cmp.Compare(a.relative(), b.relative()) })
		}
		text := most.String()
		switch {
		case before.Diverged != now.Diverged:
			text = fmt.Sprintf("diverged is stored as %v, and now %v", before.Diverged, now.Diverged)
		case len(differing) == 0:
			same++
			continue
		case most.relative() <= rounding:
			rounded++
			continue
		}
		fmt.Fprintf(&others, "%v: %s (stored by %s on %s, %s; now %s on %s, %s)\n", *now.Experiment, text,
			before.Version, before.Backend, before.Device, now.Version, now.Backend, now.Device)
	}
	printed := c.say(fmt.Sprintf("%sof %d runs %d come out as they are stored, and %d more but for rounding (relative differences of at most %.0e)\n",
		others.String(), len(found), same, rounded, rounding))
	if err := errors.Join(err, printed); err != nil {
		return err
	}
	if n := len(found) - same - rounded; n > 0 {
		return fmt.Errorf("%d of %d runs are not as they are stored; another backend, processor or version can be the reason", n, len(found))
	}
	return nil
}

// stored are those of the selected experiments that the store has results of.
func stored(c command, s selection, from storeFlag) (experiment.Experiments, *tables.Index, error) {
	list, err := s.experiments(c)
	if err != nil {
		return nil, nil, err
	}
	store, err := from.open()
	if err != nil {
		return nil, nil, err
	}
	index, err := tables.Read(store)
	if err != nil {
		return nil, nil, err
	}
	list = slices.DeleteFunc(list, func(e experiment.Experiment) bool { _, has := index.Find(e); return !has })
	if len(list) == 0 {
		return nil, nil, usagef("%s has none of these experiments", store.Folder)
	}
	return list, index, nil
}

// A difference is a metric whose stored value is not the one found now.
type difference struct {
	metric      string
	stored, now float64
}

func (d difference) String() string {
	return fmt.Sprintf("%s is stored as %v, and now %v", d.metric, d.stored, d.now)
}

// relative is the difference as a part of the larger value.
func (d difference) relative() float64 {
	return math.Abs(d.now-d.stored) / max(math.Abs(d.stored), math.Abs(d.now), math.SmallestNonzeroFloat64)
}

// differences are the metrics that differ, in the order of their names. A metric that only one side has does not count.
func differences(stored, now map[string]float64) (all []difference) {
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if value, has := now[name]; has && value != stored[name] {
			all = append(all, difference{name, stored[name], value})
		}
	}
	return all
}
