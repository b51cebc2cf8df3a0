package goexec

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNotWarm(t *testing.T) {
	defer func(before time.Duration) { patience = before }(patience)
	patience = time.Millisecond
	if got := notWarm(); got != Starting {
		t.Errorf("while it starts: %q", got)
	}
	patience = time.Minute
	close(warm)
	if got := notWarm(); got != "" {
		t.Errorf("when it has loaded: %q", got)
	}
}

func TestExcuse(t *testing.T) {
	for _, c := range []struct {
		line, word string
		typed      int
	}{
		{"fmt.Pri", "fmt.Pri", 7},
		{"	x.", "x.", 2},
		{"	x := ", "", 0},
		{"", "", 0},
		{"γ_2", "γ_2", 3},
		{"a+\U0001D49C", "\U0001D49C", 2}, // a letter of two units
	} {
		matches, metadata, typed := Excuse(c.line, Starting)
		if typed != c.typed || (len(matches) != 0) != (c.word != "") {
			t.Errorf("%q: %q, %d", c.line, matches, typed)
			continue
		}
		for i, match := range matches {
			inserted := metadata["_jupyter_types_experimental"].([]any)[i].(map[string]string)["text"]
			if !strings.HasPrefix(match, c.word) || inserted != c.word {
				t.Errorf("%q: %q, which inserts %q", c.line, match, inserted)
			}
		}
		if c.word != "" && !strings.Contains(matches[0], Starting) {
			t.Errorf("%q: %q", c.line, matches)
		}
	}
}

func TestSelected(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"x.|", "x. _"},
		{"f(x.|)", "f(x. _)"},
		{"x.|Name", "x.Name"},
		{"x.N|", "x.N"},
		{"|", ""},
	} {
		before, after, _ := strings.Cut(c.line, "|")
		lines := []string{"%%", before + after}
		if got := Selected(lines, 1, len(before)); !slices.Equal(got, []string{"%%", c.want}) || lines[1] != before+after {
			t.Errorf("%q: %q", c.line, got)
		}
	}
}
