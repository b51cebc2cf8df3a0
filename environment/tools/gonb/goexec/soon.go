package goexec

import (
	"strings"
	"time"
	"unicode"
)

// warm is closed when the language server has loaded the workspace, which takes up to half a minute.
var warm = make(chan struct{})

// patience is how long a completion may take before the user hears why.
var patience = 1500 * time.Millisecond

// Why there is no completion yet.
const (
	Starting = "The language server is still starting: try again in a few seconds."
	Missing  = "The language server is still being built; .env/log/behind.log says how far it is."
)

// notWarm is why nothing is completed yet, or nothing.
func notWarm() string {
	select {
	case <-warm:
		return ""
	case <-time.After(patience):
		return Starting
	}
}

// Excuse answers a completion of a line up to the cursor with the reason why there is none. JupyterLab shows it and
// inserts what was typed. It replaces that many units of UTF-16. Where nothing was typed, it would insert the reason.
func Excuse(line, why string) (matches []string, metadata map[string]any, typed int) {
	name := line[strings.LastIndexFunc(line, func(r rune) bool { return r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })+1:]
	for _, r := range name {
		if typed++; r > 0xffff {
			typed++
		}
	}
	if name == "" {
		return []string{}, map[string]any{}, 0
	}
	inserted := map[string]string{"text": name}
	// JupyterLab inserts one without showing it, and of equal ones beside others it shows the first.
	return []string{name + " /* " + why + " */", name}, map[string]any{"_jupyter_types_experimental": []any{inserted, inserted}}, typed
}

// Selected puts a name behind a dot at the cursor that has none, so that the line can be parsed. The blank between keeps
// it out of what is completed.
func Selected(lines []string, line, column int) []string {
	before, after := lines[line][:column], lines[line][column:]
	if !strings.HasSuffix(before, ".") || strings.IndexFunc(after, func(r rune) bool { return r == '_' || unicode.IsLetter(r) }) == 0 {
		return lines
	}
	lines = append([]string(nil), lines...)
	lines[line] = before + " _" + after
	return lines
}
