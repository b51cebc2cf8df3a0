//go:build unix

package results_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/results"
)

// add adds a line.
func add(path, line string) error {
	return results.AddLines(path, func([]byte) ([]byte, error) { return []byte(line + "\n"), nil })
}

// A killed process leaves the last line torn. The whole lines before it count, and the next one follows them.
func TestLines(t *testing.T) {
	for _, c := range []struct{ name, content, read string }{{"empty", "", ""}, {"whole", "a\nb\n", "a\nb\n"}, {"torn", "a\nb", "a\n"}, {"all torn", "a", ""}} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lines")
			must.Do(t, os.WriteFile(path, []byte(c.content), 0o600))
			if got := string(must.Get(results.WholeLines(path))(t)); got != c.read {
				t.Errorf("read %q, want %q", got, c.read)
			}
			must.Do(t, add(path, "new"))
			if got := string(must.Get(os.ReadFile(path))(t)); got != c.read+"new\n" {
				t.Errorf("afterwards the file is %q", got)
			}
		})
	}
}

// Compressed lines are read, and an incomplete compressed file is an error.
func TestCompressedLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	must.Get(z.Write([]byte("a\nb\n")))(t)
	must.Do(t, z.Close())
	must.Do(t, os.WriteFile(path, b.Bytes(), 0o600))
	if got := string(must.Get(results.WholeLines(path))(t)); got != "a\nb\n" {
		t.Errorf("read %q", got)
	}
	must.Do(t, os.WriteFile(path, b.Bytes()[:b.Len()-1], 0o600))
	if _, err := results.WholeLines(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the error is %v", err)
	}
}

// Lines that many add at a time are all there, none torn, and each sees those before it.
func TestManyAdd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words")
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() {
			for i := range 20 {
				if err := results.AddLines(path, func(before []byte) ([]byte, error) {
					return fmt.Appendf(nil, "%d of %d after %d\n", i, writer, bytes.Count(before, []byte("\n"))), nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for line := range strings.Lines(string(must.Get(results.WholeLines(path))(t))) {
		if !strings.HasSuffix(line, fmt.Sprintf(" after %d\n", n)) {
			t.Errorf("line %d is %q", n+1, line)
		}
		n++
	}
	if n != 160 {
		t.Errorf("%d lines", n)
	}
}
