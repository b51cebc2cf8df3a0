package results

import (
	"bytes"
	strict "encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
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
			if strings.HasSuffix(entry.Name(), extension) {
				files = append(files, filepath.Join(path, entry.Name()))
			}
		}
	}
	seen := make(map[string]string)
	for _, file := range files {
		content, err := readLocked(file)
		if err != nil {
			return nil, nil, err
		}
		parsed, err := parse(file, content)
		if err != nil {
			return nil, nil, err
		}
		if parsed.torn {
			notes = append(notes, fmt.Sprintf("%s:%d: the last line is cut short (a run was killed while writing); it is ignored and that experiment will run again", file, len(parsed.results)+1))
		}
		again, note := 0, ""
		for i, r := range parsed.results {
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

// readLocked reads a whole file while no writer is in the middle of a line.
func readLocked(file string) (content []byte, err error) {
	if err := checkRegular(file); err != nil {
		return nil, err
	}
	lock := flock.New(file)
	if err := lock.RLock(); err != nil {
		return nil, fmt.Errorf("results: locking %s: %w", file, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	content, err = os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("results: reading %s: %w", file, err)
	}
	return content, nil
}

// parsedFile is the content of one file. Line i+1 of the file is results[i].
type parsedFile struct {
	results []Result
	length  int  // bytes of the whole lines; what follows is a torn line
	torn    bool // the last line is cut short
	open    bool // the last line is whole but for its newline
}

// parse reads the lines of a file. A last line without its newline is kept when it is whole.
func parse(file string, content []byte) (parsedFile, error) {
	var p parsedFile
	for p.length < len(content) {
		line, _, closed := bytes.Cut(content[p.length:], []byte("\n"))
		r, err := decode(line)
		switch {
		case err == nil:
			p.results = append(p.results, r)
			p.length += len(line)
			if closed {
				p.length++
			}
			p.open = !closed
		case !closed:
			p.torn = true
			return p, nil
		default:
			advice := "restore the file or remove the line"
			if errors.Is(err, strict.ErrUnknownName) {
				advice = "a newer version of this program may have written the line: use that one"
			} else if len(bytes.TrimSpace(line)) == 0 {
				err, advice = errors.New("the line is blank"), "remove it"
			}
			return parsedFile{}, fmt.Errorf("results: %s:%d: %w; %s", file, len(p.results)+1, err, advice)
		}
	}
	return p, nil
}

// checkRegular returns an error unless path is a file, or a link to one: opening a pipe would wait for ever.
func checkRegular(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, link := os.Lstat(path); link == nil {
			return fmt.Errorf("results: %s is a link to a file that is not there; remove it or restore the file", path)
		}
	}
	if err != nil {
		return fmt.Errorf("results: reading the store: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("results: %s is no regular file (%s), and cannot hold result lines; remove it", path, info.Mode().Type())
	}
	return nil
}

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
