// Package goexec is what setup adds to the notebook kernel, GoNB: advice for four errors that everybody meets first,
// panics that name the line of the cell, and completions that do not make wait.
package goexec

import (
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
		return message + "\nA cell is a program of its own, and values end with it: notebook.Keep carries " + name + " on, notebook.Kept brings it back; declarations (func, type, var, const) above %% stay. After a restart of the kernel, run first the cell that declares " + name + "."
	}
	return message
}
