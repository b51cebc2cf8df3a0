// Backend prints where computations would run, as the notebooks choose it, and
// fails where that choice cannot be honoured.
package main

import (
	"fmt"
	"os"

	"densityuncertainty/environment"
)

func main() {
	_, line, err := environment.Open()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println(line)
}
