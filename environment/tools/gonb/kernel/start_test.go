package kernel

import (
	"errors"
	"testing"
	"time"
)

// A start that was interrupted, which the kernel may note later, ends without a word.
func TestStartFailed(t *testing.T) {
	failed := errors.New("no such program")
	for _, c := range []struct {
		name        string
		interrupted func() bool
		message     string
		code        int
	}{
		{"interrupted", func() bool { return true }, "", 130},
		{"noted later", after(3 * noteEvery), "", 130},
		{"failed", func() bool { return false }, "The notebook kernel failed to start: no such program\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if message, code := startFailed(c.interrupted, "start", failed); message != c.message || code != c.code {
				t.Errorf("%q and %d, want %q and %d", message, code, c.message, c.code)
			}
		})
	}
}

func after(d time.Duration) func() bool {
	begun := time.Now()
	return func() bool { return time.Since(begun) > d }
}
