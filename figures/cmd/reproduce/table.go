package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"densityuncertainty/environment"
	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

type tableCommand struct {
	Table string `arg:"" help:"The table with its parts, or all. \"reproduce list\" shows the tables."`
	output
}

// Run makes tables.
func (t tableCommand) Run(c command) error {
	wanted, err := selected("table", c.exhibits, tables.Exhibits.Tables, t.Table)
	if err != nil {
		return err
	}
	var all []product
	for _, one := range wanted {
		all = append(all, product{one.Name, func(x *tables.Index, format string) ([]byte, string, error) {
			t, err := one.Table(x)
			if err != nil {
				return nil, "", err
			}
			text, err := t.Render(format)
			return []byte(cited(text, format, citation(x))), "", err
		}})
	}
	return t.write(c, all, report.TableFormats())
}

type figureCommand struct {
	Figure string `arg:"" help:"The figure with its parts, or all. \"reproduce list\" shows the figures."`
	output
}

// Run makes figures.
func (f figureCommand) Run(c command) error {
	wanted, err := selected("figure", c.exhibits, tables.Exhibits.Pictures, f.Figure)
	if err != nil {
		return err
	}
	var all []product
	for _, one := range wanted {
		all = append(all, product{one.Name, func(x *tables.Index, format string) ([]byte, string, error) {
			figure, err := one.Picture(x)
			if err != nil {
				return nil, "", err
			}
			picture, err := figure.Bytes(format)
			text := figure.Caption + "\n" + citation(x)
			if format == report.SVG {
				picture = described(picture, text)
			}
			return picture, text, err
		}})
	}
	f.Out = cmp.Or(f.Out, "./")
	return f.write(c, all, report.FigureFormats())
}

// A product is a table or a figure that can be made. caption is what to say of it; "" if it says so itself.
type product struct {
	name string
	make func(x *tables.Index, format string) (content []byte, caption string, err error)
}

// An output says from which store products are made, in which format, and to which file or folder; "" prints them.
type output struct {
	storeFlag
	Format string `placeholder:"FORMAT" help:"md, latex or csv of a table, and svg, png or pdf of a figure (default: that of the file of --out, else the first)."`
	Out    string `placeholder:"PATH" help:"The file or folder to write to (default: tables are printed, and figures are files here); for several a folder."`
}

// write makes products, and writes or prints them. If one of several cannot be made, the others are.
func (o output) write(c command, all []product, formats []string) error {
	format, folder, err := o.choose(formats, len(all) > 1)
	if err != nil {
		return err
	}
	index, err := o.read()
	if err != nil {
		return err
	}
	var failed []string
	for i, one := range all {
		content, caption, err := one.make(index.Fresh(), format)
		switch {
		case errors.Is(err, report.ErrNotRun) && len(all) > 1:
			c.tell("left out: %v", err)
			continue
		case err != nil:
			failed = append(failed, one.name+": "+err.Error())
			continue
		case o.Out == "":
			err = c.say(strings.Repeat("\n", min(i, 1)) + string(content))
		default:
			file := o.Out
			if folder {
				file = filepath.Join(file, one.name+ending(format))
			}
			if err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), atomicfile.WriteBytes(file, content)); err != nil {
				return err
			}
			c.tell("wrote %s", file)
			if caption != "" {
				err = c.say(file + ": " + caption + "\n")
			}
		}
		if err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d could not be made:\n  %s", len(failed), len(all), strings.Join(failed, "\n  "))
	}
	return nil
}

// choose returns the format that was asked for, or else that of the file, or the first one, and whether the output is a
// folder. A file whose name has the ending of another format would be taken for what it is not.
func (o output) choose(formats []string, several bool) (format string, folder bool, err error) {
	to := o.Out
	info, err := os.Stat(to)
	folder = strings.HasSuffix(to, "/") || err == nil && info.IsDir()
	format = cmp.Or(o.Format, formats[0])
	extension := filepath.Ext(to)
	i := slices.IndexFunc(formats, func(format string) bool { return ending(format) == extension })
	if several && !folder && i >= 0 {
		return "", false, usagef("--out: %s would be one file, and there are several to write; name a folder, and the format with --format", to)
	}
	if folder = folder || several; !folder && extension != "" {
		if i < 0 {
			return "", false, usagef("--out: %s has the ending %s, which is that of no format; there are %s", to, extension, strings.Join(formats, ", "))
		}
		if format = cmp.Or(o.Format, formats[i]); format != formats[i] {
			return "", false, usagef("--out: %s has the ending of the format %s, and --format is %s; leave one of them out", to, formats[i], format)
		}
	}
	if !slices.Contains(formats, format) {
		return "", false, usagef("--format: unknown %q, want %s", format, strings.Join(formats, ", "))
	}
	return format, folder, nil
}

// ending is the ending of files of a format.
func ending(format string) string {
	if format == report.LaTeX {
		return ".tex"
	}
	return "." + format
}

// described is an SVG drawing with a text as its description, which programs that read it aloud say, and which stays
// with the file.
func described(svg []byte, text string) []byte {
	open := bytes.Index(svg, []byte("<svg"))
	end := open + bytes.IndexByte(svg[open:], '>') + 1
	return slices.Concat(svg[:end], []byte("\n<desc>"+html.EscapeString(text)+"</desc>"), svg[end:])
}

// citation says by what version of the program and of which runs something was made.
func citation(x *tables.Index) string {
	count, used := map[string]int{}, 0
	for _, r := range x.Asked() {
		if r.ID != "" {
			used++
			count[cmp.Or(r.Preset, "no preset")]++
		}
	}
	var presets []string
	for _, name := range slices.Sorted(maps.Keys(count)) {
		presets = append(presets, fmt.Sprintf("%d %s", count[name], name))
	}
	text := fmt.Sprintf("densityuncertainty %s, %s", environment.Version(), report.Counted(used, "run", "runs"))
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
	}
	return text
}
