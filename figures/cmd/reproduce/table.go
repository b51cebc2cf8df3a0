package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/cifar/predictions"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

const tableDoc = `reproduce table prints a table made from the results in the store, or writes it to a file.
"reproduce list" shows the tables. A cell without results says "not run"; a quick result says so. The last
line says what the table was made by and from; csv has the cells alone, without it, caption and notes.

Usage: reproduce table NAME|all [flags]
`

// endings are the file endings of the table formats.
var endings = map[string]string{report.Markdown: ".md", report.LaTeX: ".tex", report.HTML: ".html", report.CSV: ".csv"}

func (c command) table(_ context.Context, args []string) error {
	flags := newFlags("table")
	stores := storeFlag(flags)
	format := flags.String("format", report.Markdown, "`format`: "+strings.Join(report.TableFormats(), ", "))
	out := flags.String("out", "", "`file` or folder to write to instead of printing; for \"all\" a folder")
	positional, err := c.parse(flags, tableDoc, args)
	if err != nil {
		return err
	}
	wanted, err := selected("table", "table", namedTables(), func(t report.NamedTable) string { return t.Name }, positional)
	if err != nil {
		return err
	}
	if !slices.Contains(report.TableFormats(), *format) {
		return usagef("--format: unknown %q, want %s", *format, strings.Join(report.TableFormats(), ", "))
	}
	lines, err := c.read(*stores)
	if err != nil {
		return err
	}
	kept, err := predictionsOf(*stores)
	if err != nil {
		return err
	}
	var printed []string
	for _, named := range wanted {
		watched, used := results.Watch(lines)
		text, err := makeTable(named, watched, kept, *format)
		if err != nil {
			return err
		}
		text = cited(text, *format, citation(used()))
		if *out == "" {
			printed = append(printed, text)
			continue
		}
		path, err := target(*out, named.Name+endings[*format], len(wanted) > 1)
		if err != nil {
			return err
		}
		if err := atomicfile.WriteBytes(path, []byte(text)); err != nil {
			return err
		}
		c.print(c.stderr, "wrote "+path+"\n", exitOK)
	}
	if _, err := fmt.Fprint(c.stdout, strings.Join(printed, "\n")); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}

// predictionsOf finds what runs kept beside the given stores, or the default one. A file of result lines has the folder
// beside it.
func predictionsOf(stores paths) (report.Predictions, error) {
	if len(stores) == 0 {
		dir, err := results.DefaultDir()
		if err != nil {
			return nil, err
		}
		stores = paths{dir}
	}
	var folders []string
	for _, store := range stores {
		folders = append(folders, store, filepath.Dir(store))
	}
	return predictions.In(folders...), nil
}

// makeTable makes and renders one table.
func makeTable(named report.NamedTable, lines []results.Result, kept report.Predictions, format string) (string, error) {
	t, err := named.Of(lines, kept)
	if err != nil {
		return "", err
	}
	return t.Render(format)
}

// target is the file to write: out itself, or the file called name in the folder out, which is made. Out is a folder for
// several files, if it is there as one, and if a slash ends it; "" is the current one.
func target(out, name string, several bool) (string, error) {
	if out == "" {
		return name, nil
	}
	if info, err := os.Stat(out); !several && !strings.HasSuffix(out, "/") && (err != nil || !info.IsDir()) {
		return out, nil
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", fmt.Errorf("making the folder for output: %w", err)
	}
	return filepath.Join(out, name), nil
}
