package goexec

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestIsWarm(t *testing.T) {
	defer func(before time.Duration) { patience = before }(patience)
	patience = time.Millisecond
	before := isWarm()
	patience = time.Minute
	close(warm)
	if after := isWarm(); before || !after {
		t.Errorf("%v while the language server starts, %v afterwards", before, after)
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
