// Backend prints where computations would run, as the notebooks choose it, and
// fails where that choice cannot be honoured.
package main

import (
	"fmt"
	"io"
	"os"

	"densityuncertainty/environment"
)

const usage = `usage: backend
It prints where computations would run; ` + environment.ConfigVariable + ` chooses.`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run carries out a command line and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	print := func(w io.Writer, text string, status int) int {
		if _, err := fmt.Fprintln(w, text); err != nil {
			return 1
		}
		return status
	}
	switch {
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-h"):
		return print(stdout, usage, 0)
	case len(args) > 0:
		return print(stderr, fmt.Sprintf("error: backend takes no argument %q\n%s", args[0], usage), 2)
	}
	_, line, err := environment.Open()
	if err != nil {
		return print(stderr, "error: "+err.Error(), 1)
	}
	return print(stdout, line, 0)
}
