package environment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"densityuncertainty/environment/must"
)

// Where an XLA plugin is installed Open chooses it; the tests that pin the Go
// backend ask for it, so that they hold on every machine.

func TestOpenRunsAGraph(t *testing.T) {
	t.Setenv(ConfigVariable, "")
	backend, line := must.Get2(Open())(t)
	square := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node { return graph.Mul(x, x) })
	if got := square.MustCall1(float32(3)).Value(); got != float32(9) {
		t.Errorf("3*3 = %v on %s", got, line)
	}
	info := Describe(backend)
	for _, part := range []string{info.Backend, info.Device} {
		if part == "" || !strings.Contains(line, part) {
			t.Errorf("line %q lacks %q", line, part)
		}
	}
	if strings.Contains(line, "\n") {
		t.Errorf("more than one line: %q", line)
	}
}

// Where no plugin is installed, and for short trainings everywhere, the mode of the Go backend is that for the work.
func TestOpenForWork(t *testing.T) {
	t.Setenv(ConfigVariable, "")
	for work, want := range map[Work]string{SmallNetworks: GoSequential, Images: goParallel, ShortTrainings: GoSequential} {
		t.Run(fmt.Sprint("work ", work), func(t *testing.T) {
			backend, line := must.Get2(OpenFor(work))(t)
			if backend.String() != "go" && work != ShortTrainings {
				t.Skip("a plugin is installed")
			}
			if got := Describe(backend).Backend; got != want || !strings.Contains(line, want) {
				t.Errorf("described as %q in %q, want %q", got, line, want)
			}
		})
	}
}

func TestOpenHonoursTheVariable(t *testing.T) {
	for _, config := range []string{"go", "go:", " go:ops_sequential ", "go:ops_parallel", "go:dependency_order,parallelism=3", "go:parallelism=-1"} {
		t.Run(config, func(t *testing.T) {
			t.Setenv(ConfigVariable, config)
			backend, _, err := Open()
			if err != nil {
				t.Fatalf("%q: %v", config, err)
			}
			if got := Describe(backend).Backend; got != strings.TrimSpace(config) {
				t.Errorf("%q: described as %q", config, got)
			}
		})
	}
}

// Large products that run beside each other, in several executions at once, end: in
// no mode of the Go backend do they wait for each other's workers.
func TestParallelProductsEnd(t *testing.T) {
	for _, config := range []string{"go", goParallel, GoSequential} {
		backend := must.Get(try(config))(t)
		ended := make(chan error)
		for range 4 {
			go func() {
				exec, err := graph.NewExec(backend, func(x *graph.Node) *graph.Node {
					sum := x
					for i := range 6 {
						sum = graph.Add(sum, graph.MatMul(graph.MulScalar(x, i+1), x))
					}
					return sum
				})
				for range 5 {
					if err == nil {
						_, err = exec.Call(tensors.FromShape(shapes.Make(dtypes.Float32, 256, 256)))
					}
				}
				ended <- err
			}()
		}
		for range 4 {
			select {
			case err := <-ended:
				must.Do(t, err)
			case <-time.After(time.Minute):
				t.Fatalf("%s: the executions wait for each other", config)
			}
		}
	}
}

func TestOpenFailsLoudly(t *testing.T) {
	for _, config := range []string{"bogus", "go:nonsense", "go:parallelism=many", "xla:no_such_plugin", "xla:/no/such/plugin.so", ":", "Go"} {
		t.Setenv(ConfigVariable, config)
		backend, line, err := Open()
		if !errors.Is(err, ErrBackend) || backend != nil || line != "" {
			t.Errorf("%q: backend %v, line %q, error %v; want an ErrBackend alone", config, backend, line, err)
			continue
		}
		for _, part := range []string{fmt.Sprintf("%q", config), "unset " + ConfigVariable} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: error lacks %q: %v", config, part, err)
			}
		}
	}
}

// A plugin that is not there is not the end: the error says how to come by it.
func TestMissingXLA(t *testing.T) {
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", t.TempDir())
	for _, c := range []struct{ config, command string }{
		{"xla:cuda", "go run ./environment/cmd/xlaplugin cuda13"},
		{"xla:cuda,tf32=false", "go run ./environment/cmd/xlaplugin cuda13"},
		{"xla:cpu", "./environment/setup --xla"},
	} {
		t.Run(c.config, func(t *testing.T) {
			t.Setenv(ConfigVariable, c.config)
			_, _, err := Open()
			switch {
			case !xlaCompiledIn:
				c.command = "DENSITYUNCERTAINTY_XLA=1"
			case onCUDA(c.config) && !hasGPU():
				c.command = "no NVIDIA GPU"
			}
			must.Err(t, err, ErrBackend, c.command)
		})
	}
}

// Without the variable a GPU's convolutions are rounded, whatever the option says, and without the flags images are
// transposed before Hopper, and a processor's maxima forget NaN. What the user has set stays.
func TestPrepareXLA(t *testing.T) {
	for _, c := range []struct{ name, config, given, want, flags, wantFlags string }{
		{"asked for", "xla:cuda,tf32=false", "", "0", "", " --xla_gpu_force_conv_nhwc=true"},
		{"among others", "xla:/a/plugin.so,preallocate=false,tf32=false", "", "0", "", ""},
		{"not asked for", "xla:cuda", "", "", "--xla_a=b", "--xla_a=b --xla_gpu_force_conv_nhwc=true"},
		{"the opposite", "xla:/a/cuda.so,tf32=true", "", "", "", " --xla_gpu_force_conv_nhwc=true"},
		{"a processor", "xla:cpu", "", "", "--xla_a=b", "--xla_a=b --xla_cpu_enable_fast_min_max=false"},
		{"the user's own", "xla:cuda,tf32=false", "1", "1", "--xla_gpu_force_conv_nhwc=false", "--xla_gpu_force_conv_nhwc=false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("XLA_FLAGS", c.flags)
			t.Setenv(tf32Variable, c.given)
			if c.given == "" {
				must.Do(t, os.Unsetenv(tf32Variable))
			}
			must.Do(t, prepareXLA(c.config))
			if got, flags := os.Getenv(tf32Variable), os.Getenv("XLA_FLAGS"); got != c.want || flags != c.wantFlags {
				t.Errorf("%s=%q, XLA_FLAGS=%q, want %q and %q", tf32Variable, got, flags, c.want, c.wantFlags)
			}
		})
	}
}

func TestTryTurnsPanicsIntoErrors(t *testing.T) {
	compute.Register("panics", func(string) (compute.Backend, error) { panic("plugin crashed") })
	must.GetErr(try("panics"))(t, "plugin crashed")
	compute.Register("fails", func(string) (compute.Backend, error) { panic(fs.ErrNotExist) })
	must.GetErr(try("fails"))(t, fs.ErrNotExist)
}

func TestLineReportsSkippedPlugins(t *testing.T) {
	t.Setenv(ConfigVariable, "")
	backend := must.Get(try(GoSequential))(t)
	text := line(backend, "pure Go", []string{"xla:cuda did not start: driver too old"})
	if !strings.HasPrefix(text, "backend go:ops_sequential (pure Go), device: ") || !strings.Contains(text, "; xla:cuda did not start: driver too old") {
		t.Errorf("line %q", text)
	}
	if got := firstLine(errors.New("cause\nstack")); got != "cause" {
		t.Errorf("firstLine = %q", got)
	}
}
