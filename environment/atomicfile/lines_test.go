package atomicfile

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"densityuncertainty/environment/must"
)

// Lines that many add at a time are all there, none torn, and each sees those before it.
func TestManyAdd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words")
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() {
			for i := range 20 {
				if err := Update(path, func(before []byte) ([]byte, error) {
					return fmt.Appendf(before, "%d of %d after %d\n", i, writer, bytes.Count(before, []byte("\n"))), nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for line := range strings.Lines(string(must.Get(Lines(path))(t))) {
		if !strings.HasSuffix(line, fmt.Sprintf(" after %d\n", n)) {
			t.Errorf("line %d is %q", n+1, line)
		}
		n++
	}
	if n != 160 {
		t.Errorf("%d lines", n)
	}
}
