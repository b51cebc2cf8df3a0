// Package backendtest opens the compute backend that tests run on, one for a
// whole test program.
package backendtest

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"

	"densityuncertainty/environment"
)

var open = sync.OnceValues(func() (compute.Backend, error) {
	if strings.TrimSpace(os.Getenv(environment.ConfigVariable)) == "" {
		return compute.NewWithConfig(environment.GoSequential)
	}
	backend, _, err := environment.Open()
	return backend, err
})

// Open returns the backend that GOMLX_BACKEND names, as "xla:cpu", or else the
// pure Go backend: unlike programs, tests do not take what happens to be
// installed. The test ends where it does not start.
func Open(t testing.TB) compute.Backend {
	t.Helper()
	backend, err := open()
	if err != nil {
		t.Fatal(err)
	}
	return backend
}
