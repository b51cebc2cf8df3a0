package main

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

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
	fmt.Fprintln(w, "SET\tdone\tmissing\tTIME\tWHAT")
	for _, set := range c.sets() {
		fmt.Fprintln(w, setRow(set, stored))
	}
	const skipped = "\t\t\t\t" // to the last column
	fmt.Fprintf(w, "\nTABLES%sWHAT\n", skipped)
	for _, t := range c.tables {
		fmt.Fprintf(w, "%s%s%s\n", t.Name, skipped, t.Doc)
	}
	fmt.Fprintf(w, "\nFIGURES%sWHAT\n", skipped)
	for _, f := range c.figures {
		fmt.Fprintf(w, "%s%s%s\n", f.Name, skipped, f.Doc)
	}
	_ = w.Flush() // to b, which takes everything
	return c.say(b.String())
}

// setRow is the row of a set.
func setRow(set tables.Set, stored *tables.Index) string {
	done, seconds := 0, 0.0
	for _, e := range set.Experiments {
		if line, has := stored.Find(e); has {
			done++
			seconds += line.WallSeconds
		}
	}
	time, minutes := "-", int(math.Ceil(seconds/60))
	if minutes > 0 {
		time = fmt.Sprintf("%dh%02dm", minutes/60, minutes%60)
	}
	return fmt.Sprintf("%s\t%d\t%d\t%s\t%s", set.Name, done, len(set.Experiments)-done, time, set.Doc)
}
