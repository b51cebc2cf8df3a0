package kernel

import (
	"fmt"
	"os"
	"time"
)

// The kernel may note an interruption a little after the program that it runs has ended by it: Ctrl-C in a terminal reaches
// both.
const (
	noteWithin = 500 * time.Millisecond
	noteEvery  = 10 * time.Millisecond
)

// StartFailed ends the kernel, as something failed that it needs for its start. It prints no trace, and nothing at all if
// the kernel was interrupted.
func StartFailed(interrupted func() bool, what string, err error) {
	message, code := startFailed(interrupted, what, err)
	fmt.Fprint(os.Stderr, message)
	os.Exit(code)
}

// startFailed is what StartFailed prints, and the exit status, which is 130 after an interruption, as shells have it.
func startFailed(interrupted func() bool, what string, err error) (message string, code int) {
	for waited := time.Duration(0); waited < noteWithin; waited += noteEvery {
		if interrupted() {
			return "", 130
		}
		time.Sleep(noteEvery)
	}
	return fmt.Sprintf("The notebook kernel failed to %s: %v\n", what, err), 1
}
