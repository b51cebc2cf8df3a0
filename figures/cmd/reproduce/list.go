package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

type listCommand struct {
	storesFlag
	Format string `enum:"text,json" default:"text" placeholder:"FORMAT" help:"text, or json, which has names and descriptions alone."`
}

// A named is what --format json says of a table, a figure or a set.
type named struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

// Run lists what there is.
func (l listCommand) Run(c command) error {
	all := map[string][]named{}
	for _, t := range c.tables {
		all["tables"] = append(all["tables"], named{t.Name, t.Doc})
	}
	for _, f := range c.figures {
		all["figures"] = append(all["figures"], named{f.Name, f.Doc})
	}
	sets := c.sets("")
	for _, s := range sets {
		all["sets"] = append(all["sets"], named{s.Name, s.Doc})
	}
	if l.Format == "json" {
		text, err := json.MarshalIndent(all, "", " ")
		if err != nil {
			return fmt.Errorf("formatting the list: %w", err)
		}
		return c.say(string(text) + "\n")
	}
	stored, err := l.read()
	if err != nil {
		return err
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tFULL done\tmissing\tQUICK done\tmissing\tOTHER done\tmissing\tTIME\tWHAT")
	for _, set := range sets {
		fmt.Fprintln(w, setRow(set, stored))
	}
	for _, kind := range []string{"tables", "figures"} {
		const skipped = "\t\t\t\t\t\t\t\t" // to the last column
		fmt.Fprintf(w, "\n%s%sWHAT\n", strings.ToUpper(kind), skipped)
		for _, one := range all[kind] {
			fmt.Fprintf(w, "%s%s%s\n", one.Name, skipped, one.Doc)
		}
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
