package experiment

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/spec"
)

// A Store keeps results and predictions in a folder:
//
//	TASK-PRESET.csv                a row for each result
//	groups.jsonl                   a line for each group of experiments: what they are
//	runs.csv                       a row for each run of the program: where and when it trained experiments
//	predictions/ID.safetensors.gz  what the networks of an experiment said
//	.running, .work                what is reserved by a process, and what is in progress
//
// Lines are only ever added. Files of lines may be compressed (gzip -n9 *.csv *.jsonl) while no process uses the store: new
// lines then go into new files beside them. Several processes may use a store at a time, also on several machines that share
// the folder, if its file system has locks.
type Store struct {
	Folder string
}

const (
	groupsName        = "groups.jsonl"
	runsName          = "runs.csv"
	csvExtension      = ".csv"
	predictionsFolder = "predictions"
	runningFolder     = ".running"
	workFolder        = ".work"
)

// compressed ends the names of files of lines that gzip has compressed.
const compressed = ".gz"

// wholeLines returns the lines of a file that processes add to, without a last one that is unfinished.
func wholeLines(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err == nil && strings.HasSuffix(path, compressed) {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(content)); err == nil {
			content, err = io.ReadAll(z)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("experiment: reading %s: %w", path, err)
	}
	return content[:bytes.LastIndexByte(content, '\n')+1], nil
}

// addLines adds to a file what choose makes of the whole lines that are there, while no other process adds some. It makes
// the file if need be, and removes an unfinished last line.
func addLines(path string, choose func(before []byte) ([]byte, error)) (err error) {
	// The lock is on the file itself: lines are only added, so it is never replaced.
	lock := flock.New(path, flock.SetPermissions(0o666))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("experiment: locking %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	before, err := wholeLines(path)
	if err != nil {
		return err
	}
	added, err := choose(before)
	if err != nil || len(added) == 0 {
		return err
	}
	if err := os.Truncate(path, int64(len(before))); err != nil {
		return fmt.Errorf("experiment: removing the unfinished last line of %s: %w", path, err)
	}
	return appendTo(path, added)
}

// appendTo adds to the end of a file, which it makes if there is none.
func appendTo(path string, added []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err == nil {
		_, err = f.Write(added) // with one call, so that a kill leaves whole lines, and at most the beginning of one
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("experiment: appending to %s: %w", path, err)
	}
	return nil
}

// Results returns the results by the identities of their experiments. It is an error if two rows have one identity and
// different numbers.
func (s *Store) Results() (map[string]Result, error) {
	if s.Folder == "" {
		return nil, errors.New("experiment: the Store has no Folder")
	}
	entries, err := os.ReadDir(s.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("experiment: reading the store: %w", err)
	}
	var list []Result
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), compressed)
		if name == runsName || !strings.HasSuffix(name, csvExtension) || entry.IsDir() {
			continue
		}
		if err := s.read(entry.Name(), func(content []byte) error {
			return eachRow(content, func(columns, row []string) error {
				r, err := result(columns, row)
				list = append(list, r)
				return err
			})
		}); err != nil {
			return nil, err
		}
	}
	// After the results: the lines of group and run are written before the result.
	groups, runs := map[string]groupLine{}, map[string][]string{}
	if err := s.readBoth(groupsName, func(content []byte) error {
		for line := range bytes.Lines(content) {
			var g groupLine
			if err := json.Unmarshal(line, &g); err != nil {
				return fmt.Errorf("line %d: %w", len(groups)+1, err)
			}
			groups[g.Group] = g
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := s.readBoth(runsName, func(content []byte) error {
		return eachRow(content, func(_, row []string) error {
			runs[row[0]] = row
			return nil
		})
	}); err != nil {
		return nil, err
	}
	all := make(map[string]Result, len(list))
	for _, r := range list {
		group, has := groups[r.Group]
		row, ran := runs[r.run]
		if !has || !ran {
			return nil, fmt.Errorf("experiment: the group %s or run %s of a result is not in %s or %s; restore these files", r.Group, r.run, groupsName, runsName)
		}
		if err := r.ran(row); err != nil {
			return nil, fmt.Errorf("experiment: %s: the run %s: %w", runsName, r.run, err)
		}
		r.Group, r.run, r.Task, r.Method, r.Preset, r.file = group.Group, row[0], group.Task, group.Method, group.Preset, s.predictionsFile(r.ID) // not parts of the row's text
		if before, has := all[r.ID]; has {
			if difference := r.Difference(before); difference != "" {
				return nil, fmt.Errorf("experiment: two rows are results of one experiment, %s, with different numbers: %s; remove one of them", r.ID, difference)
			}
		}
		all[r.ID] = r
	}
	return all, nil
}

// read calls decode with the whole lines of a file, if it is there.
func (s *Store) read(name string, decode func(content []byte) error) error {
	path := filepath.Join(s.Folder, name)
	content, err := wholeLines(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = decode(content)
	}
	if err != nil {
		err = fmt.Errorf("experiment: %s: %w", path, err)
	}
	return err
}

// readBoth is read for a file that is compressed and one of newer lines beside it.
func (s *Store) readBoth(name string, decode func(content []byte) error) error {
	return errors.Join(s.read(name+compressed, decode), s.read(name, decode))
}

// keep keeps the predictions of a result, which are then read from there, and its row.
func (s *Store) keep(r *Result, g groupLine) error {
	r.file = s.predictionsFile(r.ID)
	err := os.MkdirAll(filepath.Dir(r.file), 0o777)
	if err == nil {
		err = atomicfile.Write(r.file, r.predictions.encode)
	}
	if err != nil {
		return fmt.Errorf("experiment: keeping predictions: %w", err)
	}
	r.predictions = nil
	group, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if err := s.addOnce(groupsName, nil, append(group, '\n'), fmt.Appendf(nil, `{"group":%q,`, g.Group)); err != nil {
		return err
	}
	_, run := r.row(resultColumns, "")
	line := text(run)
	if err := s.addOnce(runsName, text(runColumns), line, line); err != nil {
		return err
	}
	for n := 1; ; n++ {
		kept := false
		if err := addLines(filepath.Join(s.Folder, fileName(g, n)), func(before []byte) ([]byte, error) {
			added := []byte(nil)
			if len(before) == 0 {
				before = text(slices.Concat(resultColumns, slices.Sorted(maps.Keys(r.Metrics))))
				added = before
			}
			columns, err := csv.NewReader(bytes.NewReader(before)).Read()
			if err != nil {
				return nil, err
			}
			for name := range r.Metrics {
				if !slices.Contains(columns, name) {
					return nil, nil
				}
			}
			row, _ := r.row(columns, g.Method)
			kept = true
			return append(added, text(row)...), nil
		}); err != nil || kept {
			return err
		}
	}
}

// addOnce adds a line to a file, unless the file has a line with the given beginning. A new file begins with the head.
func (s *Store) addOnce(name string, head, line, beginning []byte) error {
	return addLines(filepath.Join(s.Folder, name), func(before []byte) ([]byte, error) {
		if bytes.Contains(before, beginning) {
			return nil, nil
		}
		if len(before) > 0 {
			head = nil
		}
		return slices.Concat(head, line), nil
	})
}

// fileName is the name of the file for results of a group: the names of its task and preset, in letters that file names
// can have. Only for people does it matter which file a row is in. There are more such files where a result has a metric
// that an earlier one has no column for.
func fileName(g groupLine, n int) string {
	words := strings.FieldsFunc(strings.ToLower(g.Task+" "+g.Preset), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	if name == "" || name+csvExtension == runsName {
		name = "results"
	}
	name = name[:min(len(name), 100)]
	if n > 1 {
		name += fmt.Sprint("-", n)
	}
	return name + csvExtension
}

func (s *Store) predictionsFile(id string) string {
	return filepath.Join(s.Folder, predictionsFolder, id+predictionsExtension)
}

// reserve sets experiments apart for the caller until release is called, by a locked file for each; free are those that nobody
// else has reserved, in this process or another. What a process has reserved is free again when it ends, however it does.
func (s *Store) reserve(ids []string) (free []string, release func() error, err error) {
	var locks []*flock.Flock
	release = func() (err error) {
		for _, lock := range locks {
			err = errors.Join(err, os.Remove(lock.Path()), lock.Close()) // removed while it is locked, so that it is nobody else's
		}
		return err
	}
	folder := filepath.Join(s.Folder, runningFolder)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, nil, fmt.Errorf("experiment: making the folder for what is running: %w", err)
	}
	for _, id := range ids {
		lock := flock.New(filepath.Join(folder, id+".lock"), flock.SetPermissions(0o666))
		locked, err := lock.TryLock()
		mine, mineErr := lock.Stat()
		there, thereErr := os.Stat(lock.Path()) // not mine if who had it has removed it meanwhile
		if locked && mineErr == nil && thereErr == nil && os.SameFile(mine, there) {
			locks, free = append(locks, lock), append(free, id)
		} else if err := errors.Join(err, lock.Close()); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("experiment: reserving %s: %w", id, err), release())
		}
	}
	return free, release, nil
}

// work is the folder of what is in progress, for experiments that are trained together. An experiment that is trained alone
// finds its own whatever else is in the list. Replicas of one graph have one checkpoint, whose tensors have an axis for all
// of them: in another list they begin anew, which costs the time of small networks and changes no result.
func (s *Store) work(ids []string) string {
	return filepath.Join(s.Folder, workFolder, spec.Digest([]byte(strings.Join(ids, ""))))
}

// The columns of a file of results before those of the metrics, and of the file of runs.
var (
	resultColumns = []string{"group", "method", "split", "seed", "run", "seconds", "diverged"}
	runColumns    = []string{"run", "backend", "device", "version", "batched", "examples_per_second", "finished"}
)

// eachRow calls each with the rows of a CSV file, whose first one names its columns.
func eachRow(content []byte, each func(columns, row []string) error) error {
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil {
		return err
	}
	for i := 1; i < len(rows); i++ {
		if err := each(rows[0], rows[i]); err != nil {
			return fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	return nil
}

// result is the result of a row, with the name of its run alone.
func result(columns, row []string) (r Result, err error) {
	if len(columns) < len(resultColumns) || !slices.Equal(columns[:len(resultColumns)], resultColumns) {
		return r, fmt.Errorf("the first columns are %q; want %q", columns, resultColumns)
	}
	var problems [3]error
	r.Group, r.run, r.Reason, r.Diverged = row[0], row[4], strings.Clone(row[6]), row[6] != ""
	r.Split, problems[0] = strconv.Atoi(row[2])
	r.Seed, problems[1] = strconv.ParseUint(row[3], 10, 64)
	r.WallSeconds, problems[2] = strconv.ParseFloat(row[5], 64)
	r.ID = idOf(r.Group, r.Split, r.Seed)
	if err := errors.Join(problems[:]...); err != nil {
		return r, err
	}
	r.Metrics = make(map[string]float64, len(columns)-len(resultColumns))
	for i := len(resultColumns); i < len(columns); i++ {
		if row[i] == "" {
			continue
		}
		if r.Metrics[columns[i]], err = strconv.ParseFloat(row[i], 64); err != nil {
			return r, err
		}
	}
	return r, nil
}

// row is the inverse of result. The run is the row of runs that it belongs to.
func (r Result) row(columns []string, method string) (row, run []string) {
	run = []string{"", r.Backend, r.Device, r.Version, strconv.Itoa(r.Batched), number(r.ExamplesPerSecond), r.Finished.UTC().Format(time.RFC3339)}
	run[0] = spec.Digest(fmt.Appendf(nil, "%q", run[1:]))
	row = []string{r.Group, method, strconv.Itoa(r.Split), strconv.FormatUint(r.Seed, 10), run[0], strconv.FormatFloat(r.WallSeconds, 'g', 6, 64), r.Reason}
	for _, name := range columns[len(resultColumns):] {
		row = append(row, r.text(name))
	}
	return row, run
}

// ran puts the run of a row of runs into a result.
func (r *Result) ran(row []string) (err error) {
	var problems [3]error
	r.Backend, r.Device, r.Version = row[1], row[2], row[3]
	r.Batched, problems[0] = strconv.Atoi(row[4])
	r.ExamplesPerSecond, problems[1] = strconv.ParseFloat(row[5], 64)
	r.Finished, problems[2] = time.Parse(time.RFC3339, row[6])
	return errors.Join(problems[:]...)
}

// text is rows as lines of CSV.
func text(rows ...[]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.WriteAll(rows) // of a buffer, which has no errors
	return b.Bytes()
}
