package goexec

import (
	"strings"
	"testing"
	"time"
)

func TestSoon(t *testing.T) {
	defer func(before time.Duration) { patience = before }(patience)
	patience = time.Minute
	ran := false
	if !Soon(func() { ran = true }) || !ran {
		t.Error("a quick completion is not done")
	}
	patience = time.Millisecond
	release := make(chan struct{})
	if Soon(func() { <-release }) {
		t.Error("a slow completion is done")
	}
	if Soon(func() { t.Error("two at a time") }) {
		t.Error("another one is done meanwhile")
	}
	waited := make(chan struct{})
	go func() {
		WaitForCompletion()
		close(waited)
	}()
	select {
	case <-waited:
		t.Error("a cell runs while a completion writes its files")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	<-waited
}

func TestStillStarting(t *testing.T) {
	for _, c := range []struct {
		line, word string
		typed      int
	}{
		{"fmt.Pri", "Pri", 3},
		{"	x := ", "", 0},
		{"", "", 0},
		{"γ_2", "γ_2", 3},
		{"a+\U0001D49C", "\U0001D49C", 2}, // a letter of two units
	} {
		matches, typed := StillStarting(c.line, Starting)
		if len(matches) != 2 || matches[0] != c.word || !strings.HasPrefix(matches[1], c.word+" /* The language server is still starting") || typed != c.typed {
			t.Errorf("%q: %q, %d", c.line, matches, typed)
		}
	}
}
