package main

import (
	"bytes"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// Each kind of change is made, at its place, and the rest of the file stays.
func TestMutants(t *testing.T) {
	for _, c := range []struct {
		body string
		want []string // what the body becomes
	}{
		{"x := a + b", []string{"x := a - b", "x := a"}},
		{`x := a + "b"`, nil},
		{"x := a < b && c", []string{"x := a < b || c", "x := a <= b && c"}},
		{"x := 7", []string{"x := 8"}},
		{"x := 0.5", []string{"x := 1e+00"}},
		{"x := 0.0", []string{"x := 1.0"}},
		{"x := y.Dim(-1)", []string{"x := y.Dim(-2)"}},
		{"x := -y", []string{"x := y"}},
		{"if f(x) { g() }", []string{"if !(f(x)) { g() }"}},
		{"x += y", []string{"x -= y", "_ = y"}},
		{"x++", []string{"x--"}},
		{"for { break }", []string{"for { continue }"}},
		{"x := graph.Mul(a, b)", []string{"x := graph.Div(a, b)", "x := a"}},
		{"x := graph.Sub(a, b)", []string{"x := graph.Add(a, b)", "x := a", "x := graph.Sub(b, a)"}},
		{"x := graph.MulScalar(a, 3)", []string{"x := graph.AddScalar(a, 3)", "x := a", "x := graph.MulScalar(3, a)", "x := graph.MulScalar(a, 4)"}},
		{"x := f(s, a, b)", []string{"x := f(s, b, a)"}},
		{`return fmt.Errorf("%d", n+1)`, nil},
		{"return 0, err", nil},
		{`return 0, fmt.Errorf("n")`, nil},
		{"return 0, nil", []string{"return 1, nil"}},
		{"x := make([]int, 2, 3)", []string{"x := make([]int, 3, 3)"}},
	} {
		t.Run(c.body, func(t *testing.T) {
			const before, after = "package p\n\nfunc f() {\n\t", "\n}\n"
			var got []string
			for _, m := range must.Get(mutantsOf("p.go", []byte(before+c.body+after)))(t) {
				text := string(m.apply())
				if _, err := format.Source([]byte(text)); err != nil || m.line != 4 {
					t.Errorf("%v: %v", m, err)
				}
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(text, before), after))
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A change that a test of the package or of an importer notices is killed; one that none notices survives; an endless
// loop is stopped; what does not compile does not count.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds some twenty small programs")
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module m\n\ngo 1.24\n",
		"a/a.go":      "package a\n\nfunc Double(x int) int { return x + x }\n\nfunc Half(x int) int { return x >> 1 }\n\nfunc Rest(x int) int { return x % 9 }\n\nfunc Join(a, b string) string { return a + b }\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc Test(t *testing.T) {\n\tif Double(3) != 6 {\n\t\tt.Error(Double(3))\n\t}\n}\n",
		"b/b.go":      "package b\n\nimport \"m/a\"\n\nvar Half = a.Half(8)\n",
		"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc Test(t *testing.T) {\n\tif Half != 4 {\n\t\tt.Error(Half)\n\t}\n}\n",
	} {
		path := filepath.Join(folder, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	t.Chdir(folder)
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	var out bytes.Buffer
	known := explanations("# Known\n\n## a/a.go\n\n    func Rest(x int) int { return x % 9 }\n    constant: 9 -> 10\n    constant: 8 -> 9\n\nNo reason.\n")
	o := options{known: known, seed: 1, count: 100, limit: 60e9, importing: 60e9, match: regexp.MustCompile(""), packages: []string{"./a"}, cache: t.TempDir(), out: &out}
	must.Do(t, o.run(t.Context()))
	for _, want := range []string{
		"killed    ", "a/a.go:3: operator: + -> -", "a/a.go:3: dropped term: x + x -> x",
		"survived: a/a.go:7: operator: % -> *", "a/a.go:7: constant: 9 -> 10: No reason.",
		"stale in survivors.md: a/a.go: constant: 8 -> 9 in func Rest(x int) int { return x % 9 }\n",
		"invalid   ", "a/a.go:9: operator: + -> -",
		"4 of 7 mutants killed (57 %), 1 known to survive",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "survived: a/a.go:5") {
		t.Errorf("the importer's test notices nothing:\n%s", &out)
	}
}
