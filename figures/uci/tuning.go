package uci

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// tunedCSV are the hyperparameters of Tuned, as Choose writes them.
//
//go:embed tuned.csv
var tunedCSV string

// choice is the hyperparameters of a method for one split.
type choice struct {
	optimizer methods.Optimizer
	scale     float64 // of methods.Method.NoiseScale; 0 for a method without one
}

// chosenFor is what a choice is for.
type chosenFor struct {
	dataset, splits string
	split           int
	method          string
}

// choices are those of Tuned.
type choices map[chosenFor]choice

// apply is the protocol with the choice, which options can have.
func (c choice) apply(p Protocol, m methods.Method) Protocol {
	if err := methods.SetFor(results.UCI, &p, c.options(m)); err != nil {
		panic(fmt.Errorf("uci: the settings to choose from for %s: %w", m.Name, err))
	}
	return p
}

// options are those of the choice by their names.
func (c choice) options(m methods.Method) map[string]string {
	options := map[string]string{"optimizer": string(c.optimizer)}
	if m.NoiseScale != "" {
		options[m.NoiseScale] = formatScale(c.scale)
	}
	return options
}

func formatScale(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// tunedHeading is the first line of tuned.csv.
var tunedHeading = []string{"dataset", "splits", "split", "method", "optimizer", "noise_scale", "held_out_nll"}

// tuned are the committed choices. A file that cannot be read is a mistake in this package, which its tests find.
var tuned = sync.OnceValue(func() choices {
	all, err := parseChoices(tunedCSV)
	if err != nil {
		panic(err)
	}
	return all
})

// parseChoices reads what Choose wrote.
func parseChoices(content string) (choices, error) {
	records, err := csv.NewReader(strings.NewReader(content)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("uci: tuned.csv: %w", err)
	}
	if len(records) == 0 || !slices.Equal(records[0], tunedHeading) {
		return nil, fmt.Errorf("uci: tuned.csv: the heading is not %s; make it anew with reproduce choose uci", strings.Join(tunedHeading, ","))
	}
	all := make(choices)
	for i, r := range records[1:] {
		split, err1 := strconv.Atoi(r[2])
		scale, err2 := strconv.ParseFloat(r[5], 64)
		c := choice{methods.Optimizer(r[4]), scale}
		m, _ := methods.All().Named(r[3])
		p := Paper()
		err3 := methods.SetFor(results.UCI, &p, c.options(m))
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("uci: tuned.csv: line %d: %w", i+2, err)
		}
		all[chosenFor{r[0], r[1], split, r[3]}] = c
	}
	return all, nil
}

// Tuned is the protocol of the paper with the optimizer, SGD or Adam, and the scale of the noise at the start that did
// best for each method on each split: the pair of the lowest negative log likelihood on a fifth of the split's
// training part, which the other four fifths were trained for; test examples have no part in it. Every method has the
// same number of values, one without noise the optimizers alone.
//
// The choices are stored beside this package for the splits on which they were made. Experiments leaves out what there
// is no choice for, as for one's own methods, and Run says so.
func Tuned() Protocol {
	p := Paper()
	p.choices = tuned()
	return p
}

// untuned is an error that names a method, data set and splits for which there is no choice, if the protocol is Tuned.
func (p Protocol) untuned(list methods.List) error {
	if p.choices == nil {
		return nil
	}
	for _, dataset := range p.Datasets {
		for _, m := range list {
			if len(p.On(dataset).Experiments(m)) == 0 {
				return fmt.Errorf("uci: no settings were chosen for %s on %s with the splits %q; take uci.Paper() and set options of your own, or run the set uci-tuning, and then reproduce choose uci", m.Name, dataset, p.Splits)
			}
		}
	}
	return nil
}

// optimizers are those that a choice tries, each with the learning rate of the protocol.
var optimizers = []methods.Optimizer{methods.SGD, methods.Adam}

// noiseScales are the values to try: up to the text's standard deviation of 0.1, and rates and variances as many times
// smaller than the paper's.
var noiseScales = []float64{0.003, 0.01, 0.03, 0.1}

// grid are the choices to try for a method on each split of the protocol.
func (p Protocol) grid(m methods.Method) []choice {
	scales := noiseScales
	if m.NoiseScale == "" {
		scales = []float64{0}
	}
	var all []choice
	for _, optimizer := range optimizers {
		for _, scale := range scales {
			all = append(all, choice{optimizer, scale})
		}
	}
	return all
}

// tried are the runs from which Choose chooses for a method: for each choice of the grid one on every split of the
// protocol.
func (p Protocol) tried(m methods.Method) (runs [][]results.Experiment) {
	p.Scale = results.Grid
	for _, c := range p.grid(m) {
		runs = append(runs, c.apply(p, m).Experiments(m))
	}
	return runs
}

// Choose makes the file of the choices of Tuned from the results of the set uci-tuning: for each
// data set and method of which all of the grid was run, on every split the pair with the lowest negative log likelihood
// on the held-out training examples. A run that diverged is not chosen. missing names the data sets, splits and methods
// of which not all runs are there.
func Choose(lines []results.Result) (file []byte, missing []string, err error) {
	index := results.ByID(lines)
	all := [][]string{tunedHeading}
	for _, t := range tunings() {
		for _, dataset := range t.protocol.Datasets {
			var without []string
			for _, m := range t.methods {
				rows, complete, err := t.protocol.choose(index, dataset, m)
				if err != nil {
					return nil, nil, err
				}
				if !complete {
					without = append(without, m.Name)
				}
				all = append(all, rows...)
			}
			if len(without) == len(t.methods) {
				without = []string{"all methods"}
			}
			if len(without) > 0 {
				missing = append(missing, fmt.Sprintf("%s on %s (%s splits)", strings.Join(without, ", "), dataset, t.protocol.Splits))
			}
		}
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	if err := errors.Join(w.WriteAll(all), w.Error()); err != nil {
		return nil, nil, fmt.Errorf("uci: choosing: %w", err)
	}
	return text.Bytes(), missing, nil
}

// choose are the rows of the file for a method on a data set; none, and not complete, where a run is missing.
func (p Protocol) choose(index results.Index, dataset string, m methods.Method) (rows [][]string, complete bool, err error) {
	p = p.On(dataset)
	grid, runs := p.grid(m), p.tried(m)
	for split := range runs[0] {
		candidates := make([]results.Experiment, len(grid))
		for i := range grid {
			candidates[i] = runs[i][split]
		}
		best, nll, complete, err := index.Lowest(candidates, results.MetricNLL)
		if err != nil {
			return nil, false, fmt.Errorf("uci: choosing: %w", err)
		}
		if !complete {
			return nil, false, nil
		}
		if best < 0 {
			continue // all diverged
		}
		c := grid[best]
		rows = append(rows, []string{dataset, p.Splits, strconv.Itoa(split), m.Name, string(c.optimizer), formatScale(c.scale), strconv.FormatFloat(nll, 'f', 4, 64)})
	}
	return rows, true, nil
}

// tuning is what hyperparameters are chosen for.
type tuning struct {
	protocol Protocol
	methods  methods.List
}

// tunings are those of the set uci-tuning: every method on the small sets and on their gap splits, and on the larger
// ones, but for Year, the density layers and the methods that the paper compares them with there (the table
// uci-claims).
func tunings() []tuning {
	return []tuning{
		{Paper().On(smallDatasets()...), allMethods()},
		{inGaps(), allMethods()},
		{Paper().On("kin8nm", "naval", "protein"), slices.Concat(energyMethods(), rivals())},
	}
}

// TuningTable says which settings Tuned has: for each method how often each was chosen, over the splits of a data set.
func TuningTable([]results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-tuning", Columns: []string{"Data set"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	list := tunings()[0].methods
	for _, m := range list {
		t.Columns = append(t.Columns, m.Title)
	}
	for _, tuning := range tunings() {
		for _, dataset := range tuning.protocol.Datasets {
			row := report.Row{Name: titleWithSplits(dataset, tuning.protocol.Splits)}
			for _, m := range list {
				cell := report.TextCell("–")
				if _, tried := tuning.methods.Named(m.Name); tried {
					cell = report.TextCell(tuned().counts(dataset, tuning.protocol.Splits, m)...)
				}
				row.Cells = append(row.Cells, cell)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	note, _ := prose.Text("choices at an end", tuned().atEnds(list))
	t.Notes = append(t.Notes, note)
	return t, nil
}

// atEnds says of each method with a noise scale how often the least or the largest on offer was chosen, beyond which
// there may be better ones.
func (all choices) atEnds(list methods.List) string {
	var parts []string
	for _, m := range list {
		least, largest, n := 0, 0, 0
		for what, c := range all {
			if what.method != m.Name || m.NoiseScale == "" {
				continue
			}
			n++
			switch c.scale {
			case slices.Min(noiseScales):
				least++
			case slices.Max(noiseScales):
				largest++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d and %d of %d", m.Title, least, largest, n))
		}
	}
	return strings.Join(parts, "; ")
}

// counts are how often each of a method's settings was chosen, the most frequent first.
func (all choices) counts(dataset, splits string, m methods.Method) []string {
	count := make(map[choice]int)
	for what, c := range all {
		if what.dataset == dataset && what.splits == splits && what.method == m.Name {
			count[c]++
		}
	}
	if len(count) == 0 {
		return []string{"not run"}
	}
	order := slices.SortedFunc(maps.Keys(count), func(a, b choice) int {
		return cmp.Or(count[b]-count[a], strings.Compare(string(a.optimizer), string(b.optimizer)), cmp.Compare(a.scale, b.scale))
	})
	var lines []string
	for _, c := range order {
		text := string(c.optimizer)
		if m.NoiseScale != "" {
			text += " " + formatScale(c.scale)
		}
		lines = append(lines, fmt.Sprintf("%s: %d", text, count[c]))
	}
	return lines
}
