//go:build cgo && !noxla && linux && (amd64 || arm64)

package programs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/environment/must"
)

// A program that is compiled again is loaded, with the same bits; one whose file was cut, swapped with another's or
// removed with its folder is compiled, and kept again.
func TestProgramsAreKept(t *testing.T) {
	config := os.Getenv(compute.ConfigEnvVar)
	if Keep(config); kept.name == "" {
		t.Skip("compiled programs are kept of XLA on processors")
	}
	backend := must.Get(compute.NewWithConfig(config))(t)
	run := func(power int) []float32 {
		exec := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node {
			for range power {
				x = graph.Sin(graph.Mul(x, graph.AddScalar(x, 0.3)))
			}
			return x
		})
		return must.Get(exec.Call1([]float32{0.1, 0.7, -2}))(t).Value().([]float32)
	}
	files := func() []string { return must.Get(filepath.Glob(filepath.Join(folder(), "*"+suffix)))(t) }
	before := files() // the plugin's digest
	first, other := run(2), run(3)
	after := files()
	if len(after) != len(before)+2 {
		t.Fatalf("%d files after two programs, %d before", len(after), len(before))
	}
	stamp := time.Unix(1e9, 0)
	for i, damage := range []func(path string, content []byte) error{
		func(path string, content []byte) error { return os.Chtimes(path, stamp, stamp) },
		func(path string, content []byte) error { return os.WriteFile(path, content[:len(content)/2], 0o600) },
		func(path string, content []byte) error { return os.WriteFile(path, nil, 0o600) },
		func(path string, content []byte) error { return os.Rename(path, path+".elsewhere") },
	} {
		written := map[string]os.FileInfo{}
		for _, path := range after {
			written[path] = must.Get(os.Stat(path))(t)
			must.Do(t, damage(path, must.Get(os.ReadFile(path))(t)))
		}
		if again := [][]float32{run(2), run(3)}; !slices.Equal(again[0], first) || !slices.Equal(again[1], other) {
			t.Errorf("loaded programs give %v, compiled %v and %v", again, first, other)
		}
		for _, path := range after {
			info, err := os.Stat(path)
			if slices.Contains(before, path) { // was read when the plugin was opened
				continue
			}
			if err != nil || info.ModTime().Equal(stamp) || i == 0 && !os.SameFile(info, written[path]) ||
				read(folder(), strings.TrimSuffix(filepath.Base(path), suffix)) == nil {
				t.Errorf("damage %d: %s was not used, or not written again: %v, %v", i, path, info, err)
			}
		}
	}
	must.Do(t, os.RemoveAll(folder()))
	must.Do(t, os.WriteFile(folder(), nil, 0o600)) // where no folder can be
	if again := run(2); !slices.Equal(again, first) {
		t.Errorf("without a folder %v, want %v", again, first)
	}
	must.Do(t, os.Remove(folder()))
}
