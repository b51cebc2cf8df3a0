package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"path/filepath"
	"slices"
	"strings"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

const figureDoc = `reproduce figure writes a figure made from the results in the store, and prints its caption
and what it was made by and from, which an SVG file also holds. "reproduce list" shows the figures. A figure of quick runs says so in its titles.

Usage: reproduce figure NAME|all [flags]
`

func (c command) figure(_ context.Context, args []string) error {
	flags := newFlags("figure")
	stores := storeFlag(flags)
	format := flags.String("format", "", "`format`: "+strings.Join(report.FigureFormats(), ", ")+" (default that of the file of --out, else svg)")
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
	switch extension := strings.TrimPrefix(filepath.Ext(*out), "."); {
	case *format == "" && slices.Contains(report.FigureFormats(), extension):
		*format = extension
	case *format == "":
		*format = report.SVG
	}
	if !slices.Contains(report.FigureFormats(), *format) {
		return usagef("--format: unknown %q, want %s", *format, strings.Join(report.FigureFormats(), ", "))
	}
	lines, err := c.read(*stores)
	if err != nil {
		return err
	}
	for _, named := range wanted {
		watched, used := results.Watch(lines)
		figure, err := named.Make(watched, *seed)
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
		file := named.Name + "." + *format
		path, err := target(*out, file, len(wanted) > 1)
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
