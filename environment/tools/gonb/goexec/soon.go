package goexec

import (
	"strings"
	"time"
	"unicode"
)

// warm is closed when the language server has loaded the workspace, which takes up to half a minute.
var warm = make(chan struct{})

// patience is how long a completion waits for that.
var patience = 1500 * time.Millisecond

func isWarm() bool {
	select {
	case <-warm:
		return true
	case <-time.After(patience):
		return false
	}
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
