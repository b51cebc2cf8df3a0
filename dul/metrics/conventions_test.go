package metrics

import (
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// The column "here" of README.md is what the examples print, which go test compares with what they compute.
func TestConventions(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "example_test.go", nil, parser.ParseComments)
	must.Do(t, err)
	var printed []string // such as "Brier: 0.4525"
	for _, e := range doc.Examples(file) {
		for line := range strings.Lines(e.Output) {
			printed = append(printed, strings.Replace(e.Name, "_", ".", 1)+": "+strings.TrimSpace(line))
		}
	}
	page := must.Get(os.ReadFile("README.md"))(t)
	var here []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([\\w.]+)`[^,|]*(?:, ([^|]+))? \\| (\\d\\S*) \\|").FindAllStringSubmatch(string(page), -1) {
		here = append(here, strings.Join(slices.DeleteFunc(row[1:], func(s string) bool { return s == "" }), ": "))
	}
	slices.Sort(printed)
	slices.Sort(here)
	if !slices.Equal(here, printed) {
		t.Errorf("README.md has\n%q, and the examples\n%q", here, printed)
	}
}
