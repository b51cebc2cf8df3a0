package notebook

import (
	"encoding/gob"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"

	"densityuncertainty/environment/must"
)

// kernel stands in for the notebook kernel at the other end of a cell's pipes.
type kernel struct {
	mu           sync.Mutex
	messages     []string
	acknowledged int
}

// startKernel makes this process look like a notebook cell. The connection is
// made once per process, so only one test may use it.
func startKernel(t *testing.T) *kernel {
	t.Helper()
	if gonbui.IsNotebook {
		t.Skip("runs inside a notebook")
	}
	folder := t.TempDir()
	toKernel, toCell := filepath.Join(folder, "to_kernel"), filepath.Join(folder, "to_cell")
	for _, path := range []string{toKernel, toCell} {
		must.Do(t, syscall.Mkfifo(path, 0o600))
	}
	t.Setenv(protocol.GONB_PIPE_ENV, toKernel)
	t.Setenv(protocol.GONB_PIPE_BACK_ENV, toCell)
	gonbui.IsNotebook = true
	t.Cleanup(func() { gonbui.IsNotebook = false })
	k := &kernel{}
	go k.serve(t, toKernel, toCell)
	return k
}

// serve records what the cell shows and acknowledges its waits.
func (k *kernel) serve(t *testing.T, toKernel, toCell string) {
	in, err := os.Open(toKernel)
	if err != nil {
		t.Errorf("kernel: %v", err)
		return
	}
	out, err := os.OpenFile(toCell, os.O_WRONLY, 0)
	if err != nil {
		t.Errorf("kernel: %v", err)
		return
	}
	decoder, encoder := gob.NewDecoder(in), gob.NewEncoder(out)
	for {
		var data protocol.DisplayData
		if decoder.Decode(&data) != nil {
			return // the test is over
		}
		for media, content := range data.Data {
			value, sync := content.(protocol.CommValue)
			k.mu.Lock()
			if sync {
				k.acknowledged++
			} else {
				k.messages = append(k.messages, fmt.Sprintf("%s %s", media, content))
			}
			k.mu.Unlock()
			if !sync {
				continue
			}
			if err := encoder.Encode(&protocol.CommValue{Address: protocol.GonbuiSyncAckAddress, Value: value.Value}); err != nil {
				t.Errorf("kernel: %v", err)
			}
		}
	}
}

func (k *kernel) shown() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.messages...)
}

func (k *kernel) syncs() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.acknowledged
}
