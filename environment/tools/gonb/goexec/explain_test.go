package goexec

import (
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	if got := explain("cannot find module providing package x\n---------------\nNote: try %goworkfix"); strings.Contains(got, "goworkfix") {
		t.Errorf("got %q", got)
	}
	for _, c := range []struct{ name, message, advice string }{
		{"statement", "main.go:3:1: expected declaration, found fmt", "below a line that reads %%"},
		{"package", "main.go:3:1: module lookup disabled by GOPROXY=off", "!*with-network go get"},
		{"package elsewhere", "gonb imports\n\tx/y: cannot find module providing package x/y", "!*with-network go get"},
		{"value", "main.go:3:1: undefined: x", "notebook.Keep carries x on"},
		{"value among others", "main.go:3:1: undefined: mean\n\nmore", "notebook.Keep carries mean on"},
		{"of a package", "main.go:3:1: undefined: fmt.Printn", ""},
		{"not used", "main.go:3:1: declared and not used: rows\n\nmore", "write _ = rows below it"},
		{"other", "main.go:3:1: missing return", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := explain(c.message)
			if !strings.HasPrefix(got, c.message) || !strings.Contains(got, c.advice) || (c.advice == "" && got != c.message) {
				t.Errorf("got %q", got)
			}
		})
	}
}
