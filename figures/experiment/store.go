package experiment

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"densityuncertainty/dul/train"
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
// Engine.Run appends lines. It computes the metrics of stored results again from their predictions, and replaces those that
// have changed. Files of lines may be compressed (gzip -n9 *.csv *.jsonl) while no process uses the store: new lines then go
// into new files beside them. Several processes may use a store at a time, also on several machines that share the folder,
// if its file system has locks.
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

// Results returns the results by the identities of their experiments; none if there is no folder. It is an error if two rows
// have one identity and different numbers. Files with other names than the store's own, such as a synchronising program's
// conflict copies, only add results that the store's own files lack.
func (s *Store) Results() (map[string]Result, error) {
	all, _, err := s.results(map[string]parsed{})
	return all, err
}

// ownFile matches the names of the store's own files of lines, lineFile also other names of such files.
var (
	ownFile  = regexp.MustCompile(`^[a-z0-9-]+\.csv(\.gz)?$|^groups\.jsonl(\.gz)?$`)
	lineFile = regexp.MustCompile(`^[^.].*\.(csv|jsonl)(.*\.gz)?$`)
)

// results is Results with the names of other files of lines. It reads only files that are not in before or have changed,
// and adds them there.
func (s *Store) results(before map[string]parsed) (all map[string]Result, others []string, err error) {
	if s.Folder == "" {
		return nil, nil, errors.New("experiment: the Store has no Folder")
	}
	entries, err := os.ReadDir(s.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("experiment: reading the store: %w", err)
	}
	var first, later []string // of the store's own files
	for _, entry := range entries {
		name := entry.Name()
		switch stem, _, _ := strings.Cut(name, "."); {
		case entry.IsDir() || !lineFile.MatchString(name):
		case !ownFile.MatchString(name):
			others = append(others, name)
		case stem+jsonExtension == groupsName || stem+csvExtension == runsName:
			later = append(later, name) // their lines are written before those of results
		default:
			first = append(first, name)
		}
	}
	groups, runs := map[string]groupLine{}, map[string][]string{}
	own, ownErr := s.read(first, before, groups, runs)
	extra, _ := s.read(others, before, groups, runs)
	if _, err := s.read(later, before, groups, runs); ownErr != nil || err != nil {
		return nil, nil, errors.Join(ownErr, err)
	}
	all = make(map[string]Result, len(own))
	for i, r := range slices.Concat(own, extra) {
		before, known := all[r.ID]
		group, has := groups[r.Group]
		row, ran := runs[r.run]
		if i >= len(own) && (known || !has || !ran) {
			continue
		}
		if !has || !ran {
			return nil, nil, fmt.Errorf("experiment: the group %s or run %s of a result is not in %s or %s; restore these files", r.Group, r.run, groupsName, runsName)
		}
		if err := r.ran(row); err != nil {
			return nil, nil, fmt.Errorf("experiment: %s: the run %s: %w", runsName, r.run, err)
		}
		r.Group, r.run, r.Task, r.Method, r.Preset, r.file = group.Group, row[0], group.Task, group.Method, group.Preset, s.predictionsFile(r.ID) // not parts of the row's text
		if known && r.Difference(before) != "" {
			return nil, nil, fmt.Errorf("experiment: two rows are results of one experiment, %s, with different numbers: %s; remove one of them", r.ID, r.Difference(before))
		}
		all[r.ID] = r
	}
	return all, others, nil
}

// A parsed file of lines.
type parsed struct {
	of      fs.FileInfo
	groups  []groupLine
	runs    [][]string
	results []Result
}

// read returns the results in files, and puts their groups and runs into the maps. An error names the files that failed.
func (s *Store) read(names []string, before map[string]parsed, groups map[string]groupLine, runs map[string][]string) (found []Result, err error) {
	for _, name := range names {
		path := filepath.Join(s.Folder, name)
		p, failed := parse(path, before[name])
		if failed == nil {
			before[name] = p
		} else if !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("experiment: %s: %w", path, failed))
		}
		for _, g := range p.groups {
			groups[g.Group] = g
		}
		for _, row := range p.runs {
			runs[row[0]] = row
		}
		found = append(found, p.results...)
	}
	return found, err
}

// parse reads a file of lines, unless it has not changed since it was parsed before.
func parse(path string, before parsed) (p parsed, err error) {
	if p.of, err = os.Stat(path); err != nil {
		return p, err
	}
	if b := before.of; b != nil && os.SameFile(b, p.of) && b.Size() == p.of.Size() && b.ModTime().Equal(p.of.ModTime()) {
		return before, nil
	}
	content, err := atomicfile.Lines(path)
	if err != nil || bytes.HasPrefix(content, []byte(train.CurveHead)) { // which is there if Engine.Curves is the same folder
		return p, err
	}
	if strings.Contains(filepath.Base(path), jsonExtension) {
		for line := range bytes.Lines(content) {
			var g groupLine
			err = errors.Join(err, json.Unmarshal(line, &g))
			p.groups = append(p.groups, g)
		}
		return p, err
	}
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err == nil && len(rows) > 0 && slices.Equal(rows[0], runColumns) {
		p.runs = rows[1:]
		return p, nil
	}
	for i := 1; i < len(rows) && err == nil; i++ {
		if r, failed := result(rows[0], rows[i]); failed == nil {
			p.results = append(p.results, r)
		} else {
			err = fmt.Errorf("row %d: %w", i+1, failed)
		}
	}
	return p, err
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
	_, run := r.row(resultColumns, "")
	if err := s.addOnce(groupsName, nil, append(group, '\n'), fmt.Appendf(nil, `{"group":%q,`, g.Group)); err != nil {
		return err
	}
	if err := s.addOnce(runsName, text(runColumns), text(run), text(run)); err != nil {
		return err
	}
	return atomicfile.Update(filepath.Join(s.Folder, fileName(g)), func(before []byte) ([]byte, error) {
		if len(before) == 0 {
			before = text(resultColumns)
		}
		columns, err := csv.NewReader(bytes.NewReader(before)).Read()
		for name := range r.Metrics {
			if err == nil && !slices.Contains(columns[len(resultColumns):], name) {
				var rows [][]string
				if rows, err = csv.NewReader(bytes.NewReader(before)).ReadAll(); err == nil {
					widen(rows, r.Metrics)
					before, columns = text(rows...), rows[0]
				}
			}
		}
		if err != nil {
			return nil, err
		}
		row, _ := r.row(columns, g.Method)
		return slices.Concat(before, text(row)), nil
	})
}

// widen adds empty columns for the metrics that rows, the first of which names the columns, have none for.
func widen(rows [][]string, metrics map[string]float64) {
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if slices.Contains(rows[0][len(resultColumns):], name) {
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
		err = atomicfile.Update(filepath.Join(s.Folder, entry.Name()), func(lines []byte) ([]byte, error) {
			rows, err := csv.NewReader(bytes.NewReader(lines)).ReadAll()
			is := false
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
			if is {
				lines = text(rows...)
			}
			return lines, err
		})
	}
	return err
}

// addOnce adds a line to a file, unless the file has a line with the given beginning. A new file begins with the head.
func (s *Store) addOnce(name string, head, line, beginning []byte) error {
	return atomicfile.Update(filepath.Join(s.Folder, name), func(before []byte) ([]byte, error) {
		if bytes.Contains(before, beginning) {
			return before, nil
		}
		if len(before) > 0 {
			head = nil
		}
		return slices.Concat(before, head, line), nil
	})
}

// fileName is the name of the file for results of a group: the names of its task and preset, in letters that file names
// can have. Only for people does it matter which file a row is in.
func fileName(g groupLine) string {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	name := strings.Join(strings.FieldsFunc(strings.ToLower(g.Task+" "+g.Preset), other), "-")
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
	var locks []func() error
	release = func() (err error) {
		for _, unlock := range locks {
			err = errors.Join(err, unlock())
		}
		return err
	}
	folder := filepath.Join(s.Folder, runningFolder)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, nil, fmt.Errorf("experiment: making the folder for what is running: %w", err)
	}
	for _, id := range ids {
		unlock, err := atomicfile.TryLock(filepath.Join(folder, id+".lock"))
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("experiment: reserving %s: %w", id, err), release())
		}
		if unlock != nil {
			locks, free = append(locks, unlock), append(free, id)
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

// result is the result of a row, with the name of its run alone.
func result(columns, row []string) (r Result, err error) {
	if len(columns) < len(resultColumns) || !slices.Equal(columns[:len(resultColumns)], resultColumns) {
		return r, fmt.Errorf("the first columns are %q; want %q", columns, resultColumns)
	}
	var errs [3]error
	r.Group, r.run, r.Reason, r.Diverged = row[0], row[4], strings.Clone(row[6]), row[6] != ""
	r.Split, errs[0] = strconv.Atoi(row[2])
	r.Seed, errs[1] = strconv.ParseUint(row[3], 10, 64)
	r.WallSeconds, errs[2] = strconv.ParseFloat(row[5], 64)
	r.ID = idOf(r.Group, r.Split, r.Seed)
	if err := errors.Join(errs[:]...); err != nil {
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
	var errs [3]error
	r.Backend, r.Device, r.Version = row[1], row[2], row[3]
	r.Batched, errs[0] = strconv.Atoi(row[4])
	r.ExamplesPerSecond, errs[1] = strconv.ParseFloat(row[5], 64)
	r.Finished, errs[2] = time.Parse(time.RFC3339, row[6])
	return errors.Join(errs[:]...)
}

// text is rows as lines of CSV.
func text(rows ...[]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.WriteAll(rows) // of a buffer, which has no errors
	return b.Bytes()
}

// Committed says whether the folder is figures/runs of a checkout, whose results are committed.
func (s *Store) Committed() bool {
	path, err := filepath.Abs(s.Folder)
	content, readErr := os.ReadFile(filepath.Join(path, "..", "..", "go.mod"))
	return err == nil && readErr == nil && strings.HasSuffix(filepath.ToSlash(path), "/figures/runs") && bytes.HasPrefix(content, []byte("module densityuncertainty\n"))
}
