package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

type listCommand struct{ storesFlag }

// Run lists what there is.
func (l listCommand) Run(c command) error {
	stored, err := l.read()
	if err != nil {
		return err
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tFULL done\tmissing\tQUICK done\tmissing\tOTHER done\tmissing\tTIME\tWHAT")
	for _, set := range c.sets("") {
		fmt.Fprintln(w, setRow(set, stored))
	}
	const skipped = "\t\t\t\t\t\t\t\t" // to the last column
	fmt.Fprintf(w, "\nTABLES%sWHAT\n", skipped)
	for _, t := range c.tables {
		fmt.Fprintf(w, "%s%s%s\n", t.Name, skipped, t.Doc)
	}
	fmt.Fprintf(w, "\nFIGURES%sWHAT\n", skipped)
	for _, f := range c.figures {
		fmt.Fprintf(w, "%s%s%s\n", f.Name, skipped, f.Doc)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("formatting the list: %w", err)
	}
	return c.say(b.String())
}

// setRow is the row of a set.
func setRow(set tables.Set, stored *tables.Index) string {
	row, seconds := set.Name, 0.0
	var done, missing [3]int
	for _, part := range set.Parts {
		column := slices.Index([]string{results.Full, results.Quick, part.Scale}, part.Scale)
		for _, e := range part.Experiments {
			if line, has := stored.Find(e); has {
				done[column]++
				seconds += line.WallSeconds
			} else {
				missing[column]++
			}
		}
	}
	for i := range done {
		row += fmt.Sprintf("\t%d\t%d", done[i], missing[i])
	}
	time, minutes := "-", int(math.Ceil(seconds/60))
	if minutes > 0 {
		time = fmt.Sprintf("%dh%02dm", minutes/60, minutes%60)
	}
	doc := set.Doc
	if set.Lacks != "" {
		doc += "; not yet all of it"
	}
	return row + "\t" + time + "\t" + doc
}
