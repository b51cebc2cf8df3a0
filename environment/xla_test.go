//go:build cgo && !noxla && ((linux && (amd64 || arm64)) || (darwin && arm64))

package environment

import (
	"slices"
	"testing"
)

func TestPreferredPutsGPUsFirst(t *testing.T) {
	got := preferred([]string{"cpu_v0.83.1", "tpu", "cpu", "cuda", "cpuish"})
	want := []string{"xla:cuda,tf32=false", "xla:cpu_v0.83.1", "xla:cpu"}
	if !slices.Equal(got, want) {
		t.Errorf("preferred = %q, want %q", got, want)
	}
	if got := preferred(nil); got != nil {
		t.Errorf("preferred of nothing = %q", got)
	}
}
