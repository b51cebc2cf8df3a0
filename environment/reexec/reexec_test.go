package reexec_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"densityuncertainty/environment/reexec"
)

// A test and a subtest, whose names need quoting, see their own argument alone.
func TestCommand(t *testing.T) {
	for _, name := range []string{"plain", "a (b) = c"} {
		t.Run(name, func(t *testing.T) {
			if argument, is := reexec.Argument(t); is {
				fmt.Println("argument:", argument)
				os.Exit(3)
			}
			out, err := reexec.Command(t, "x=1 y").Output()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(string(out), "argument: x=1 y\n") {
				t.Errorf("the process said %q and ended with %v, want code 3", out, err)
			}
		})
	}
}
