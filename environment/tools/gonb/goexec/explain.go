// Package goexec is what setup adds to the notebook kernel, GoNB: advice for four errors that everybody meets first,
// panics that name the line of the cell, and completions that do not make wait.
package goexec

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// unknown is what the compiler says of a name that is not declared. Those of packages have a dot in them.
var unknown = regexp.MustCompile(`undefined: (\w+)(?:$|\n)`)

// unused is what the compiler says of a variable that nothing reads.
var unused = regexp.MustCompile(`declared and not used: (\w+)`)

// explain adds to a message what to do about it.
func explain(message string) string {
	switch {
	case strings.Contains(message, "expected declaration, found"):
		return message + "\nStatements go below a line that reads %%; only declarations (import, func, type, var, const) stand without one."
	case strings.Contains(message, "disabled by GOPROXY=off"), strings.Contains(message, "cannot find module providing package"):
		message, _, _ = strings.Cut(message, "\n---------------") // advice of GoNB that does not apply
		return message + "\nCells download nothing. To add a package to this notebook: !*with-network go get PACKAGE@latest"
	case unused.MatchString(message):
		return message + "\nGo compiles no variable that nothing uses: print it, or write _ = " + unused.FindStringSubmatch(message)[1] + " below it."
	case unknown.MatchString(message):
		name := unknown.FindStringSubmatch(message)[1]
		if cell := declares(os.Getenv("JPY_SESSION_NAME"), name); cell != "" {
			return message + "\n" + name + " is declared in " + cell + ". Run that cell first, as after every restart of the kernel."
		}
		return message + "\nA cell is a program of its own, and values end with it: notebook.Keep carries " + name + " on, notebook.Kept brings it back; declarations (func, type, var, const) above %% stay."
	}
	return message
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
