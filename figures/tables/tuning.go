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

// A Search chooses the settings of a method by results on held-out examples, among experiments that differ in them. Choices are kept
// as CSV.
type Search struct {
	For        []string   // what is chosen for: the first columns of a file
	Settings   [][]string // of each candidate: the columns after them
	Candidates experiment.Experiments
}

// Choose returns a CSV file with these columns, separated by commas. Each search whose candidates were all run has a
// row: For, the Settings with the lowest negative log-likelihood, the first of equals, and that number with 4 decimals. A
// run that diverged is never chosen; if all did, there is no row. A result without this metric is an error.
func Choose(x *Index, columns string, searches []Search) ([]byte, error) {
	rows := [][]string{strings.Split(columns, ",")}
search:
	for _, s := range searches {
		best, lowest := -1, 0.0
		for i, e := range s.Candidates {
			r, done := x.Find(e)
			if !done {
				continue search
			}
			if r.Diverged {
				continue
			}
			nll, err := r.Metric(experiment.MetricNLL)
			if err != nil {
				return nil, fmt.Errorf("tables: %s: %w", strings.Join(s.For, " "), err)
			}
			if best < 0 || nll < lowest {
				best, lowest = i, nll
			}
		}
		if best >= 0 {
			rows = append(rows, slices.Concat(s.For, s.Settings[best], []string{strconv.FormatFloat(lowest, 'f', 4, 64)}))
		}
	}
	var text bytes.Buffer
	if err := csv.NewWriter(&text).WriteAll(rows); err != nil {
		return nil, fmt.Errorf("tables: %w", err)
	}
	return text.Bytes(), nil
}

// ReadChoices returns the rows of a file of Choose below its heads, which must be these columns. Lines that begin with # are
// comments. It panics if the file, which comes with the program, is damaged.
func ReadChoices(file []byte, columns string) [][]string {
	lines := csv.NewReader(bytes.NewReader(file))
	lines.Comment = '#'
	rows, err := lines.ReadAll()
	if err != nil || len(rows) == 0 || strings.Join(rows[0], ",") != columns {
		panic(errors.Join(fmt.Errorf("tables: the columns of a file are not %s", columns), err))
	}
	return rows[1:]
}
