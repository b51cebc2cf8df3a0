package goexec

import (
	"sync"
	"time"
	"unicode"
)

// completing is held while a completion is computed, which takes up to half a
// minute where the language server is still starting.
var completing sync.Mutex

// patience is how long a completion may take before the user hears why.
var patience = 1500 * time.Millisecond

// Soon runs complete and tells whether it is done soon. Otherwise it goes on
// beside; while it does, Soon runs nothing else and says false.
func Soon(complete func()) bool {
	if !completing.TryLock() {
		return false
	}
	done := make(chan struct{})
	go func() {
		defer completing.Unlock()
		complete()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(patience):
		return false
	}
}

// WaitForCompletion returns when no completion is being computed. Those write the
// files that a cell is compiled from.
func WaitForCompletion() {
	completing.Lock()
	defer completing.Unlock()
}

// Why there is no completion yet.
const (
	Starting = "The language server is still starting: try again in a few seconds."
	Missing  = "The language server is still being built; .env/log/behind.log says how far it is."
)

// StillStarting are completions of what was typed in a line up to the cursor that
// say why there is no other: what was typed, and the same with the reason as a
// comment. It returns how many units of UTF-16 they replace.
func StillStarting(line, why string) (matches []string, typed int) {
	word := []rune(line)
	start := len(word)
	for start > 0 && (word[start-1] == '_' || unicode.IsLetter(word[start-1]) || unicode.IsDigit(word[start-1])) {
		start--
	}
	for _, r := range word[start:] {
		if typed++; r > 0xffff {
			typed++
		}
	}
	name := string(word[start:])
	return []string{name, name + " /* " + why + " */"}, typed
}
