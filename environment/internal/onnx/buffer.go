//go:build onnx && cgo && linux && amd64

package onnx

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

// A buffer is a tensor in C memory, which it owns.
type buffer struct {
	backend *Backend
	memory  *memory
	cleanup runtime.Cleanup
}

// memory is what is left of a buffer that Go has collected.
type memory struct {
	mu      sync.Locker // see program
	content compute.Buffer
}

var _ compute.Buffer = (*buffer)(nil)

// Go's collector does not see how much C memory the buffers hold, so it would
// let buffers that nobody finalizes fill the machine. It runs after every
// collectEvery bytes of new ones.
const collectEvery = 64 << 20

// uncollected is the number of bytes since it ran last.
var uncollected atomic.Int64

// collect runs Go's collector and gives the cleanups that it finds, which run in
// the background, the time to free their memory.
func collect() {
	cleaned := make(chan struct{})
	runtime.AddCleanup(&struct{ _ *byte }{}, func(c chan struct{}) { close(c) }, cleaned)
	runtime.GC()
	select {
	case <-cleaned:
	case <-time.After(time.Second):
	}
}

// newBuffer takes over a buffer of the wrapped backend: an output of the given
// program, or, with nil, one made from Go.
func newBuffer(backend *Backend, content compute.Buffer, shape shapes.Shape, from *program) *buffer {
	if uncollected.Add(shape.ByteSize()) > collectEvery {
		uncollected.Store(0)
		collect()
	}
	m := &memory{mu: &sync.Mutex{}, content: content}
	if from != nil {
		// Memory of outputs goes back to its program, to be used again.
		m.mu = &from.mu
	}
	b := &buffer{backend: backend, memory: m}
	b.cleanup = runtime.AddCleanup(b, func(m *memory) {
		// Nobody is left to hear of an error; the memory is lost then.
		_ = m.free()
	}, m)
	return b
}

// free gives the memory back. Doing it twice does no harm.
func (m *memory) free() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.content.Finalize()
}

// Backend implements compute.Buffer.
func (b *buffer) Backend() compute.Backend { return b.backend }

// Finalize implements compute.Buffer.
func (b *buffer) Finalize() error {
	b.cleanup.Stop()
	return b.memory.free()
}

// Shape implements compute.Buffer.
func (b *buffer) Shape() (shapes.Shape, error) { return b.memory.content.Shape() }

// DeviceNum implements compute.Buffer.
func (b *buffer) DeviceNum() (compute.DeviceNum, error) { return b.memory.content.DeviceNum() }

// ToFlatData implements compute.Buffer.
func (b *buffer) ToFlatData(flat any) error {
	defer runtime.KeepAlive(b)
	return b.memory.content.ToFlatData(flat)
}

// Data implements compute.Buffer. The values are C memory, not to be used after
// the buffer has been finalized or dropped.
func (b *buffer) Data() (any, error) {
	defer runtime.KeepAlive(b)
	return b.memory.content.Data()
}

// CopyToDevice implements compute.Buffer.
func (b *buffer) CopyToDevice(device compute.DeviceNum) (compute.Buffer, error) {
	defer runtime.KeepAlive(b)
	content, err := b.memory.content.CopyToDevice(device)
	if err != nil {
		return nil, err
	}
	shape, err := content.Shape()
	if err != nil {
		return nil, err
	}
	return newBuffer(b.backend, content, shape, nil), nil
}
