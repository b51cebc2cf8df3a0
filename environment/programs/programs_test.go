package programs

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"densityuncertainty/environment/must"
)

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "programs")
	if err == nil {
		err = os.Setenv(folderVariable, folder)
	}
	status := 1
	if err == nil {
		status = m.Run()
	}
	_ = os.RemoveAll(folder)
	os.Exit(status)
}

// Every part of the key makes another one, and no part runs into the next.
func TestKey(t *testing.T) {
	of := func(program, options, plugin, processor string) string {
		return key([]byte(program), []byte(options), plugin, processor)
	}
	all := []string{of("a", "b", "c", "d"), of("ab", "", "c", "d"), of("a", "b", "x", "d"), of("a", "b", "c", "x"), of("a", "bc", "", "d")}
	t.Setenv("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2")
	all = append(all, of("a", "b", "c", "d"))
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != 6 {
		t.Errorf("keys are equal: %v", all)
	}
}

// Those that were used last stay, and many processes at once read the whole content or nothing.
func TestLimit(t *testing.T) {
	defer func(old int64) { limit = old }(limit)
	limit = 10_000
	folder, content := t.TempDir(), bytes.Repeat([]byte("x"), 3000)
	for i, name := range []string{"a", "b", "c"} {
		write(folder, name, content)
		at := time.Unix(int64(1e9+i), 0)
		must.Do(t, os.Chtimes(filepath.Join(folder, name+suffix), at, at))
	}
	if read(folder, "a") == nil { // and b is now the oldest
		t.Error("a is gone")
	}
	write(folder, "d", content)
	if read(folder, "a") == nil || read(folder, "b") != nil || read(folder, "d") == nil {
		t.Error("not the one that was used longest ago went")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				write(folder, "e", content)
				if got := read(folder, "e"); got != nil && !bytes.Equal(got, content) {
					t.Error("half a file was read")
				}
			}
		})
	}
	wg.Wait()
}
