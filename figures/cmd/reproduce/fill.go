package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

type fillCommand struct {
	File path `arg:"" help:"A Markdown file, such as README.md."`
	storesFlag
}

// Help implements kong.HelpProvider.
func (fillCommand) Help() string {
	return "A generated part is everything between a line \"<!-- generated: table NAME -->\" and the next line \"<!-- end of generated -->\". " +
		"The command says how many such parts there are and how many it changed."
}

// Run makes the generated parts of a file anew.
func (f fillCommand) Run(c command) error {
	index, err := f.read()
	if err != nil {
		return err
	}
	file := string(f.File)
	before, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("filling: %w", err)
	}
	after, parts, changed, err := fillIn(string(before), func(what string) (string, error) { return c.generate(what, index) })
	if err != nil {
		return fmt.Errorf("filling %s: %w", file, err)
	}
	if changed > 0 {
		if err := atomicfile.WriteBytes(file, []byte(after)); err != nil {
			return err
		}
	}
	c.tell("%s: generated parts: %d, changed: %d", file, parts, changed)
	return nil
}

// generate makes the content that a mark names.
func (c command) generate(what string, index *tables.Index) (string, error) {
	name, is := strings.CutPrefix(what, "table ")
	i := slices.IndexFunc(c.tables, func(t tables.Named) bool { return t.Name == name })
	if !is || i < 0 {
		return "", fmt.Errorf("there is nothing to generate for %q; write \"table NAME\" with a name from \"reproduce list\"", what)
	}
	return rendered(c.tables[i], index, report.Markdown)
}

// The marks of generated parts. A line with the beginning of one must be one.
var (
	markBegun = regexp.MustCompile(`<!--\s*(generated\b|end of generated\b)`)
	partBegin = regexp.MustCompile(`^<!-- generated: (.*) -->$`)
)

const partEnd = "<!-- end of generated -->"

// fillIn returns the text with its generated parts made anew, and how many there are and are others than before. A part has the line ends of its last mark.
func fillIn(text string, generate func(what string) (string, error)) (filled string, parts, changed int, err error) {
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
			content, err := generate(what)
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
