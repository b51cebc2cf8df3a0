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
	"regexp"
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
// Lines are added, and those of results get other numbers where a metric does; see Engine.Run. Files of lines may be compressed (gzip -n9 *.csv *.jsonl) while no process uses the store: new
// lines then go into new files beside them. Several processes may use a store at a time, also on several machines that share
// the folder, if its file system has locks.
type Store struct {
	Folder string
}

const (
	groupsName        = "groups.jsonl"
	runsName          = "runs.csv"
	csvExtension      = ".csv"
	jsonExtension     = ".jsonl"
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

// locked calls work with the whole lines of a file, which it makes if need be, while it holds the file's lock.
func locked(path string, work func(before []byte) error) error {
	for {
		lock := flock.New(path, flock.SetPermissions(0o666))
		if err := lock.Lock(); err != nil {
			return fmt.Errorf("experiment: locking %s: %w", path, err)
		}
		var before []byte
		var err error
		valid := inPlace(lock)
		if valid {
			if before, err = wholeLines(path); err == nil {
				err = work(before)
			}
		}
		if err := errors.Join(err, lock.Close()); valid || err != nil {
			return err
		}
	}
}

// inPlace says whether a locked file is still the one at its path: who had the lock before may have replaced or removed it.
func inPlace(lock *flock.Flock) bool {
	mine, err := lock.Stat()
	there, thereErr := os.Stat(lock.Path())
	return err == nil && thereErr == nil && os.SameFile(mine, there)
}

// addLines appends choose(lines) to a file while it holds the lock, and removes an unfinished last line.
func addLines(path string, choose func(before []byte) ([]byte, error)) error {
	return locked(path, func(before []byte) error {
		added, err := choose(before)
		if err != nil || len(added) == 0 {
			return err
		}
		if err := os.Truncate(path, int64(len(before))); err != nil {
			return fmt.Errorf("experiment: removing the unfinished last line of %s: %w", path, err)
		}
		return appendTo(path, added)
	})
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
// different numbers. Other files of lines than the store's own, such as conflict copies of a program that synchronises folders,
// count where the store's own have nothing else.
func (s *Store) Results() (map[string]Result, error) {
	all, _, err := s.results()
	return all, err
}

// ownFile is for the names of the store's own files of lines, and lineFile for others like them.
var (
	ownFile  = regexp.MustCompile(`^[a-z0-9-]+\.csv(\.gz)?$|^groups\.jsonl(\.gz)?$`)
	lineFile = regexp.MustCompile(`^[^.].*\.(csv|jsonl)(.*\.gz)?$`)
)

// results is Results with the names of other files of lines.
func (s *Store) results() (all map[string]Result, others []string, err error) {
	if s.Folder == "" {
		return nil, nil, errors.New("experiment: the Store has no Folder")
	}
	entries, err := os.ReadDir(s.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("experiment: reading the store: %w", err)
	}
	var list, extra []Result
	var later []string // files of groups and runs, whose lines are written before the result
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !lineFile.MatchString(name) {
			continue
		}
		own := ownFile.MatchString(name)
		if !own {
			others = append(others, name)
		}
		if strings.Contains(name, jsonExtension) || strings.TrimSuffix(name, compressed) == runsName {
			later = append(later, name)
			continue
		}
		err := s.read(name, func(content []byte) error {
			if bytes.HasPrefix(content, []byte(curveHead)) { // if Engine.Curves is the same folder
				return nil
			}
			return eachRow(content, func(columns, row []string) error {
				if slices.Equal(columns, runColumns) {
					if !slices.Contains(later, name) {
						later = append(later, name)
					}
					return nil
				}
				r, err := result(columns, row)
				if own {
					list = append(list, r)
				} else if err == nil {
					extra = append(extra, r)
				}
				return err
			})
		})
		if err != nil && own {
			return nil, nil, err
		}
	}
	groups, runs := map[string]groupLine{}, map[string][]string{}
	for _, name := range later {
		err := s.read(name, func(content []byte) error {
			if !strings.Contains(name, jsonExtension) {
				return eachRow(content, func(_, row []string) error {
					runs[row[0]] = row
					return nil
				})
			}
			for line := range bytes.Lines(content) {
				var g groupLine
				if err := json.Unmarshal(line, &g); err != nil {
					return fmt.Errorf("line %d: %w", len(groups)+1, err)
				}
				groups[g.Group] = g
			}
			return nil
		})
		if err != nil && ownFile.MatchString(name) {
			return nil, nil, err
		}
	}
	all = make(map[string]Result, len(list))
	for i, r := range slices.Concat(list, extra) {
		own := i < len(list)
		group, has := groups[r.Group]
		row, ran := runs[r.run]
		if _, known := all[r.ID]; !own && (known || !has || !ran) {
			continue
		}
		if !has || !ran {
			return nil, nil, fmt.Errorf("experiment: the group %s or run %s of a result is not in %s or %s; restore these files", r.Group, r.run, groupsName, runsName)
		}
		if err := r.ran(row); err != nil {
			return nil, nil, fmt.Errorf("experiment: %s: the run %s: %w", runsName, r.run, err)
		}
		r.Group, r.run, r.Task, r.Method, r.Preset, r.file = group.Group, row[0], group.Task, group.Method, group.Preset, s.predictionsFile(r.ID) // not parts of the row's text
		if before, has := all[r.ID]; has {
			if difference := r.Difference(before); difference != "" {
				return nil, nil, fmt.Errorf("experiment: two rows are results of one experiment, %s, with different numbers: %s; remove one of them", r.ID, difference)
			}
		}
		all[r.ID] = r
	}
	return all, others, nil
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
	file, names := fileName(g), slices.Sorted(maps.Keys(r.Metrics))
	path, head := filepath.Join(s.Folder, file), text(slices.Concat(resultColumns, names))
	if err := s.addOnce(file, nil, head, head[:len("group,")]); err != nil {
		return err
	}
	columns, err := columnsOf(wholeLines(path))
	if err == nil && slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(columns, name) }) {
		err = s.rewrite(file, func(rows [][]string) bool {
			widen(rows, r.Metrics)
			return true
		})
	}
	if err != nil {
		return err
	}
	return addLines(path, func(before []byte) ([]byte, error) {
		columns, err := columnsOf(before, nil)
		if err != nil {
			return nil, err
		}
		row, _ := r.row(columns, g.Method)
		return text(row), nil
	})
}

// columnsOf are the names of the columns in the first line of a file.
func columnsOf(lines []byte, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	return csv.NewReader(bytes.NewReader(lines)).Read()
}

// rewrite replaces a file of results if change changes its rows, the first of which names the columns, while it holds the lock.
func (s *Store) rewrite(name string, change func(rows [][]string) bool) error {
	path := filepath.Join(s.Folder, name)
	return locked(path, func(before []byte) error {
		rows, err := csv.NewReader(bytes.NewReader(before)).ReadAll()
		if err != nil || len(rows) == 0 || !change(rows) {
			return err
		}
		return atomicfile.Write(path, func(w io.Writer) error {
			if !strings.HasSuffix(name, compressed) {
				_, err := w.Write(text(rows...))
				return err
			}
			z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
			if err == nil {
				_, err = z.Write(text(rows...))
				err = errors.Join(err, z.Close())
			}
			return err
		})
	})
}

// widen adds empty columns for the metrics that rows have none for.
func widen(rows [][]string, metrics map[string]float64) {
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if slices.Contains(rows[0], name) {
			continue
		}
		for i := range rows {
			rows[i] = append(rows[i], "")
		}
		rows[0][len(rows[0])-1] = name
	}
}

// remeasured replaces the metrics of results, by their identities, in all files that have them.
func (s *Store) remeasured(changed map[string]Result) error {
	entries, err := os.ReadDir(s.Folder)
	for _, entry := range entries {
		if err != nil || !ownFile.MatchString(entry.Name()) || !strings.Contains(entry.Name(), csvExtension) {
			continue
		}
		err = s.rewrite(entry.Name(), func(rows [][]string) (is bool) {
			for i := 1; i < len(rows); i++ {
				r, notResult := result(rows[0], rows[i])
				now, has := changed[r.ID]
				if notResult != nil || !has {
					continue
				}
				is = true
				widen(rows, now.Metrics)
				for c := len(resultColumns); c < len(rows[0]); c++ {
					rows[i][c] = now.text(rows[0][c])
				}
			}
			return is
		})
	}
	return err
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
// can have. Only for people does it matter which file a row is in.
func fileName(g groupLine) string {
	words := strings.FieldsFunc(strings.ToLower(g.Task+" "+g.Preset), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	if name == "" || name+csvExtension == runsName {
		name = "results"
	}
	return name[:min(len(name), 100)] + csvExtension
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
		if locked && inPlace(lock) {
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
