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

// The marks of generated parts. What begins like a mark must be one.
var (
	generated = regexp.MustCompile(`(?ms)^<!-- generated: ([^\r\n]*) -->(\r?\n)(.*?)^<!-- end of generated -->\r?$`)
	mark      = regexp.MustCompile(`<!--\s*(generated\b|end of generated\b)[^\r\n]*`)
)

// fillIn returns the text with its generated parts made anew, and how many there are and are others than before. A part
// has the line ends of its first mark.
func fillIn(text string, generate func(what string) (string, error)) (filled string, parts, changed int, err error) {
	var out strings.Builder
	end := 0
	checked := func(from, to int) error {
		if place := mark.FindStringIndex(text[from:to]); place != nil {
			return fmt.Errorf("line %d: %q does not belong to a generated part, which begins with a line \"<!-- generated: table NAME -->\" and ends with a line \"<!-- end of generated -->\"",
				1+strings.Count(text[:from+place[0]], "\n"), text[from+place[0]:from+place[1]])
		}
		return nil
	}
	for _, part := range generated.FindAllStringSubmatchIndex(text, -1) {
		what, lineEnd, old := text[part[2]:part[3]], text[part[4]:part[5]], text[part[6]:part[7]]
		if err := errors.Join(checked(end, part[0]), checked(part[6], part[7])); err != nil {
			return "", 0, 0, err
		}
		content, err := generate(what)
		if err != nil {
			return "", 0, 0, fmt.Errorf("line %d: %w", 1+strings.Count(text[:part[0]], "\n"), err)
		}
		if content = strings.ReplaceAll(content, "\n", lineEnd); content != old {
			changed++
		}
		out.WriteString(text[end:part[6]] + content + text[part[7]:part[1]])
		end = part[1]
		parts++
	}
	if err := checked(end, len(text)); err != nil {
		return "", 0, 0, err
	}
	if parts == 0 {
		return "", 0, 0, errors.New("it has no generated part, which a line \"<!-- generated: table NAME -->\" begins")
	}
	return out.String() + text[end:], parts, changed, nil
}
