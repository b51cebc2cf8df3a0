package main

import (
	"fmt"
	"html"
	"strings"

	"densityuncertainty/environment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// citation says what a table or a figure was made by and from: the version of this program, the fidelities of the
// runs that were used, and their number, with those that are not at full scale.
func citation(used results.Index) string {
	parts := []string{"densityuncertainty " + environment.Version()}
	count := func(has func(results.Experiment) bool) (n int) {
		for _, line := range used {
			if has(line.Experiment) {
				n++
			}
		}
		return n
	}
	var fidelities, smaller []string
	for _, f := range []string{results.Paper, results.Released} {
		if count(func(e results.Experiment) bool { return e.Fidelity == f }) > 0 {
			fidelities = append(fidelities, f)
		}
	}
	if len(fidelities) > 0 {
		parts = append(parts, strings.Join(fidelities, " and ")+" fidelity")
	}
	for _, scale := range results.Scales() {
		if n := count(func(e results.Experiment) bool { return e.Scale == scale }); n > 0 && scale != results.Full {
			smaller = append(smaller, fmt.Sprintf("%d %s", n, scale))
		}
	}
	runs := results.Counted(len(used), "run", "runs")
	if len(smaller) > 0 {
		runs += ", of them " + strings.Join(smaller, " and ")
	}
	return strings.Join(append(parts, runs), ", ")
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
