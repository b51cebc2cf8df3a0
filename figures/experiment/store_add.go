package experiment

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"densityuncertainty/figures/results"
)

// A Carried is a result that another store or program found, with its experiment.
type Carried struct {
	Experiment Experiment
	// Result has the metrics. The experiment decides its identity, group, split, seed and names.
	Result Result
	// Predictions are kept with the result; nil for none. Their experiment and split become those of Experiment.
	Predictions *Predictions
}

// Add adds results that were found elsewhere. One that the store has already stays as it is;
// it is an error if its numbers are others. The experiments' networks are built, so that their parameters are known.
func (s *Store) Add(ctx context.Context, list ...Carried) error {
	if err := s.open(); err != nil {
		return err
	}
	stored, err := s.Results()
	if err != nil {
		return err
	}
	groups, lines := map[string]groupLine{}, map[string][]byte{} // lines by the names of files
	for _, c := range list {
		if err := c.Experiment.Check(); err != nil {
			return err
		}
		r := c.Result
		r.Group, r.Split, r.Seed = c.Experiment.Group(), c.Experiment.Split, c.Experiment.Seed
		r.ID = idOf(r.Group, r.Split, r.Seed)
		if before, has := stored[r.ID]; has {
			if difference := r.Difference(before); difference != "" {
				return c.Experiment.problem(fmt.Errorf("the store %s has another result of it: %s", s.Folder, difference))
			}
			continue
		}
		stored[r.ID] = r
		g, has := groups[r.Group]
		if !has {
			found, err := c.Experiment.inspect(ctx)
			if err == nil {
				g, err = newGroupLine(c.Experiment, found.traits)
			}
			if err != nil {
				return err
			}
			groups[r.Group] = g
		}
		if c.Predictions != nil {
			p := *c.Predictions
			p.Experiment, p.Split = r.ID, r.Split
			if r.PredictionsSum, err = writePredictions(s.predictionsFile(r.ID), &p); err != nil {
				return err
			}
		}
		line, err := r.encode()
		if err != nil {
			return err
		}
		lines[fileName(g)] = append(lines[fileName(g)], line...)
	}
	if err := s.addGroups(groups); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		err := resultFile(filepath.Join(s.Folder, name)).Add(func(results.Lines[Result]) ([]byte, error) { return lines[name], nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// addGroups adds the lines of groups that are not there.
func (s *Store) addGroups(groups map[string]groupLine) error {
	return s.groupFile().Add(func(before results.Lines[groupLine]) (added []byte, err error) {
		for _, stored := range before.Values {
			if g, has := groups[stored.Group]; has {
				if err := g.checkStored(stored); err != nil {
					return nil, err
				}
				delete(groups, stored.Group)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(groups)) {
			line, err := seal(groups[id])
			if err != nil {
				return nil, err
			}
			added = append(added, line...)
		}
		return added, nil
	})
}
