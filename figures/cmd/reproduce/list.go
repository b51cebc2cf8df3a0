package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/claims"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
	"densityuncertainty/figures/where"
)

type listCommand struct{ storeFlag }

// Run lists what there is.
func (l listCommand) Run(c command) error {
	stored, err := l.read()
	if err != nil {
		return err
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tdone\tmissing\tHOURS\tWHAT")
	for _, set := range c.sets() {
		done, seconds := 0, 0.0
		for _, r := range stored.Results(set.Experiments) {
			if r.ID != "" {
				done++
				seconds += r.WallSeconds
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%s\n", set.Name, done, len(set.Experiments)-done, seconds/3600, set.Doc)
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

// A catalogue lists the sets that can be run, and the tables and figures that can be made.
type catalogue struct {
	sets    func() []tables.Set // takes some tenths of a second
	tables  []tables.Named
	figures []tables.NamedFigure
}

// paper is the catalogue of the paper's experiments, and of the questions beyond it.
func paper() catalogue {
	return catalogue{
		sets:    func() []tables.Set { return slices.Concat(toy.Sets(), uci.Sets(), cifar.Sets(), where.Sets()) },
		tables:  slices.Concat([]tables.Named{claims.Named()}, uci.Tables(), toy.Tables(), cifar.Tables(), where.Tables()),
		figures: slices.Concat(toy.Figures(), uci.Figures(), cifar.Figures(), where.Figures()),
	}
}
