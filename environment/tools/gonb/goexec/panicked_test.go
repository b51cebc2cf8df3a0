package goexec

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// traced is an error as github.com/pkg/errors makes them: with %+v it shows where it comes from.
const traced = `
type traced struct{ message, where string }

func (e traced) Error() string { return e.message }

func (e traced) Format(s fmt.State, verb rune) { fmt.Fprint(s, e.message, "\nmain.f\n\t", e.where, "\nmain.main\n\t", e.where, "0") }
`

func TestPanicked(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"text", "panic(\"no data\")", `^panic: no data\n\n\S*/main\.go:6: panic\("no data"\)\n`},
		{"index", "var a []int; fmt.Println(a[len(os.Args)])", `^panic: runtime error: index out of range .*\n\n\S*/main\.go:6: var a .*\n`},
		{"below", "func() { fmt.Println(os.Args[:0][0]) }()", `^panic: runtime error: .*\n\n\S*/main\.go:6: func`},
		{
			"a graph", `where, _ := os.Getwd(); panic(traced{"failed during graph construction/compilation: of x: graphFn for x panicked: of shapes [1] and [2]", where + "/main.go:9"})`,
			`^panic: of shapes \[1\] and \[2\]\n\n\S*/main\.go:9: type traced`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			if err := addPanicked(folder); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{
				"go.mod":  "module m\ngo 1.27\n",
				"main.go": "package main\n\nimport (\"fmt\"; \"os\")\n\nfunc main() { defer gonbPanicked()\n\t" + c.code + "\n}\n" + traced + "\nvar _ = os.Args\n",
			} {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			command := exec.Command("go", "run", ".")
			command.Dir = folder
			command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
			output, err := command.CombinedOutput()
			if err == nil || !regexp.MustCompile(c.want).Match(output) {
				t.Errorf("%v, %s", err, output)
			}
		})
	}
}
