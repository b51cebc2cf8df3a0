// Package goexec is what setup adds to the notebook kernel, GoNB: advice for errors that everybody meets first, cells
// that are refused, panics that name the line of the cell, and completions that do not make wait.
package goexec

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"math"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	folders    = regexp.MustCompile(`(?m)^# .*\n|^go: gonb_\w+ imports\n\s*|\S*/(main(?:_test)?\.go:)`)
	unknown    = regexp.MustCompile(`undefined: (\w+)(?:\.(\w+))?(?:$|\n)`)
	unused     = regexp.MustCompile(`declared and not used: (\w+)`)
	idle       = regexp.MustCompile(`: (.+) \(.*\) is not used`)
	noPackage  = regexp.MustCompile(`package (\S+) is not in std.*|cannot find module providing package (\S+)`)
	named      = regexp.MustCompile(`expected '\(', found \w`)
	unexpected = regexp.MustCompile(`(?:expected|missing) .*(?:, found |before |in )`)
)

// explain adds to a message of Go's tools what to do about it, and takes temporary folders out. The tools have read
// code in the folder.
func explain(message, code, folder string) string {
	message = strings.TrimSpace(folders.ReplaceAllString(message, "$1"))
	if missing := noPackage.FindStringSubmatch(message); missing != nil {
		missing := missing[1] + missing[2]
		module, _, _ := strings.Cut(missing, "/")
		if near := nearest(missing, 2, list(folder, "std", module+"/...")); near != nil {
			return "there is no package " + missing + "; there is " + strings.Join(near, ", ")
		}
	}
	switch {
	case strings.Contains(message, "expected declaration, found"):
		return message + "\nStatements go below a line that reads %%; only declarations (import, func, type, var, const) stand without one."
	case strings.Contains(message, "found 'import'"):
		return message + "\nAn import stands above the line that reads %%."
	case named.MatchString(message) && !strings.Contains(message, "found main"):
		return message + "\nA function with a name stands above the line that reads %%; below it, write name := func ..."
	case unexpected.MatchString(message):
		return message + unclosed(code)
	case strings.Contains(message, "disabled by GOPROXY=off"), strings.Contains(message, "cannot find module providing package"):
		message, _, _ = strings.Cut(message, "\n---------------") // advice of GoNB that does not apply
		return message + "\nCells download nothing. To add a package to this notebook: !*with-network go get PACKAGE@latest"
	case unused.MatchString(message):
		return message + "\nGo compiles no variable that nothing uses: print it, or write _ = " + unused.FindStringSubmatch(message)[1] + " below it."
	case idle.MatchString(message):
		return message + "\nA cell shows what it prints: fmt.Println(" + idle.FindStringSubmatch(message)[1] + ")"
	case unknown.MatchString(message):
		found := unknown.FindStringSubmatch(message)
		name := found[1]
		if hint := misspelt(name, found[2], code, folder); hint != "" || found[2] != "" {
			return message + hint
		}
		if cell := declares(os.Getenv("JPY_SESSION_NAME"), name); cell != "" {
			return message + "\n" + name + " is declared in " + cell + ". Run that cell first, as after every restart of the kernel."
		}
		return message + "\nA cell is a program of its own, and values end with it: notebook.Keep carries " + name + " on, notebook.Kept brings it back; declarations (func, type, var, const) above %% stay."
	}
	return message
}

// list returns the packages that match the patterns.
func list(folder string, patterns ...string) []string {
	command := exec.Command("go", append([]string{"list", "-e", "-f", "{{.ImportPath}}"}, patterns...)...)
	command.Dir = folder
	found, err := command.Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(found))
}

// misspelt says what a package has whose name is like one that it does not have: the package that code imports, or one
// of the standard library, which is not imported then, since nothing of it is used. Without selected, code is searched
// for what it asks of the package.
func misspelt(name, selected, code, folder string) string {
	var paths []string
	if selected == "" {
		if use := regexp.MustCompile(`\b` + name + `\.([A-Z]\w*)`).FindStringSubmatch(code); use != nil {
			selected, paths = use[1], list(folder, "std")
		}
	} else if file, err := parser.ParseFile(token.NewFileSet(), "", code, parser.ImportsOnly); err == nil {
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if spec.Name == nil || spec.Name.Name != name {
				paths = append(paths, imported)
			} else {
				paths = []string{imported}
				name = path.Base(imported)
				break
			}
		}
	}
	hint := ""
	for _, imported := range paths {
		if path.Base(imported) != name || strings.Contains(imported, "internal/") {
			continue
		}
		if near := nearest(selected, (len(selected)+1)/2, exported(imported, folder)); near != nil {
			hint += fmt.Sprintf("\n%s has no %s; it has %s", imported, selected, strings.Join(near, ", "))
		}
	}
	return hint
}

// exported returns the names that a package exports.
func exported(imported, folder string) (names []string) {
	command := exec.Command("go", "list", "-f", "{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}\n{{end}}", imported)
	command.Dir = folder
	files, err := command.Output()
	if err != nil {
		return nil
	}
	for file := range strings.SplitSeq(strings.TrimSpace(string(files)), "\n") {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, declaration := range parsed.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names = append(names, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						names = append(names, s.Name.Name)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							names = append(names, name.Name)
						}
					}
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(name) })
}

// nearest returns the names, at most three, that differ from the one by the fewest letters: at most by so many, or by
// letters that it lacks.
func nearest(name string, most int, names []string) (near []string) {
	least := math.MaxInt
	for _, other := range names {
		d := distance(strings.ToLower(name), strings.ToLower(other))
		if d > least || d > most && (d > len(name) || d != len(other)-len(name)) {
			continue
		}
		if d < least {
			least, near = d, nil
		}
		if len(near) < 3 {
			near = append(near, other)
		}
	}
	slices.Sort(near)
	return near
}

// distance is how many letters have to be put in, left out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// unclosed names the line whose bracket nothing closes: one that a line closes which stands further left, or else the
// last.
func unclosed(code string) string {
	type bracket struct {
		token        token.Token
		line, indent int
	}
	if strings.Contains(code, "\nfunc main() {\n") {
		code = strings.TrimSuffix(code, "\n}\n") // what closes %%
	}
	lines := strings.Split(code, "\n")
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(code))
	s.Init(file, []byte(code), nil, 0)
	var open []bracket
	said := func(b bracket) string {
		return fmt.Sprintf("\nmain.go:%d:1: this line opens a %s that nothing closes", b.line, b.token)
	}
	for {
		at, found, _ := s.Scan()
		if found == token.EOF {
			break
		}
		line := file.Line(at)
		indent := len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " \t"))
		switch found {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			open = append(open, bracket{found, line, indent})
		case token.RPAREN, token.RBRACE, token.RBRACK:
			if len(open) == 0 {
				return ""
			}
			last := open[len(open)-1]
			first := file.Position(at).Column == indent+1
			if last.token != map[token.Token]token.Token{token.RPAREN: token.LPAREN, token.RBRACE: token.LBRACE, token.RBRACK: token.LBRACK}[found] || first && indent < last.indent {
				return said(last)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 || strings.HasPrefix(lines[open[len(open)-1].line-1], "func main() {") {
		return ""
	}
	return said(open[len(open)-1])
}

// declares says which cell of a notebook, of which the path is given, declares a
// name above %%, or nothing.
func declares(path, name string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	var notebook struct {
		Cells []struct {
			Type   string          `json:"cell_type"`
			Source json.RawMessage `json:"source"`
		} `json:"cells"`
	}
	if json.Unmarshal(content, &notebook) != nil {
		return ""
	}
	declaration := regexp.MustCompile(`(?m)^(?:func|type|var|const) ` + name + `\b|^(?:var|const|type) \((?:[^)]*\n)?\s+` + name + `\b`)
	heading := ""
	for _, cell := range notebook.Cells {
		var text string
		var lines []string
		if json.Unmarshal(cell.Source, &lines) == nil {
			text = strings.Join(lines, "")
		} else if json.Unmarshal(cell.Source, &text) != nil {
			continue
		}
		if cell.Type == "markdown" {
			for line := range strings.SplitSeq(text, "\n") {
				if title := strings.TrimLeft(line, "#"); title != line {
					heading = strings.TrimSpace(title)
				}
			}
			continue
		}
		above, _, _ := strings.Cut("\n"+text, "\n%%")
		if found := declaration.FindString(above); found != "" {
			place := "the cell with “" + strings.TrimSpace(found) + "”"
			if heading != "" {
				place += fmt.Sprintf(" below “%s”", heading)
			}
			return place
		}
	}
	return ""
}
