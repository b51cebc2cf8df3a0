// Package kernel is what setup adds to the package of that name in the notebook
// kernel, GoNB: an end to endless output, a start that may be interrupted, and a stop that may be asked for twice.
package kernel

import (
	"bytes"
	"fmt"
	"io"
	"sync/atomic"
)

// stopping is whether the kernel is about to stop.
var stopping atomic.Bool

// firstStop says whether nobody has asked the kernel to stop before.
func firstStop() bool { return stopping.CompareAndSwap(false, true) }

// What a cell may print to one of its streams. Browsers hang on a hundred
// thousand lines.
const (
	mostLines = 10_000
	mostBytes = 1 << 20
)

// limited writes to w until there is more than that, and then says once that the
// rest is cut. It takes what is cut, so that the program goes on.
func limited(w io.Writer) io.Writer { return &limit{w: w} }

type limit struct {
	w            io.Writer
	lines, bytes int
	over         bool
}

func (l *limit) Write(p []byte) (int, error) {
	if l.over {
		return len(p), nil
	}
	rest := p
	for i, c := range p {
		if l.bytes++; c == '\n' {
			l.lines++
		}
		if l.lines >= mostLines || l.bytes >= mostBytes {
			l.over, rest = true, p[:i+1]
			break
		}
	}
	if l.over {
		rest = append(bytes.Clone(rest), fmt.Sprintf("\n[The output is cut here, after %d lines and %d bytes; the cell goes on. Print less, or write it to a file with os.WriteFile.]\n", l.lines, l.bytes)...)
	}
	if _, err := l.w.Write(rest); err != nil {
		return 0, err
	}
	return len(p), nil
}
