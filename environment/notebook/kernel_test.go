package notebook

import (
	"encoding/gob"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"

	"densityuncertainty/environment/must"
)

// kernel stands in for the notebook kernel at the other end of a cell's pipes.
type kernel struct {
	mu           sync.Mutex
	messages     []string
	acknowledged int
	out          *gob.Encoder            // to the cell
	said         chan protocol.CommValue // by the cell to its page
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
	k := &kernel{said: make(chan protocol.CommValue, 100)}
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
	decoder := gob.NewDecoder(in)
	k.mu.Lock()
	k.out = gob.NewEncoder(out)
	k.mu.Unlock()
	for {
		var data protocol.DisplayData
		if decoder.Decode(&data) != nil {
			return // the test is over
		}
		for media, content := range data.Data {
			switch value := content.(type) {
			case protocol.CommSubscription:
			case protocol.CommValue:
				if value.Address != protocol.GonbuiSyncAddress {
					k.said <- value
					continue
				}
				k.mu.Lock()
				k.acknowledged++
				k.mu.Unlock()
				k.send(t, protocol.GonbuiSyncAckAddress, value.Value)
			default:
				k.mu.Lock()
				k.messages = append(k.messages, fmt.Sprintf("%s %s", media, content))
				k.mu.Unlock()
			}
		}
	}
}

// send sends the cell a value.
func (k *kernel) send(t *testing.T, address string, value any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.out.Encode(&protocol.CommValue{Address: address, Value: value}); err != nil {
		t.Errorf("kernel: %v", err)
	}
}

// ask is what the cell answers when the page of an explorer says something.
func (k *kernel) ask(t *testing.T, page, text string) any {
	k.send(t, page+"/moves", text)
	select {
	case answer := <-k.said:
		if answer.Address != page+"/drawn" {
			t.Errorf("%q is said at %s", answer.Value, answer.Address)
		}
		return answer.Value
	case <-time.After(time.Minute):
		t.Fatalf("no answer to %q", text)
		return nil
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
