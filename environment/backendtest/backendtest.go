// Package backendtest opens the compute backend that tests run on, one for a whole test program.
package backendtest

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"

	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
)

var open = sync.OnceValues(func() (compute.Backend, error) {
	config := strings.TrimSpace(os.Getenv(environment.ConfigVariable))
	if config == "" {
		return compute.NewWithConfig(environment.GoSequential)
	}
	if strings.Contains(config, "cuda") && !strings.Contains(config, "tf32=") {
		if err := os.Setenv(environment.ConfigVariable, config+",tf32=false"); err != nil {
			return nil, err
		}
	}
	backend, _, err := environment.Open()
	return backend, err
})

// Open returns the backend that GOMLX_BACKEND names, as "xla:cpu", or else the
// pure Go backend: unlike programs, tests do not take what happens to be
// installed. A GPU computes in full precision, unless the variable says tf32=true.
// The test ends where it does not start.
func Open(t testing.TB) compute.Backend {
	t.Helper()
	return must.Get(open())(t)
}
