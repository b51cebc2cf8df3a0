package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"densityuncertainty/figures/results"
)

// A Store keeps results and predictions in a folder:
//
//	groups.jsonl                   a line for each group of experiments: what they are
//	TASK-PRESET.jsonl              a line for each result
//	predictions/ID.safetensors.gz  what the networks of an experiment said
//	.running, .work                what is reserved by a process, and what is in progress
//
// Lines are only ever added, and have checksums. Several processes may use a store at a time, also on several machines
// that share the folder, if its file system has locks.
type Store struct {
	Folder string

	mu         sync.Mutex // of what follows
	files      map[string]*results.LineFile[Result]
	groupsFile *results.LineFile[groupLine]
}

const (
	groupsName        = "groups.jsonl"
	resultsExtension  = ".jsonl"
	predictionsFolder = "predictions"
	runningFolder     = ".running"
	workFolder        = ".work"
)

// open makes the folder. It is an error if nothing can be written there, which one wants to know before hours of
// training.
func (s *Store) open() error {
	if s.Folder == "" {
		return errors.New("experiment: the Store has no Folder")
	}
	return results.MakeFolder(s.Folder)
}

// Results returns the results by the identities of their experiments. It is an error if two lines have one identity and
// different numbers, or if a line was changed.
func (s *Store) Results() (map[string]Result, error) {
	entries, err := os.ReadDir(s.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("experiment: reading the store: %w", err)
	}
	all, places := map[string]Result{}, map[string]string{}
	for _, entry := range entries {
		if entry.Name() == groupsName || !strings.HasSuffix(entry.Name(), resultsExtension) || entry.IsDir() {
			continue
		}
		path := filepath.Join(s.Folder, entry.Name())
		lines, err := s.resultFile(path).Read()
		if err != nil {
			return nil, err
		}
		for i, line := range lines.Values {
			place := fmt.Sprintf("%s:%d", path, i+1)
			if before, has := all[line.ID]; has {
				if difference := line.Difference(before); difference != "" {
					return nil, fmt.Errorf("experiment: %s and %s are results of one experiment, %s, with different numbers: %s; remove one of them", places[line.ID], place, line.ID, difference)
				}
				continue
			}
			all[line.ID], places[line.ID] = line, place
		}
	}
	groups, err := s.groups() // after the results: a group's line is written before the first result
	if err != nil {
		return nil, err
	}
	for id, line := range all {
		group, has := groups[line.Group]
		if !has {
			return nil, fmt.Errorf("experiment: %s is a result of the group %s, which is not in %s; restore that file", places[id], line.Group, groupsName)
		}
		line.Task, line.Method, line.Preset, line.file = group.Task, group.Method, group.Preset, s.predictionsFile(id)
		all[id] = line
	}
	return all, nil
}

func (s *Store) resultFile(path string) *results.LineFile[Result] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]*results.LineFile[Result]{}
	}
	if s.files[path] == nil {
		s.files[path] = &results.LineFile[Result]{Path: path, Decode: decodeResult}
	}
	return s.files[path]
}

func (s *Store) groupFile() *results.LineFile[groupLine] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groupsFile == nil {
		s.groupsFile = &results.LineFile[groupLine]{Path: filepath.Join(s.Folder, groupsName), Decode: decodeGroup}
	}
	return s.groupsFile
}

// groups are the lines of groups by their identities.
func (s *Store) groups() (map[string]groupLine, error) {
	read, err := s.groupFile().Read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a new store has none
		return nil, err
	}
	all := map[string]groupLine{}
	for _, g := range read.Values {
		all[g.Group] = g
	}
	return all, nil
}

// checkStored returns an error if a stored line of the same group is of another network.
func (g groupLine) checkStored(stored groupLine) error {
	if err := g.sameParameters(stored); err != nil {
		return fmt.Errorf("experiment: %s on %s has the identity of stored results, but another network: %w. "+
			"A function has only its name: give the nets.Func another Name, or the layers' type another name or field", g.Method, g.Task, err)
	}
	return nil
}

// checkNetworks is checkStored for groups that the store may have.
func (s *Store) checkNetworks(groups []*group) error {
	stored, err := s.groups()
	if err != nil {
		return err
	}
	var all problems
	for _, g := range groups {
		if before, has := stored[g.line.Group]; has {
			all.add(g.line.checkStored(before))
		}
	}
	return all.err()
}

// keep keeps the predictions of a result, which are then read from there, and its line.
func (s *Store) keep(r *Result, g groupLine) (err error) {
	r.file = s.predictionsFile(r.ID)
	if r.PredictionsSum, err = writePredictions(r.file, r.predictions); err != nil {
		return err
	}
	r.predictions = nil
	line, err := r.encode()
	if err != nil {
		return err
	}
	if err := s.keepGroup(g); err != nil {
		return err
	}
	return s.resultFile(filepath.Join(s.Folder, fileName(g))).Add(func(before results.Lines[Result]) ([]byte, error) {
		if slices.ContainsFunc(before.Values, func(stored Result) bool { return stored.ID == r.ID }) {
			return nil, fmt.Errorf("experiment: the store has a result of %s already, though this process had reserved it", r.ID)
		}
		return line, nil
	})
}

// keepGroup keeps the line of a group, unless it is there.
func (s *Store) keepGroup(g groupLine) error {
	return s.groupFile().Add(func(before results.Lines[groupLine]) ([]byte, error) {
		for _, stored := range before.Values {
			if stored.Group == g.Group {
				return nil, g.checkStored(stored)
			}
		}
		return seal(g)
	})
}

// fileName is the name of the file for results of a group: the names of its task and preset, in letters that file names
// can have. Only for people does it matter which file a line is in.
func fileName(g groupLine) string {
	words := strings.FieldsFunc(strings.ToLower(g.Task+" "+g.Preset), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	if name == "" || name+resultsExtension == groupsName {
		name = "results"
	}
	return name[:min(len(name), 100)] + resultsExtension
}

func (s *Store) predictionsFile(id string) string {
	return filepath.Join(s.Folder, predictionsFolder, id+predictionsExtension)
}

// Predictions reads what the networks of an experiment said. An error wraps ErrNoPredictions where the store does not
// have it.
func (s *Store) Predictions(e Experiment) (*Predictions, error) {
	all, err := s.Results()
	if err != nil {
		return nil, err
	}
	return s.predictions(all, e)
}

// predictions is Predictions for a store whose results were read.
func (s *Store) predictions(all map[string]Result, e Experiment) (*Predictions, error) {
	line, has := all[e.ID()]
	if !has {
		return nil, e.problem(fmt.Errorf("the store %s has no result of it: %w", s.Folder, ErrNoPredictions))
	}
	return line.Of(e).Predictions()
}

// Measure computes metrics for all experiments of a list whose predictions are at hand, without training: found has
// their numbers by the experiments' identities, and missing lists those without predictions. Runs that diverged have
// nothing to measure, and are in neither.
func (s *Store) Measure(list []Experiment, metrics ...Metric) (found map[string]map[string]float64, missing []Experiment, err error) {
	all, err := s.Results()
	if err != nil {
		return nil, nil, err
	}
	found = map[string]map[string]float64{}
	for _, e := range list {
		p, err := s.predictions(all, e)
		switch {
		case errors.Is(err, ErrNoPredictions):
			missing = append(missing, e)
			continue
		case err != nil:
			return nil, nil, err
		case p.Diverged:
			continue
		}
		if found[e.ID()], err = Measure(e, p, metrics...); err != nil {
			return nil, nil, err
		}
	}
	return found, missing, nil
}

// reserve sets experiments apart for this process until release is called; free are those that no other process has
// reserved.
func (s *Store) reserve(list []*planned) (free []*planned, release func() error, err error) {
	return results.Reserve(filepath.Join(s.Folder, runningFolder), list)
}

// work is the folder of what is in progress, for experiments that are trained together. An experiment that is trained alone
// finds its own whatever else is in the list. Replicas of one graph have one checkpoint, whose tensors have an axis for all
// of them: in another list they begin anew, which costs the time of small networks and changes no result.
func (s *Store) work(list []*planned) string {
	var ids strings.Builder
	for _, e := range list {
		ids.WriteString(e.id)
	}
	return filepath.Join(s.Folder, workFolder, digest([]byte(ids.String())))
}
