package goexec

import (
	"os"
	"path/filepath"
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

func TestWhichCellDeclares(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ipynb")
	const notebook = `{"cells": [
		{"cell_type": "markdown", "source": ["# T\n", "\n", "## 1. Data\n"]},
		{"cell_type": "code", "source": ["var data = 3\n", "\n", "func features(x int) int { return x }\n", "%%\n", "var inner = 1\n"]},
		{"cell_type": "code", "source": "const (\n\ta = 1\n\tb = 2\n)"}
	]}`
	if err := os.WriteFile(path, []byte(notebook), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JPY_SESSION_NAME", path)
	for name, want := range map[string]string{
		"features": "features is declared in the cell with “func features” below “1. Data”. Run that cell first",
		"data":     "the cell with “var data” below “1. Data”",
		"b":        "below “1. Data”. Run",
		"inner":    "notebook.Keep carries inner on", // it ends with its cell
		"feature":  "notebook.Keep carries feature on",
	} {
		if got := explain("main.go:3:1: undefined: " + name); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
