package main

import (
	"cmp"
	"context"
	"flag"
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

// ending is that of files of a format of tables or figures.
func ending(format string) string {
	if format == report.LaTeX {
		return ".tex"
	}
	return "." + format
}

// formatFlag adds --format, of which the first of the formats is the default.
func formatFlag(flags *flag.FlagSet, formats []string) *string {
	return flags.String("format", "", fmt.Sprintf("`format`: %s (default that of the file of --out, else %s)", strings.Join(formats, ", "), formats[0]))
}

// formatOf is the one of formats that was asked for, or else that of the file out, or the first. A file with another
// ending than the format's would be taken for what it is not.
func formatOf(asked, out string, formats []string, several bool) (string, error) {
	var endings []string
	for _, format := range formats {
		endings = append(endings, ending(format))
	}
	extension := ""
	if !isFolder(out, several) {
		extension = filepath.Ext(out)
	}
	i := slices.Index(endings, extension)
	switch {
	case asked != "" && !slices.Contains(formats, asked):
		return "", usagef("--format: unknown %q, want %s", asked, strings.Join(formats, ", "))
	case extension != "" && i < 0:
		return "", usagef("--out: %s has the ending %s, want %s", out, extension, strings.Join(endings, ", "))
	case extension != "" && asked != "" && asked != formats[i]:
		return "", usagef("--out: %s has the ending of the format %s, and --format is %s; leave one of them out", out, formats[i], asked)
	case extension != "":
		return formats[i], nil
	}
	return cmp.Or(asked, formats[0]), nil
}

func (c command) table(_ context.Context, args []string) error {
	flags := newFlags("table")
	stores := storeFlag(flags)
	format := formatFlag(flags, report.TableFormats())
	out := flags.String("out", "", "`file` or folder to write to instead of printing; for \"all\" a folder")
	positional, err := c.parse(flags, tableDoc, args)
	if err != nil {
		return err
	}
	wanted, err := selected("table", "table", namedTables(), func(t report.NamedTable) string { return t.Name }, positional)
	if err != nil {
		return err
	}
	if *format, err = formatOf(*format, *out, report.TableFormats(), len(wanted) > 1); err != nil {
		return err
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
		path, err := target(*out, named.Name+ending(*format), len(wanted) > 1)
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
		dir, err := defaultStore()
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

// isFolder says whether the results go into a folder out, which several of them do, and one if it is there as a folder or
// a slash ends it; "" is the current folder.
func isFolder(out string, several bool) bool {
	info, err := os.Stat(out)
	return out == "" || several || strings.HasSuffix(out, "/") || err == nil && info.IsDir()
}

// target is the file to write: out itself, or the file called name in the folder out, which is made.
func target(out, name string, several bool) (string, error) {
	if out == "" {
		return name, nil
	}
	if !isFolder(out, several) {
		return out, nil
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", fmt.Errorf("making the folder for output: %w", err)
	}
	return filepath.Join(out, name), nil
}
