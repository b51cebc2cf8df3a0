package experiment

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"densityuncertainty/figures/spec"
)

// The columns of a file of results before those of the metrics, and of the file of runs.
var (
	resultColumns = []string{"group", "method", "split", "seed", "run", "seconds", "diverged"}
	runColumns    = []string{"run", "backend", "device", "version", "batched", "examples_per_second", "finished"}
)

// divergedWithoutReason stands in the column "diverged" where no reason is known.
const divergedWithoutReason = "true"

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
	r.Group, r.run, r.Diverged = row[0], row[4], row[6] != ""
	if row[6] != divergedWithoutReason {
		r.Reason = strings.Clone(row[6])
	}
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
	diverged := r.Reason
	if r.Diverged {
		diverged = cmp.Or(r.Reason, divergedWithoutReason)
	}
	row = []string{r.Group, method, strconv.Itoa(r.Split), strconv.FormatUint(r.Seed, 10), run[0], strconv.FormatFloat(r.WallSeconds, 'g', 6, 64), diverged}
	for _, name := range columns[len(resultColumns):] {
		text := ""
		if v, has := r.Metrics[name]; has {
			text = number(v)
		}
		row = append(row, text)
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

// number is the shortest text that is read as the same number.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// text is rows as lines of CSV.
func text(rows ...[]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.WriteAll(rows) // of a buffer, which has no errors
	return b.Bytes()
}
