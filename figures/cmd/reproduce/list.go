package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

type listCommand struct {
	storesFlag
	Format string `enum:"text,json" default:"text" placeholder:"FORMAT" help:"text, or json, which has names and descriptions alone."`
}

// Help implements kong.HelpProvider.
func (listCommand) Help() string {
	return "Shows how many experiments of each set are done and missing, at full scale, at quick scale and at others (small runs and grid searches), " +
		"and how long those that are done took. Sets that share experiments both count them."
}

// A named is what --format json says of a table, a figure or a set.
type named struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

// Run lists what there is.
func (l listCommand) Run(c command) error {
	sets := c.sets()
	var all struct {
		Tables  []named `json:"tables"`
		Figures []named `json:"figures"`
		Sets    []named `json:"sets"`
	}
	for _, t := range c.tables {
		all.Tables = append(all.Tables, named{t.Name, t.Doc})
	}
	for _, f := range c.figures {
		all.Figures = append(all.Figures, named{f.Name, f.Doc})
	}
	for _, s := range sets {
		all.Sets = append(all.Sets, named{s.Name, s.Doc})
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
		fmt.Fprintf(w, "%s\n", setRow(set, stored))
	}
	for _, part := range []struct {
		heading string
		list    []named
	}{{"TABLE", all.Tables}, {"FIGURE", all.Figures}} {
		fmt.Fprintf(w, "\n%s\t\t\t\t\t\t\t\tWHAT\n", part.heading)
		for _, one := range part.list {
			fmt.Fprintf(w, "%s\t\t\t\t\t\t\t\t%s\n", one.Name, one.Doc)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("formatting the list: %w", err)
	}
	return c.say(b.String())
}

// setRow is the row of a set.
func setRow(set tables.Set, stored *tables.Index) string {
	var done, missing [3]int // at full scale, quick and others
	seconds := 0.0
	for _, part := range set.Parts {
		column := 2
		switch part.Scale {
		case results.Full:
			column = 0
		case results.Quick:
			column = 1
		}
		for _, e := range part.Experiments {
			if line, has := stored.Find(e); has {
				done[column]++
				seconds += line.WallSeconds
			} else {
				missing[column]++
			}
		}
	}
	row := set.Name
	for i := range done {
		row += fmt.Sprintf("\t%d\t%d", done[i], missing[i])
	}
	doc := set.Doc
	if set.Lacks != "" {
		doc += "; not yet all of it"
	}
	return row + "\t" + hours(seconds) + "\t" + doc
}

// hours is a time in hours and minutes.
func hours(seconds float64) string {
	minutes := int(math.Ceil(seconds / 60))
	switch {
	case minutes == 0:
		return "-"
	case minutes < 60:
		return fmt.Sprintf("%dm", minutes)
	}
	return fmt.Sprintf("%dh%02dm", minutes/60, minutes%60)
}
