package methods

import (
	"fmt"
	"slices"
	"strings"
)

// Version is a protocol in one fidelity, for the table of options.
type Version struct {
	Protocol any // the struct as its constructor makes it
	// Filled is the protocol with the numbers filled in that are the method's own.
	Filled func(m Method) any
	// Also are the same in other settings; what differs in them is listed too, after their Setting.
	Setting string
	Also    []Version
}

// DescribeOptions lists the options of a study's protocol, made from its fields, as rows of text: the name, its value
// in each of the versions, and what it is. Where the value is each method's own, it is the one that most methods have,
// and those of the others.
func DescribeOptions(study string, versions ...Version) [][]string {
	var rows [][]string
	for _, f := range Fields(versions[0].Protocol, study) {
		row := []string{f.Name}
		for _, v := range versions {
			value := f.value(v)
			for _, other := range v.Also {
				if text := f.value(other); text != f.value(v) {
					value += fmt.Sprintf("; %s %s", other.Setting, text)
				}
			}
			row = append(row, value)
		}
		rows = append(rows, append(row, f.Doc))
	}
	return rows
}

// value is the field's value in a version as words.
func (f Field) value(v Version) string {
	if text := f.Text(v.Protocol); text != "" {
		return text
	}
	var values []string // different ones, in the order of the methods
	by := make(map[string][]string)
	for _, m := range All() {
		text := f.Text(v.Filled(m))
		if text == "" {
			continue // the method has none
		}
		if by[text] == nil {
			values = append(values, text)
		}
		by[text] = append(by[text], m.Name)
	}
	if len(values) == 0 {
		return "–"
	}
	usual := slices.MaxFunc(values, func(a, b string) int { return len(by[a]) - len(by[b]) })
	if len(by[usual]) == 1 && len(values) > 1 {
		usual = ""
	}
	var parts []string
	if usual != "" {
		parts = append(parts, usual)
	}
	for _, value := range values {
		if value != usual {
			parts = append(parts, fmt.Sprintf("%s %s", strings.Join(by[value], " and "), value))
		}
	}
	return strings.Join(parts, ", ")
}
