package main

import (
	"context"
	"errors"
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
with STUDY one of toy, uci and images, and the next line "<!-- end of generated -->". It says how many
such parts there are and how many it changed.

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
	after, parts, changed, err := fillIn(string(before), lines, kept)
	if err != nil {
		return fmt.Errorf("filling %s: %w", positional[0], err)
	}
	if changed > 0 {
		if err := atomicfile.WriteBytes(positional[0], []byte(after)); err != nil {
			return err
		}
	}
	c.print(c.stderr, fmt.Sprintf("%s: generated parts: %d, changed: %d\n", positional[0], parts, changed), exitOK)
	return nil
}

// The marks of generated parts. A line with the beginning of one must be one.
var (
	markBegun = regexp.MustCompile(`<!--\s*(generated\b|end of generated\b)`)
	partBegin = regexp.MustCompile(`^<!-- generated: (.*) -->$`)
)

const partEnd = "<!-- end of generated -->"

// fillIn returns the text with its generated parts made from the lines, and how many there are and are others than
// before. A part has the line ends of its last mark.
func fillIn(text string, lines []results.Result, kept report.Predictions) (filled string, parts, changed int, err error) {
	var out, old strings.Builder
	what, begun, number := "", 0, 0 // of the part that is open: its mark's content and line
	for line := range strings.Lines(text) {
		number++
		mark := strings.TrimRight(line, "\r\n")
		if !markBegun.MatchString(mark) {
			if begun > 0 {
				old.WriteString(line)
			} else {
				out.WriteString(line)
			}
			continue
		}
		begin := partBegin.FindStringSubmatch(mark)
		switch {
		case begin != nil && begun > 0:
			return "", 0, 0, fmt.Errorf("line %d: a generated part begins inside the one that begins at line %d; end that one with a line %q first", number, begun, partEnd)
		case begin != nil:
			what, begun = begin[1], number
			old.Reset()
		case mark == partEnd && begun > 0:
			content, err := generate(what, lines, kept)
			if err != nil {
				return "", 0, 0, fmt.Errorf("line %d: %w", begun, err)
			}
			if strings.HasSuffix(line, "\r\n") {
				content = strings.ReplaceAll(content, "\n", "\r\n")
			}
			out.WriteString(content)
			parts++
			if content != old.String() {
				changed++
			}
			begun = 0
		case mark == partEnd:
			return "", 0, 0, fmt.Errorf("line %d: a generated part ends that does not begin; remove the line or put its first mark before it", number)
		default:
			return "", 0, 0, fmt.Errorf("line %d: %q is no mark of a generated part; write \"<!-- generated: table NAME -->\" or %q, and nothing else, on the line", number, mark, partEnd)
		}
		out.WriteString(line)
	}
	switch {
	case begun > 0:
		return "", 0, 0, fmt.Errorf("line %d: a generated part begins that does not end; end it with a line %q", begun, partEnd)
	case parts == 0:
		return "", 0, 0, errors.New("it has no generated part, which a line \"<!-- generated: table NAME -->\" begins")
	}
	return out.String(), parts, changed, nil
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
