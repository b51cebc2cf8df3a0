package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

const fillDoc = `reproduce fill makes the generated parts of a Markdown file anew, such as README.md:
everything between a line "<!-- generated: table NAME -->" or "<!-- generated: options STUDY -->",
with STUDY one of toy, uci and images, and the next line "<!-- end of generated -->".

Usage: reproduce fill FILE [flags]
`

func (c command) fill(_ context.Context, args []string) error {
	flags := newFlags("fill")
	stores := storeFlag(flags)
	positional, err := c.parse(flags, fillDoc, args)
	if err != nil {
		return err
	}
	if len(positional) != 1 {
		return usagef("fill wants one file")
	}
	lines, err := c.read(*stores)
	if err != nil {
		return err
	}
	kept, err := predictionsOf(*stores)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(positional[0])
	if err != nil {
		return fmt.Errorf("filling: %w", err)
	}
	after, err := fillIn(string(before), lines, kept)
	if err != nil {
		return fmt.Errorf("filling %s: %w", positional[0], err)
	}
	if after == string(before) {
		return nil
	}
	return atomicfile.WriteBytes(positional[0], []byte(after))
}

// generatedPart is one generated part with its marks.
var generatedPart = regexp.MustCompile(`(?s)(<!-- generated: ([^\n]*?) -->\n).*?(<!-- end of generated -->)`)

// fillIn returns the text with its generated parts made from the lines.
func fillIn(text string, lines []results.Result, kept report.Predictions) (string, error) {
	if begun, ended := strings.Count(text, "<!-- generated: "), strings.Count(text, "<!-- end of generated -->"); begun != ended {
		return "", fmt.Errorf("%d generated parts begin and %d end", begun, ended)
	}
	var failed error
	filled := generatedPart.ReplaceAllStringFunc(text, func(part string) string {
		groups := generatedPart.FindStringSubmatch(part)
		content, err := generate(groups[2], lines, kept)
		if err != nil {
			failed = err
			return part
		}
		return groups[1] + content + groups[3]
	})
	return filled, failed
}

// generate makes the content that a mark names.
func generate(what string, lines []results.Result, kept report.Predictions) (string, error) {
	kind, name, _ := strings.Cut(what, " ")
	switch kind {
	case "options":
		if table, has := optionsTables()[name]; has {
			return table.Render(report.Markdown)
		}
	case "table":
		if i := slices.IndexFunc(namedTables(), func(t report.NamedTable) bool { return t.Name == name }); i >= 0 {
			return makeTable(namedTables()[i], lines, kept, report.Markdown)
		}
	}
	return "", fmt.Errorf("there is nothing to generate for %q; write \"options STUDY\" with toy, uci or images, or \"table NAME\" with a name from \"reproduce list\"", what)
}
