package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// extension marks the files that hold result lines.
const extension = ".jsonl"

// Read returns the result lines of files and folders, in the order given; a folder stands for its
// .jsonl files in alphabetical order. When an experiment appears more than once the first line
// counts. Notes say, for a person to read, what was passed over: repeated lines, and a last line
// that a killed process left unfinished. Any other unreadable line is an error that names file and line.
func Read(paths ...string) (lines []Result, notes []string, err error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, nil, fmt.Errorf("results: reading the store: %w", err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, nil, fmt.Errorf("results: listing %s: %w", path, err)
		}
		for _, entry := range entries {
			old := strings.HasPrefix(entry.Name(), "toy-") || strings.HasPrefix(entry.Name(), "images-") || strings.HasPrefix(entry.Name(), "uci-")
			if old && strings.HasSuffix(entry.Name(), extension) {
				files = append(files, filepath.Join(path, entry.Name()))
			}
		}
	}
	seen := make(map[string]string)
	for _, file := range files {
		parsed, err := resultFile(file).Read()
		if err != nil {
			return nil, nil, err
		}
		if parsed.Torn {
			notes = append(notes, fmt.Sprintf("%s:%d: the last line is cut short (a run was killed while writing); it is ignored and that experiment will run again", file, len(parsed.Values)+1))
		}
		again, note := 0, ""
		for i, r := range parsed.Values {
			place := fmt.Sprintf("%s:%d", file, i+1)
			if first, repeated := seen[r.ID]; repeated {
				if again++; again == 1 {
					note = fmt.Sprintf("%s: %v is already in %s", place, r.Experiment, first)
				}
				continue
			}
			seen[r.ID] = place
			lines = append(lines, r)
		}
		switch again {
		case 0:
		case 1:
			notes = append(notes, note+"; the first line counts")
		default:
			notes = append(notes, fmt.Sprintf("%s, and so with %d more of its lines; the first ones count", note, again-1))
		}
	}
	return lines, notes, nil
}

// resultFile is a file of result lines.
func resultFile(path string) LineFile[Result] { return LineFile[Result]{path, decode} }

// Committed returns the result lines of [DefaultDir], those that come with the checkout: none where
// that folder does not exist. Unlike Read it takes repeated and unfinished lines for errors, so that
// what a notebook shows is all that the files hold.
func Committed() ([]Result, error) {
	dir, err := DefaultDir()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	lines, notes, err := Read(dir)
	if err != nil {
		return nil, err
	}
	if len(notes) > 0 {
		return nil, fmt.Errorf("results: the committed lines are not in order: %s", notes[0])
	}
	return lines, nil
}
