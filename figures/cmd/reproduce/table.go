package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"densityuncertainty/environment"
	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

type tableCommand struct {
	Table string `arg:"" help:"The table, or all. \"reproduce list\" shows the tables."`
	storesFlag
	Format string `placeholder:"FORMAT" help:"md, latex, html or csv (default: that of the file of --out, else md)."`
	Out    path   `placeholder:"PATH" help:"Write to this file or folder instead of printing; for \"all\" a folder."`
}

// Help implements kong.HelpProvider.
func (tableCommand) Help() string {
	return "A cell without results says \"not run\", and one of quick runs says so. The last line says by what version and of which runs the table was made; " +
		"csv has the cells alone, without that line, caption and notes."
}

// Run makes tables.
func (t tableCommand) Run(c command) error {
	wanted, err := selected("table", c.tables, func(t tables.Named) string { return t.Name }, t.Table)
	if err != nil {
		return err
	}
	out, err := newOutput(t.Format, string(t.Out), report.TableFormats(), len(wanted) > 1)
	if err != nil {
		return err
	}
	index, err := t.read()
	if err != nil {
		return err
	}
	var printed []string
	for _, named := range wanted {
		x := index.Watched()
		text, err := rendered(named, x, out.format)
		if err != nil {
			return err
		}
		text = cited(text, out.format, citation(x.Used()))
		if out.to == "" {
			printed = append(printed, text)
			continue
		}
		file, err := out.write(named.Name, []byte(text))
		if err != nil {
			return err
		}
		c.tell("wrote %s", file)
	}
	return c.say(strings.Join(printed, "\n"))
}

// rendered is a table of an index in a format.
func rendered(named tables.Named, x *tables.Index, format string) (string, error) {
	t, err := named.Make(x)
	if err != nil {
		return "", err
	}
	return t.Render(format)
}

type figureCommand struct {
	Figure string `arg:"" help:"The figure, or all. \"reproduce list\" shows the figures."`
	storesFlag
	Format string `placeholder:"FORMAT" help:"svg, png or pdf (default: that of the file of --out, else svg)."`
	Out    path   `placeholder:"PATH" help:"The file or folder to write to (default: NAME.FORMAT here); for \"all\" a folder."`
	Seed   uint64 `default:"0" placeholder:"N" help:"The seed of the run that figures of a single run show (default: 0)."`
}

// Help implements kong.HelpProvider.
func (figureCommand) Help() string {
	return "Prints the figure's caption and by what version and of which runs it was made, which an SVG file holds too. A figure of quick runs says so in its titles. " +
		"Of all figures those are written for which there are runs; that some are missing is an error, which names them."
}

// Run makes figures.
func (f figureCommand) Run(c command) error {
	wanted, err := selected("figure", c.figures, func(f tables.NamedFigure) string { return f.Name }, f.Figure)
	if err != nil {
		return err
	}
	out, err := newOutput(f.Format, string(f.Out), report.FigureFormats(), len(wanted) > 1)
	if err != nil {
		return err
	}
	index, err := f.read()
	if err != nil {
		return err
	}
	var failed []string
	for _, named := range wanted {
		x := index.Watched()
		figure, err := named.Make(x, f.Seed)
		if err != nil && len(wanted) > 1 { // the others can be drawn
			failed = append(failed, fmt.Sprintf("%s: %v", named.Name, err))
			continue
		}
		if err != nil {
			return err
		}
		picture, err := figure.Bytes(out.format)
		if err != nil {
			return err
		}
		made := citation(x.Used())
		if out.format == report.SVG {
			picture = described(picture, figure.Caption+"\n"+made)
		}
		file, err := out.write(named.Name, picture)
		if err != nil {
			return err
		}
		if err := c.say(fmt.Sprintf("%s: %s\n%s\n", file, figure.Caption, made)); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d figures could not be drawn:\n  %s", len(failed), len(wanted), strings.Join(failed, "\n  "))
	}
	return nil
}

// described is an SVG drawing with a text as its description, which programs that read it aloud say, and which stays
// with the file.
func described(svg []byte, text string) []byte {
	open := bytes.Index(svg, []byte("<svg"))
	end := open + bytes.IndexByte(svg[max(open, 0):], '>') + 1
	if open < 0 || end <= open {
		return svg
	}
	return slices.Concat(svg[:end], []byte("\n<desc>"+html.EscapeString(text)+"</desc>"), svg[end:])
}

// citation says by what version of the program and of which runs something was made.
func citation(used map[string]experiment.Result) string {
	count := map[string]int{}
	for _, line := range used {
		count[cmp.Or(line.Preset, "no preset")]++
	}
	var presets []string
	for _, name := range slices.Sorted(maps.Keys(count)) {
		presets = append(presets, fmt.Sprintf("%d %s", count[name], name))
	}
	text := fmt.Sprintf("densityuncertainty %s, %s", environment.Version(), results.Counted(len(used), "run", "runs"))
	if len(presets) > 0 {
		text += ": " + strings.Join(presets, "; ")
	}
	return text
}

// cited is a table's text with the citation as its last line, in words that the format does not take for part of the
// table; CSV has no place for one.
func cited(text, format, citation string) string {
	switch format {
	case report.Markdown:
		return text + "\n" + citation + "\n"
	case report.LaTeX:
		return text + "% " + citation + "\n"
	case report.HTML:
		return text + "<p>" + html.EscapeString(citation) + "</p>\n"
	}
	return text
}

// An output is where tables or figures go, and their format.
type output struct {
	format, to string
	folder     bool // whether to is a folder; "" is the current one
}

// newOutput is the output to a file or folder, in the format that was asked for, or else that of the file, or the first
// one. A file whose name has the ending of another format would be taken for what it is not.
func newOutput(asked, to string, formats []string, several bool) (output, error) {
	var endings []string
	for _, format := range formats {
		endings = append(endings, ending(format))
	}
	info, err := os.Stat(to)
	folder := to == "" || several || strings.HasSuffix(to, "/") || err == nil && info.IsDir()
	extension := ""
	if !folder {
		extension = filepath.Ext(to)
	}
	i := slices.Index(endings, extension)
	switch {
	case asked != "" && !slices.Contains(formats, asked):
		return output{}, usagef("--format: unknown %q, want %s", asked, strings.Join(formats, ", "))
	case extension != "" && i < 0:
		return output{}, usagef("--out: %s has the ending %s, want %s", to, extension, strings.Join(endings, ", "))
	case extension != "" && asked != "" && asked != formats[i]:
		return output{}, usagef("--out: %s has the ending of the format %s, and --format is %s; leave one of them out", to, formats[i], asked)
	case extension != "":
		asked = formats[i]
	}
	return output{cmp.Or(asked, formats[0]), to, folder}, nil
}

// ending is the ending of files of a format.
func ending(format string) string {
	if format == report.LaTeX {
		return ".tex"
	}
	return "." + format
}

// write writes what has a name, and returns the file.
func (o output) write(name string, content []byte) (file string, err error) {
	file = o.to
	if o.folder {
		file = filepath.Join(o.to, name+ending(o.format))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", fmt.Errorf("making the folder for output: %w", err)
		}
	}
	return file, atomicfile.WriteBytes(file, content)
}
