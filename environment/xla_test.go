//go:build cgo && !noxla && ((linux && (amd64 || arm64)) || (darwin && arm64))

package environment

import (
	"slices"
	"testing"
)

// Images are computed on a GPU if there is one; small networks are not.
func TestPreferred(t *testing.T) {
	plugins := []string{"cpu_v0.83.1", "tpu", "cpu", "cuda", "cpuish"}
	for work, want := range map[Work][]string{
		Images:        {"xla:cuda", "xla:cpu_v0.83.1", "xla:cpu"},
		SmallNetworks: {"xla:cpu_v0.83.1", "xla:cpu"},
	} {
		if got := preferred(work, plugins); !slices.Equal(got, want) {
			t.Errorf("for work %d: %q, want %q", work, got, want)
		}
	}
	if got := preferred(Images, nil); got != nil {
		t.Errorf("preferred of nothing = %q", got)
	}
}
