package main

import (
	"os"
	"strings"
	"testing"

	"densityuncertainty/figures/results"
)

func TestFillIn(t *testing.T) {
	text := "a\n<!-- generated: options -->\nold\n<!-- end of generated -->\nb\n"
	filled, err := fillIn(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(filled, "old") || !strings.Contains(filled, "| `clip` |") || !strings.HasPrefix(filled, "a\n") || !strings.HasSuffix(filled, "b\n") {
		t.Errorf("filled in:\n%s", filled)
	}
	again, err := fillIn(filled, nil)
	if err != nil || again != filled {
		t.Errorf("filling twice gives another text (error %v):\n%s", err, again)
	}
	for name, wrong := range map[string]string{
		"nothing to generate for": "<!-- generated: table none -->\n<!-- end of generated -->",
		"1 generated parts begin": "<!-- generated: options -->\n",
	} {
		if _, err := fillIn(wrong, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("filling %q: error %v, want %q", wrong, err, name)
		}
	}
}

// The README's tables must be those of the committed result lines.
func TestReadmeIsUpToDate(t *testing.T) {
	const readme = "../../../README.md"
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := results.Read("../../runs")
	if err != nil {
		t.Fatal(err)
	}
	filled, err := fillIn(string(text), lines)
	if err != nil {
		t.Fatal(err)
	}
	if filled != string(text) {
		t.Error("README.md does not show the committed result lines; run: go run ./figures/cmd/reproduce fill README.md")
	}
}
