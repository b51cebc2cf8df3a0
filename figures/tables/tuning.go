package tables

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"densityuncertainty/figures/experiment"
)

// A Candidate is an experiment that tries hyperparameters on held-out examples.
type Candidate struct {
	For             []string // what they are chosen for: the first columns of a file
	Hyperparameters []string // the columns after them
	experiment.Experiment
}

// Choose returns a CSV file with these columns, separated by commas. Each For whose candidates were all run has a row: For,
// the Hyperparameters with the lowest negative log-likelihood, the first of equals, and that number with 4 decimals. A run
// that diverged is never chosen; if all did, there is no row. A result without this metric is an error.
func Choose(x *Index, columns string, candidates []Candidate) ([]byte, error) {
	var names []string
	named := map[string][]Candidate{}
	for _, c := range candidates {
		name := strings.Join(c.For, " ")
		if named[name] == nil {
			names = append(names, name)
		}
		named[name] = append(named[name], c)
	}
	rows := [][]string{strings.Split(columns, ",")}
names:
	for _, name := range names {
		var row []string
		lowest := 0.0
		for _, c := range named[name] {
			r, done := x.Find(c.Experiment)
			if !done {
				continue names
			}
			if r.Diverged {
				continue
			}
			nll, err := r.Metric(experiment.MetricNLL)
			if err != nil {
				return nil, fmt.Errorf("tables: %s: %w", name, err)
			}
			if row == nil || nll < lowest {
				lowest, row = nll, slices.Concat(c.For, c.Hyperparameters, []string{strconv.FormatFloat(nll, 'f', 4, 64)})
			}
		}
		if row != nil {
			rows = append(rows, row)
		}
	}
	var text bytes.Buffer
	if err := csv.NewWriter(&text).WriteAll(rows); err != nil {
		return nil, fmt.Errorf("tables: %w", err)
	}
	return text.Bytes(), nil
}

// ReadCSV returns the rows of a file, such as one of Choose, below its heads, which must be these columns. Lines that begin with #
// are comments. It panics if the file, which comes with the program, is damaged.
func ReadCSV(file []byte, columns string) [][]string {
	lines := csv.NewReader(bytes.NewReader(file))
	lines.Comment = '#'
	rows, err := lines.ReadAll()
	if err != nil || len(rows) == 0 || strings.Join(rows[0], ",") != columns {
		panic(errors.Join(fmt.Errorf("tables: the columns of a file are not %s", columns), err))
	}
	return rows[1:]
}
