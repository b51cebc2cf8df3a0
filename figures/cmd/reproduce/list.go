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

type listCommand struct {
	Name string `arg:"" optional:"" help:"Also count the stored and the missing runs of this table or figure, or of all."`
	storeFlag
}

// Run lists what there is. Counts are made on request, as they take a moment for each table.
func (l listCommand) Run(c command) error {
	exhibits, counted := c.exhibits, l.Name != ""
	var stored *tables.Index
	if counted {
		var err error
		if exhibits, err = selected("table or figure", c.exhibits, slices.Clone, l.Name); err != nil {
			return err
		}
		if stored, err = l.read(); err != nil {
			return err
		}
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	head := "NAME\tTABLE\tFIGURE\t"
	if counted {
		head += "done\tmissing\tHOURS\t"
	}
	fmt.Fprintln(w, head+"WHAT")
	mark := map[bool]string{true: "yes"}
	for _, e := range exhibits {
		one := tables.Exhibits{e}
		fmt.Fprintf(w, "%s\t%s\t%s\t", e.Name, mark[len(one.Tables()) > 0], mark[len(one.Pictures()) > 0])
		if counted {
			done, missing, seconds := 0, 0, 0.0
			for _, r := range stored.Results(e.Runs()) {
				if r.ID == "" {
					missing++
					continue
				}
				done, seconds = done+1, seconds+r.WallSeconds
			}
			fmt.Fprintf(w, "%d\t%d\t%.1f\t", done, missing, seconds/3600)
		}
		fmt.Fprintln(w, e.Doc)
	}
	_ = w.Flush() // to b, which takes everything
	return c.say(b.String())
}

// paper are the exhibits of all studies.
func paper() tables.Exhibits {
	return slices.Concat(claims.Exhibits(), toy.Exhibits(), uci.Exhibits(), cifar.Exhibits(), where.Exhibits())
}
