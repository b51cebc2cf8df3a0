package goexec

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	// A line that begins within a string or comment is marked by a leading T here.
	const cell = "import \"fmt\" // `\n!echo \"`it's\" \\\n`\n%%\na := `x\nT%d\nT!y` + '`' + \"\\\"`\"\n%args `\nb := 1 /* `\nT%\nT*/ + len(`\nT`) // /*\nc := '\\''\n`\nT"
	var lines []string
	var want []bool
	for line := range strings.SplitSeq(cell, "\n") {
		text := strings.HasPrefix(line, "T")
		lines, want = append(lines, strings.TrimPrefix(line, "T")), append(want, text)
	}
	for i, got := range Text(lines) {
		if got != want[i] {
			t.Errorf("line %d, %q: %v", i+1, lines[i], got)
		}
	}
}

func TestRefuse(t *testing.T) {
	for cell, want := range map[string]string{
		"var x = 1\n%%\nfmt.Println(x)":                  "",
		"%%\na := 1\n%%\nb := 2":                         "line 3: a cell is one program, and line 1 has begun it; leave the second %% out",
		"%main\n%exec f":                                 "line 2: ",
		"%%\ns := `\n%%\n`":                              "",
		"import _ \"embed\"\n//go:embed a\nvar x string": "line 2: //go:embed has no effect",
	} {
		if err := Refuse(strings.Split(cell, "\n")); (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", cell, err, want)
		}
	}
}
