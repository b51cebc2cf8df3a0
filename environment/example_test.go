package environment_test

import (
	"fmt"
	"os"

	"densityuncertainty/environment"
)

func ExampleOpen() {
	// Users set this in the shell; unset, the program chooses.
	if err := os.Setenv(environment.ConfigVariable, environment.GoSequential); err != nil {
		fmt.Println(err)
		return
	}
	backend, line, err := environment.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprintln(os.Stderr, line) // what was chosen, for whoever watches
	fmt.Println(environment.Describe(backend).Backend)
	// Output: go:ops_sequential
}
