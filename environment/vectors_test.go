//go:build goexperiment.simd && amd64

package environment_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"simd/archsimd"
	"strings"
	"testing"
	"unsafe"

	"densityuncertainty/environment/must"
)

// What the commands of this folder build loads the end of an array without reading beyond it, where Go's own code may
// (tools/vectors.py), and the numbers are those of the array and zeros, also at the end of a page of memory.
func TestVectorLoads(t *testing.T) {
	if os.Getenv("DENSITYUNCERTAINTY_CHECKOUT") != "" {
		folder := must.Get(exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "simd/archsimd").Output())(t)
		source := string(must.Get(os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "slice_gen_amd64.go")))(t))
		if loads, guards := strings.Count(source, "(s)).Masked("), strings.Count(source, "if atPageEnd("); guards != loads {
			t.Errorf("%d of %d loads are guarded", guards, loads)
		}
	}
	array := make([]float32, 3*1024)
	for i := range array {
		array[i] = float32(i + 1)
	}
	page := 1024 - int(uintptr(unsafe.Pointer(&array[0]))%4096)/4 // the first number of the second page
	for end := page - 20; end <= page+20; end++ {
		for n := 1; n < 16; n++ {
			part := array[end-n : end]
			var got [16]float32
			if archsimd.X86.AVX2() {
				v, _ := archsimd.LoadFloat32x8Part(part)
				v.Store(got[:])
				check(t, part, got[:8])
			}
			if archsimd.X86.AVX512() {
				v, _ := archsimd.LoadFloat32x16Part(part)
				v.Store(got[:])
				check(t, part, got[:])
			}
		}
	}
}

// check fails if a vector is not the part and zeros.
func check(t *testing.T, part, vector []float32) {
	t.Helper()
	for i, v := range vector {
		if want := append(part[:len(part):len(part)], make([]float32, 16)...)[i]; v != want {
			t.Fatalf("number %d of %v is loaded as %g", i, part, v)
		}
	}
}
