package results

import "maps"

// uses are the lines that were looked at, by their identity.
type uses map[string]Result

// note adds a line, unless nobody wants to know.
func (u uses) note(line Result) {
	if u != nil {
		u[line.ID] = line
	}
}

// Watch is a copy of lines that remembers which of them a table or a figure is made from: used are those that were
// found in an Index or put into Groups so far, by their identity. Neither is to be used by several goroutines.
func Watch(lines []Result) (watched []Result, used func() Index) {
	seen := make(uses)
	for _, line := range lines {
		line.uses = seen
		watched = append(watched, line)
	}
	return watched, func() Index { return Index(maps.Clone(seen)) }
}

// Find is the line of an experiment, and whether there is one.
func (x Index) Find(e Experiment) (Result, bool) {
	line, done := x[e.ID()]
	if done {
		line.uses.note(line)
	}
	return line, done
}
