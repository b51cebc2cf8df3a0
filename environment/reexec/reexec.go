// Package reexec lets a test run itself again in a process of its own, which can be killed or see another environment:
//
//	if folder, is := reexec.Argument(t); is {
//		workForEver(folder) // the other process
//		return
//	}
//	c := reexec.Command(t, t.TempDir())
package reexec

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// The variables of the environment that name the test and hold its argument.
const (
	testVariable     = "REEXEC_TEST"
	argumentVariable = "REEXEC_ARGUMENT"
)

// Command is a command that runs this test program again with the test t alone, or
// a subtest, and with an argument for it. What it writes to standard error goes to
// that of this process. In such a process it fails the test, so that none starts
// others without end.
func Command(t testing.TB, argument string) *exec.Cmd {
	t.Helper()
	if test := os.Getenv(testVariable); test != "" {
		t.Fatalf("%s starts a process in the process of %s; ask for reexec.Argument first", t.Name(), test)
	}
	var pattern []string
	for _, name := range strings.Split(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(name)+"$")
	}
	c := exec.Command(must.Get(os.Executable())(t), "-test.run="+strings.Join(pattern, "/"))
	c.Env = append(os.Environ(), testVariable+"="+t.Name(), argumentVariable+"="+argument)
	c.Stderr = os.Stderr
	return c
}

// Argument is what Command was given, in the process that it started for the test
// t, and says whether this is that process.
func Argument(t testing.TB) (argument string, is bool) {
	return os.Getenv(argumentVariable), os.Getenv(testVariable) == t.Name()
}
