//go:build onnx && cgo && linux && amd64

package onnx

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/gomlx/compute"
	onnxruntime "github.com/gomlx/compute-onnx"
)

// A builder builds a program of one function.
type builder struct {
	*onnxruntime.Builder
	backend *Backend
	main    *function
}

var _ compute.Builder = (*builder)(nil)

// Main implements compute.Builder.
func (b *builder) Main() compute.Function { return b.main }

// refusedModel is where the wrapped backend leaves a model that the library
// does not take, in whatever folder the process runs in.
const refusedModel = "failed_model.onnx"

// Compile implements compute.Builder.
func (b *builder) Compile() (compute.Executable, error) {
	_, before := os.Lstat(refusedModel)
	inner, err := b.Builder.Compile()
	if err != nil {
		if errors.Is(before, os.ErrNotExist) {
			// It says no more than the error does, which goes first.
			_ = os.Remove(refusedModel)
		}
		return nil, fmt.Errorf("ONNX Runtime does not take the graph (the pure Go backend and XLA know more operations): %w", err)
	}
	p := &program{inner: inner.(*onnxruntime.Executable)}
	e := &executable{Executable: p.inner, program: p, backend: b.backend}
	runtime.AddCleanup(e, (*program).free, p)
	return e, nil
}

// A program is a compiled graph, shared by its executable and the buffers that
// it has put out.
type program struct {
	// mu guards the wrapped executable, which uses the same scratch memory for
	// every execution, and takes back the memory of its outputs at any time.
	mu    sync.Mutex
	inner *onnxruntime.Executable
}

// free gives the program's memory back. Doing it twice does no harm.
func (p *program) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inner.Finalize()
}

// An executable is a program that GoMLX holds.
type executable struct {
	*onnxruntime.Executable
	program *program
	backend *Backend
}

var _ compute.Executable = (*executable)(nil)

// Finalize implements compute.Executable.
func (e *executable) Finalize() { e.program.free() }

// Execute implements compute.Executable.
func (e *executable) Execute(inputs []compute.Buffer, donate []bool, device compute.DeviceNum) ([]compute.Buffer, error) {
	contents := make([]compute.Buffer, len(inputs))
	for i, in := range inputs {
		b, ours := in.(*buffer)
		if !ours {
			return nil, fmt.Errorf("input %d is a %T, not a buffer of this backend", i, in)
		}
		contents[i] = b.memory.content
	}
	e.program.mu.Lock()
	outputs, err := e.program.inner.Execute(contents, donate, device)
	e.program.mu.Unlock()
	runtime.KeepAlive(inputs)
	runtime.KeepAlive(e)
	if err != nil {
		return nil, err
	}
	shapes := e.Outputs()
	for i, content := range outputs {
		outputs[i] = newBuffer(e.backend, content, shapes[i], e.program)
	}
	return outputs, nil
}
