package goexec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	if got := explain("cannot find module providing package x\n---------------\nNote: try %goworkfix", "", "."); strings.Contains(got, "goworkfix") {
		t.Errorf("got %q", got)
	}
	for _, c := range []struct{ name, message, code, advice string }{
		{"statement", "main.go:3:1: expected declaration, found fmt", "", "\nStatements go below a line that reads %%"},
		{"package", "main.go:3:1: module lookup disabled by GOPROXY=off", "", "\nCells download nothing. To add a package to this notebook: !*with-network go get"},
		{"package elsewhere", "gonb imports\n\tx/y: cannot find module providing package x/y", "", "\nCells download nothing"},
		{"import below", "main.go:3:1: expected statement, found 'import'", "", "\nAn import stands above"},
		{"function below", "main.go:3:1: expected '(', found g (and 2 more errors)", "", "\nA function with a name stands above"},
		{"brace", "main.go:9:3: expected '}', found 'EOF'", "package main\n\nfunc main() {\n\tflag.Parse()\nif true {\n\tfmt.Println(1)\n\n}\n", "\nmain.go:5:1: this line opens a { that nothing closes"},
		{"brace further right", "main.go:8:6: expected '(', found main", "package main\n\nfunc f() {\n\tif true {\n\t\ta()\n}\n\nfunc main() {\n\tflag.Parse()\n\n}\n", "\nmain.go:4:1: this line opens a { that"},
		{"parenthesis", "main.go:3:9: missing ',' in parameter list", "package main\n\nfunc h(a int {\n}\n", "\nmain.go:3:1: this line opens a ( that"},
		{"nothing open", "main.go:3:9: missing ',' in parameter list", "package main\n\nfunc main() {\nf(1 2)\n}\n", ""},
		{"expression", "main.go:5:1: 1 + 2 (untyped int constant 3) is not used", "", "\nA cell shows what it prints: fmt.Println(1 + 2)"},
		{"value", "main.go:3:1: undefined: x", "", "\nA cell is a program of its own, and values end with it: notebook.Keep carries x on"},
		{"value among others", "main.go:3:1: undefined: mean\n\nmore", "", "\nA cell is a program"},
		{"of no package", "main.go:3:1: undefined: list", "list.Sort()", "\nA cell is a program"},
		{"of a package that is not imported", "main.go:3:1: undefined: fmt", "fmt.Printn(1)", "\nfmt has no Printn; it has Print, Printf, Println"},
		{"with more letters", "main.go:3:1: undefined: strings", "strings.Uper(1)", "\nstrings has no Uper; it has ToUpper"},
		{"of one that is", "main.go:3:1: undefined: other.Marshall", "package main\nimport other \"encoding/json\"", "\nencoding/json has no Marshall; it has Marshal"},
		{"of one, unlike all", "main.go:3:1: undefined: json.Xyzxyz", "package main\nimport \"encoding/json\"", ""},
		{"not used", "main.go:3:1: declared and not used: rows\n\nmore", "", "\nGo compiles no variable that nothing uses: print it, or write _ = rows below it"},
		{"other", "main.go:3:1: missing return", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := explain("# gonb_1\n/tmp/gonb_1/"+c.message, c.code, ".")
			if c.name == "package elsewhere" {
				got = explain(c.message, c.code, ".")
			}
			if !strings.HasPrefix(got, c.message+c.advice) || (c.advice == "" && got != c.message) {
				t.Errorf("got %q", got)
			}
		})
	}
	const misspelt = "main.go:3:8: package densityuncertainty/environment/tools/gonb/goexek is not in std (/usr/lib/go)"
	if got := explain(misspelt, "", "."); !strings.HasSuffix(got, "; there is densityuncertainty/environment/tools/gonb/goexec") {
		t.Errorf("got %q", got)
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
		if got := explain("main.go:3:1: undefined: "+name, "", "."); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
