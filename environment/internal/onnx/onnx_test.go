//go:build onnx && cgo && linux && amd64

package onnx

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	onnxruntime "github.com/gomlx/compute-onnx"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend" // the pure Go backend
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// open returns the backend, and skips the test where there is no library.
func open(t *testing.T) compute.Backend {
	t.Helper()
	if _, err := Library(); err != nil {
		t.Skipf("not tested: %v", err)
	}
	backend, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	return backend
}

func pureGo(t *testing.T) compute.Backend {
	t.Helper()
	backend, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		t.Fatal(err)
	}
	return backend
}

// Of the backend beneath, the tests with hazards run in a process of their own,
// where freed memory is overwritten at once: a use of it cannot go unnoticed.
const hazardVariable = "DENSITYUNCERTAINTY_ONNX_HAZARD"

func TestMemoryStaysAlive(t *testing.T) {
	open(t)
	for _, backend := range []string{"wrapped", "bare"} {
		t.Run(backend, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestHazards$", "-test.v")
			child.Env = append(os.Environ(), "GOGC=10", "GODEBUG=clobberfree=1", hazardVariable+"="+backend)
			output, err := child.CombinedOutput()
			var exit *exec.ExitError
			switch {
			case backend == "wrapped" && err != nil:
				t.Errorf("%v:\n%s", err, output)
			case backend == "bare" && err == nil:
				// Otherwise the checks of the wrapped backend would prove nothing.
				t.Errorf("the backend beneath passes every check; either it is safe now or the checks find nothing:\n%s", output)
			case backend == "bare" && !errors.As(err, &exit):
				t.Error(err)
			}
		})
	}
}

// TestHazards is what TestMemoryStaysAlive runs in a process of its own.
func TestHazards(t *testing.T) {
	var backend compute.Backend
	switch os.Getenv(hazardVariable) {
	case "wrapped":
		backend = open(t)
	case "bare":
		backend = open(t).(*Backend).Backend
	default:
		t.Skip("runs as a part of TestMemoryStaysAlive")
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	t.Run("buffers", func(t *testing.T) {
		shape := shapes.Make(dtypes.Float32, 3, 5)
		for i := range 100 {
			buffer, err := backend.BufferFromFlatData(0, filled(shape.Size(), float32(i)), shape)
			if err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			got := make([]float32, shape.Size())
			if err := buffer.ToFlatData(got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, filled(shape.Size(), float32(i))) {
				t.Fatalf("values %d became %v", i, got)
			}
		}
	})
	t.Run("constants", func(t *testing.T) {
		for i := range 20 {
			sum := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node {
				// The constant's tensor lives on the backend, and nowhere after this line.
				c := graph.ConstTensor(x.Graph(), onBackend(t, backend, filled(1000, float32(i))))
				runtime.GC()
				runtime.GC()
				return graph.ReduceAllSum(graph.Mul(c, x))
			})
			if got := sum.MustCall1(tensors.FromScalar(float32(1))).Value(); got != float32(1000*i) {
				t.Fatalf("the sum of 1000 times %d is %v", i, got)
			}
			sum.Finalize()
		}
	})
	t.Run("training", func(t *testing.T) {
		pure := pureGo(t)
		const steps = 5000
		got, want := train(t, backend, steps), train(t, pure, steps)
		for i := range want {
			if diff := math.Abs(float64(got[i] - want[i])); !(diff <= 1e-5) {
				t.Fatalf("after %d steps entry %d is %g, on the pure Go backend %g", steps, i, got[i], want[i])
			}
		}
	})
}

func filled(n int, value float32) []float32 { return slices.Repeat([]float32{value}, n) }

func onBackend(t *testing.T, backend compute.Backend, values []float32) *tensors.Tensor {
	t.Helper()
	tensor := tensors.FromFlatDataAndDimensions(values, len(values))
	if err := tensor.ToDevice(backend, 0); err != nil {
		t.Fatal(err)
	}
	return tensor
}

// train trains a small network by momentum and returns its losses and final
// parameters. Everything comes from Go in the ways that a program may choose:
// parameters as values of variables, batches and rates as plain Go values.
func train(t *testing.T, backend compute.Backend, steps int) []float32 {
	t.Helper()
	const rows, features, units = 16, 5, 7
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(rows, columns int, scale float64) [][]float32 {
		m := make([][]float32, rows)
		for i := range m {
			for range columns {
				m[i] = append(m[i], float32(scale*rng.NormFloat64()))
			}
		}
		return m
	}
	store := model.NewStore()
	for _, v := range []struct {
		path  string
		value [][]float32
	}{{"/hidden", random(features, units, 0.5)}, {"/output", random(units, 1, 0.5)}} {
		store.VariableWithValue(v.path, v.value)
		store.VariableWithValue(v.path+"_momentum", make2(len(v.value), len(v.value[0]))).SetTrainable(false)
	}
	step := model.MustNewExec(backend, store, func(s *model.Scope, x, y, rate *graph.Node) *graph.Node {
		g := x.Graph()
		value := func(path string) *graph.Node { return store.GetVariable(path).NodeValue(g) }
		paths := []string{"/hidden", "/output"}
		hidden, output := value(paths[0]), value(paths[1])
		mean := graph.MatMul(graph.Tanh(graph.MatMul(x, hidden)), output)
		loss := graph.ReduceAllMean(graph.Square(graph.Sub(mean, y)))
		for i, gradient := range graph.Gradient(loss, hidden, output) {
			momentum := graph.Add(graph.MulScalar(value(paths[i]+"_momentum"), 0.9), gradient)
			store.GetVariable(paths[i] + "_momentum").SetNodeValue(momentum)
			store.GetVariable(paths[i]).SetNodeValue(graph.Sub(value(paths[i]), graph.Mul(momentum, rate)))
		}
		return loss
	})
	var trace []float32
	for i := range steps {
		loss := step.MustCall1(random(rows, features, 1), random(rows, 1, 1), float32(0.01/(1+float64(i)/100)))
		trace = append(trace, loss.Value().(float32))
	}
	for _, path := range []string{"/hidden", "/output"} {
		value, err := store.GetVariable(path).Value()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range value.Value().([][]float32) {
			trace = append(trace, row...)
		}
	}
	return trace
}

func make2(rows, columns int) [][]float32 {
	m := make([][]float32, rows)
	for i := range m {
		m[i] = make([]float32, columns)
	}
	return m
}

// Nothing here is finalized, and Go sees next to nothing of the memory in use.
func TestMemoryIsGivenBack(t *testing.T) {
	backend := open(t)
	const size, rounds = 1 << 20, 1000 // 4 MiB a round, 4 GiB in all
	fill := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node { return graph.BroadcastToDims(x, size) })
	for i := range rounds {
		tensors.MustConstFlatData(fill.MustCall1(float32(i)), func(flat []float32) {
			if flat[0] != float32(i) || flat[size-1] != float32(i) {
				t.Fatalf("%d was filled in as %g ... %g", i, flat[0], flat[size-1])
			}
		})
		if used := residentPages(t) * os.Getpagesize(); used > 1<<30 {
			t.Fatalf("%d MB are in use after %d rounds; what nobody holds is not given back", used>>20, i)
		}
	}
}

// residentPages is the number of pages of memory that the process uses.
func residentPages(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var total, resident int
	if _, err := fmt.Sscan(string(text), &total, &resident); err != nil {
		t.Fatal(err)
	}
	return resident
}

func TestOutputsThatAreNotComputed(t *testing.T) {
	all := graph.MustNewExec(open(t), func(x *graph.Node) []*graph.Node {
		y := graph.AddScalar(x, 1)
		return []*graph.Node{x, x, graph.StopGradient(x), graph.Const(x.Graph(), float32(7)), y, y}
	})
	for i := range 5 {
		x := float32(i)
		for k, want := range []float32{x, x, x, 7, x + 1, x + 1} {
			if got := all.MustCall(x)[k].Value(); got != want {
				t.Errorf("output %d for %g is %v, want %g", k, x, got, want)
			}
		}
	}
}

func TestExecutionsTakeTurns(t *testing.T) {
	square := graph.MustNewExec(open(t), func(x *graph.Node) *graph.Node { return graph.Mul(x, x) })
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range 100 {
				x := float32(100*worker + i)
				if got := square.MustCall1(filled(50, x)).Value().([]float32); !slices.Equal(got, filled(50, x*x)) {
					t.Errorf("%g squared is %v", x, got)
					return
				}
			}
		})
	}
	wait.Wait()
}

func TestBuffers(t *testing.T) {
	backend := open(t)
	shape := shapes.Make(dtypes.Float64, 2, 2)
	for _, wrong := range []any{[]float32{1, 2, 3, 4}, []float64{1, 2, 3}, 1.0, nil} {
		if _, err := backend.BufferFromFlatData(0, wrong, shape); err == nil {
			t.Errorf("%T %v was taken for a buffer of shape %s", wrong, wrong, shape)
		}
	}
	if _, err := backend.BufferFromFlatData(0, nil, shapes.Make(dtypes.Float64, 0)); err != nil {
		t.Errorf("a buffer of nothing: %v", err)
	}
	buffer, err := backend.BufferFromFlatData(0, []float64{1, 2, 3, 4}, shape)
	if err != nil {
		t.Fatal(err)
	}
	again, err := buffer.CopyToDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := buffer.Finalize(); err != nil {
			t.Fatal(err)
		}
	}
	if err := buffer.ToFlatData(make([]float64, 4)); err == nil {
		t.Error("a finalized buffer was read")
	}
	if got, err := again.Data(); err != nil || !slices.Equal(got.([]float64), []float64{1, 2, 3, 4}) {
		t.Errorf("the copy is %v, error %v", got, err)
	}
	runtime.KeepAlive(again)
	if again.Backend() != backend {
		t.Error("a buffer names another backend than its own")
	}
}

func TestRefusedGraphsLeaveNothingBehind(t *testing.T) {
	backend := open(t)
	t.Chdir(t.TempDir())
	if _, err := graph.CallOnce(backend, graph.Erf, 0.5); err == nil || !strings.Contains(err.Error(), "does not take the graph") {
		t.Errorf("error %v", err)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("left behind: %v, error %v", files, err)
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	t.Setenv(LibraryVariable, filepath.Join(t.TempDir(), "none.so"))
	for options, want := range map[string]string{"": "setup --onnx", "cpu": LibraryVariable, "cuda": "onnx:cpu", "log=1": "onnx:cpu"} {
		if backend, err := New(options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("options %q: backend %v, error %v; want one with %q", options, backend, err, want)
		}
	}
	t.Setenv(LibraryVariable, "")
	t.Setenv("HOME", t.TempDir())
	if path, err := Library(); err == nil {
		t.Errorf("found %s in an empty folder", path)
	}
}

// Whoever asks for either name must get the backend of this package.
func TestNamesLeadHere(t *testing.T) {
	open(t)
	for _, name := range []string{Name, onnxruntime.BackendName} {
		backend, err := compute.NewWithConfig(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, ours := backend.(*Backend); !ours {
			t.Errorf("%q opens a %T", name, backend)
		}
	}
}
