package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"slices"
	"strings"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

const figureDoc = `reproduce figure writes a figure made from the results in the store, and prints its caption
and what it was made by and from, which an SVG file also holds. "reproduce list" shows the figures. A figure of quick runs says so in its titles.
Of all figures those are written for which there are runs; that some are missing is an error, which names them.

Usage: reproduce figure NAME|all [flags]
`

func (c command) figure(_ context.Context, args []string) error {
	flags := newFlags("figure")
	stores := storeFlag(flags)
	format := formatFlag(flags, report.FigureFormats())
	out := flags.String("out", "", "`file` or folder to write to (default NAME.FORMAT here); for \"all\" a folder (default here)")
	seed := flags.Uint64("seed", 0, "`seed` of the run that figures of the toy study show")
	positional, err := c.parse(flags, figureDoc, args)
	if err != nil {
		return err
	}
	wanted, err := selected("figure", "figure", namedFigures(), func(f report.NamedFigure) string { return f.Name }, positional)
	if err != nil {
		return err
	}
	if *format, err = formatOf(*format, *out, report.FigureFormats(), len(wanted) > 1); err != nil {
		return err
	}
	lines, err := c.read(*stores)
	if err != nil {
		return err
	}
	var failed []string
	for _, named := range wanted {
		watched, used := results.Watch(lines)
		figure, err := named.Make(watched, *seed)
		if err != nil && len(wanted) > 1 { // the others can be drawn
			failed = append(failed, fmt.Sprintf("%s: %v", named.Name, err))
			continue
		}
		if err != nil {
			return err
		}
		picture, err := figure.Bytes(*format)
		if err != nil {
			return err
		}
		cite := citation(used())
		if *format == report.SVG {
			picture = described(picture, figure.Caption+"\n"+cite)
		}
		path, err := target(*out, named.Name+ending(*format), len(wanted) > 1)
		if err != nil {
			return err
		}
		if err := atomicfile.WriteBytes(path, picture); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(c.stdout, "%s: %s\n%s\n", path, figure.Caption, cite); err != nil {
			return fmt.Errorf("printing the caption: %w", err)
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
