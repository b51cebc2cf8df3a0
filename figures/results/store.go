package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Store appends result lines to a folder. Several processes may append to one folder at a time.
type Store struct{ dir string }

// OpenStore returns the store in the folder dir, which is made if it does not exist. It is an error if nothing can be
// written there, which one wants to know before hours of training.
func OpenStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		if target, link := os.Readlink(dir); link == nil {
			return nil, fmt.Errorf("results: making the store %s, a link to %s, where there is no folder; remove the link or restore the folder: %w", dir, target, err)
		}
		return nil, fmt.Errorf("results: making the store %s: %w", dir, err)
	}
	probe, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return nil, fmt.Errorf("results: the store %s cannot be written to: %w", dir, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("results: the store %s cannot be written to: %w", dir, err)
	}
	return &Store{dir: dir}, nil
}

// Dir returns the store's folder.
func (s *Store) Dir() string { return s.dir }

// FileName is the name of the file that holds an experiment's line: study, data set and fidelity,
// with the scale after another "-" unless it is Full, so that quick runs and their like can be told apart and
// thrown away.
func FileName(e Experiment) string {
	name := e.Study + "-" + e.Dataset + "-" + e.Fidelity
	if e.Scale != Full {
		name += "-" + e.Scale
	}
	return name + extension
}

// Missing lists those of the experiments of which the store has no result now, in their order.
func (s *Store) Missing(list []Experiment) ([]Experiment, error) {
	var files []string
	for _, e := range list {
		path := filepath.Join(s.dir, FileName(e))
		if _, err := os.Lstat(path); err == nil && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	lines, _, err := Read(files...)
	if err != nil {
		return nil, err
	}
	return ByID(lines).Missing(list), nil
}

// Append adds the result's line and makes it durable before it returns. It adds nothing and returns
// false when the store holds a line of that experiment already, and if that has other metrics the note
// says which. A last line that a killed process left unfinished is removed first, and note says so; the
// note is empty otherwise.
//
// A result whose ID is not its experiment's, or which holds a NaN or infinite number without being
// marked as diverged, is refused.
func (s *Store) Append(r Result) (added bool, note string, err error) {
	n, note, err := s.AppendAll([]Result{r})
	return n > 0, note, err
}

// AppendAll is Append for several results, in their order, and tells how many were added. Those of one file are written
// together: a kill leaves the first of them. If it fails, those of other files may have been added.
func (s *Store) AppendAll(list []Result) (added int, note string, err error) {
	var files []string
	in := make(map[string][]Result)
	for _, r := range list {
		path := filepath.Join(s.dir, FileName(r.Experiment))
		if in[path] == nil {
			files = append(files, path)
		}
		in[path] = append(in[path], r)
	}
	var notes []string
	for _, path := range files {
		n, note, err := s.appendTo(path, in[path])
		added += n
		if note != "" {
			notes = append(notes, note)
		}
		if err != nil {
			return added, strings.Join(notes, "\n"), err
		}
	}
	return added, strings.Join(notes, "\n"), nil
}

// appendTo is AppendAll for results of one file.
func (s *Store) appendTo(path string, list []Result) (added int, note string, err error) {
	encoded := make([][]byte, len(list))
	for i, r := range list {
		if encoded[i], err = r.encode(); err != nil {
			return 0, "", err
		}
	}
	var notes []string
	err = resultFile(path).Add(func(before Lines[Result]) (lines []byte, err error) {
		if before.Torn {
			notes = append(notes, fmt.Sprintf("%s: removed line %d, which a killed run left unfinished", path, len(before.Values)+1))
		}
		known := ByID(before.Values)
		for i, r := range list {
			if stored, has := known[r.ID]; has {
				now, err := decode(encoded[i])
				if err != nil {
					return nil, fmt.Errorf("results: reading %v back: %w", r.Experiment, err)
				}
				if difference := now.Difference(stored, nil); difference != "" {
					notes = append(notes, fmt.Sprintf("%s has another result of %s %v, which stays: %s; to keep both, use another folder", path, r.ID, r.Experiment, difference))
				}
				continue
			}
			known[r.ID] = r
			lines = append(lines, encoded[i]...)
			added++
		}
		return lines, nil
	})
	if err != nil {
		added = 0
	}
	return added, strings.Join(notes, "\n"), err
}

// moduleLine begins this project's go.mod.
const moduleLine = "module densityuncertainty\n"

// DefaultDir is the folder of the committed results, figures/runs of the checkout that holds the
// working directory.
func DefaultDir() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("results: finding the working directory: %w", err)
	}
	for dir := start; ; {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && len(content) >= len(moduleLine) && string(content[:len(moduleLine)]) == moduleLine {
			return filepath.Join(dir, "figures", "runs"), nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("results: looking for the checkout: %w", err)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("results: %s is not inside a checkout of densityuncertainty; name the store's folder", start)
		}
		dir = parent
	}
}
