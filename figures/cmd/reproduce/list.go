package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"densityuncertainty/figures/results"
)

const listDoc = `reproduce list shows the experiment sets with how many of their experiments are done and
missing, at full and at quick scale and others (small runs and the grid search), the processor time
that those done took, which sets that share experiments both count, and the tables and figures that
can be made.

Usage: reproduce list [flags]
`

// named is what --format json says of a table, a figure or a set.
type named struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

// catalogue is what can be made and run, in the order of the list, as JSON.
func catalogue() ([]byte, error) {
	var all struct {
		Tables  []named `json:"tables"`
		Figures []named `json:"figures"`
		Sets    []named `json:"sets"`
	}
	for _, t := range namedTables() {
		all.Tables = append(all.Tables, named{t.Name, t.Doc})
	}
	for _, f := range namedFigures() {
		all.Figures = append(all.Figures, named{f.Name, f.Doc})
	}
	for _, s := range sets() {
		all.Sets = append(all.Sets, named{s.Name, s.Doc})
	}
	return json.MarshalIndent(all, "", " ")
}

func (c command) list(_ context.Context, args []string) error {
	flags := newFlags("list")
	stores := storeFlag(flags)
	format := flags.String("format", "text", "`format`: text, or json, which has names and descriptions alone")
	if positional, err := c.parse(flags, listDoc, args); err != nil {
		return err
	} else if len(positional) > 0 {
		return usagef("list takes no %q", positional[0])
	}
	switch *format {
	case "text":
	case "json":
		text, err := catalogue()
		if err != nil {
			return fmt.Errorf("formatting the list: %w", err)
		}
		if _, err := fmt.Fprintf(c.stdout, "%s\n", text); err != nil {
			return fmt.Errorf("printing the list: %w", err)
		}
		return nil
	default:
		return usagef("--format: unknown %q, want text or json", *format)
	}
	lines, err := c.read(*stores)
	if err != nil {
		return err
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tFULL done\tmissing\tQUICK done\tmissing\tOTHER done\tmissing\tCPU TIME\tWHAT")
	index := results.ByID(lines)
	for _, set := range sets() {
		fmt.Fprintf(w, "%s", set.Name)
		seconds := 0.0
		for _, scales := range [][]string{{results.Full}, {results.Quick}, {results.Small, results.Grid, results.Processor, results.ProcessorGrid, results.GPU}} {
			var wanted []results.Experiment
			for _, scale := range scales {
				wanted = append(wanted, set.At(scale)...)
			}
			missing := len(index.Missing(wanted))
			fmt.Fprintf(w, "\t%d\t%d", len(wanted)-missing, missing)
			for _, e := range wanted {
				line, _ := index.Find(e)
				seconds += line.CPUSeconds
			}
		}
		doc := set.Doc
		if set.Lacks != "" {
			doc += "; not yet all of it"
		}
		fmt.Fprintf(w, "\t%s\t%s\n", cpuTime(seconds), doc)
	}
	fmt.Fprintln(w, "\nTABLE\t\t\t\t\t\t\t\tWHAT")
	for _, t := range namedTables() {
		fmt.Fprintf(w, "%s\t\t\t\t\t\t\t\t%s\n", t.Name, t.Doc)
	}
	fmt.Fprintln(w, "\nFIGURE\t\t\t\t\t\t\t\tWHAT")
	for _, f := range namedFigures() {
		fmt.Fprintf(w, "%s\t\t\t\t\t\t\t\t%s\n", f.Name, f.Doc)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("formatting the list: %w", err)
	}
	if _, err := fmt.Fprint(c.stdout, b.String()); err != nil {
		return fmt.Errorf("printing the list: %w", err)
	}
	return nil
}

// cpuTime is so many seconds in hours and minutes, and nothing where nothing was measured.
func cpuTime(seconds float64) string {
	minutes := int(math.Ceil(seconds / 60))
	switch {
	case minutes == 0:
		return "-"
	case minutes < 60:
		return fmt.Sprintf("%dm", minutes)
	}
	return fmt.Sprintf("%dh%02dm", minutes/60, minutes%60)
}
