package kernel

import (
	"bytes"
	"strings"
	"testing"
)

func TestLimited(t *testing.T) {
	const cut = "[The output is cut here, after "
	for _, c := range []struct {
		name, piece string
		pieces      int
		lines       int // that are shown, without the message
		cut         bool
	}{
		{"little", "a\n", 3, 3, false},
		{"just short of it", "a\n", mostLines - 1, mostLines - 1, false},
		{"lines", "a\nb\n", mostLines, mostLines, true},
		{"one line", strings.Repeat("x", 1000), mostBytes, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var shown bytes.Buffer
			w := limited(&shown)
			for range c.pieces {
				if n, err := w.Write([]byte(c.piece)); n != len(c.piece) || err != nil {
					t.Fatalf("wrote %d bytes, %v", n, err)
				}
			}
			before, message, found := strings.Cut(shown.String(), "\n"+cut)
			if lines := strings.Count(before, "\n"); found != c.cut || lines != c.lines {
				t.Errorf("cut %v after %d lines", found, lines)
			}
			if strings.Contains(message, cut) || shown.Len() > mostBytes+1000 {
				t.Errorf("%d bytes; said again: %q", shown.Len(), message)
			}
		})
	}
}

func TestFirstStop(t *testing.T) {
	if !firstStop() || firstStop() {
		t.Error("want true and then false")
	}
}
