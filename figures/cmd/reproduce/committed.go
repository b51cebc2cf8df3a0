package inspect

import (
	"fmt"
	"slices"

	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// Committed are the named tables of tables.List in Markdown, in the order of the
// names, made from the result lines that are kept with the checkout.
func Committed(names ...string) ([]string, error) {
	lines, err := results.Committed()
	if err != nil {
		return nil, err
	}
	list := tables.List()
	var made []string
	for _, name := range names {
		at := slices.IndexFunc(list, func(t tables.Named) bool { return t.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("inspect: there is no table %q", name)
		}
		table, err := list[at].Make(lines)
		if err != nil {
			return nil, err
		}
		text, err := table.Render(tables.Markdown)
		if err != nil {
			return nil, err
		}
		made = append(made, text)
	}
	return made, nil
}
