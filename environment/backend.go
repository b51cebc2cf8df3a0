package environment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"

	"densityuncertainty/environment/programs"
)

// ConfigVariable is the environment variable that sets the backend, "GOMLX_BACKEND". Its values have the form
// name:options, such as "go:ops_sequential", "xla:cpu", "xla:cuda" or "xla:/path/to/plugin.so".
const ConfigVariable = compute.ConfigEnvVar

// GoSequential configures the pure Go backend for small networks: the operations of a graph run one after the other.
// They are too short to run in parallel: with [goParallel] a step of 20 density MLPs takes 15% more processor time.
const GoSequential = gobackend.BackendName + ":ops_sequential"

// goParallel configures the pure Go backend for large operations, as for images: independent operations run in
// parallel. Results have the same bits as with [GoSequential]. On two cores a training step with density layers takes
// little more than half the time.
const goParallel = gobackend.BackendName + ":parallelism=-1"

// Work is a kind of work, for which OpenFor chooses a backend.
type Work int

const (
	// SmallNetworks are perceptrons, whose operations are too short to run in parallel.
	SmallNetworks Work = iota
	// Images are convolutional networks.
	Images
	// ShortTrainings are trainings of small networks that take less time than XLA takes to compile them.
	ShortTrainings
)

// ErrBackend is wrapped by every error of [Open].
var ErrBackend = errors.New("no compute backend")

// Open is OpenFor(SmallNetworks).
func Open() (compute.Backend, string, error) { return OpenFor(SmallNetworks) }

// OpenFor opens the compute backend for a kind of work. It also returns one line for the user that says what was chosen
// and why.
//
// If GOMLX_BACKEND is set and not blank, OpenFor opens exactly this backend, or returns an error that names the value.
// Otherwise it tries the installed XLA plugins, which are fastest (for images CUDA and then CPU, for small networks
// CPU), and then the pure Go backend, as [goParallel] for images and [GoSequential] otherwise. For short trainings it
// opens the pure Go backend. It never downloads a plugin.
//
// On a GPU, convolutions and products of float32 keep 11 binary digits of their factors (TF32), as PyTorch's
// convolutions do. With the option tf32=false they keep all.
//
// Errors wrap [ErrBackend].
func OpenFor(work Work) (compute.Backend, string, error) {
	disableXLADownloads()
	if config := requested(); config != "" {
		return openRequested(config)
	}
	var skipped []string
	var plugins []string
	if work != ShortTrainings {
		plugins = installedXLA(work)
	}
	for _, config := range plugins {
		backend, err := try(config)
		if err != nil {
			skipped = append(skipped, fmt.Sprintf("%s did not start: %s", config, firstLine(err)))
			continue
		}
		return backend, line(backend, "XLA plugin found", skipped), nil
	}
	backend, err := openGo(work)
	if err != nil {
		return nil, "", fmt.Errorf("%w: the pure Go backend did not start: %w", ErrBackend, err)
	}
	return backend, line(backend, "pure Go, "+whyNotXLA(work, skipped), skipped), nil
}

// openGo opens the pure Go backend in the mode for the work.
func openGo(work Work) (compute.Backend, error) {
	if work != Images {
		return try(GoSequential)
	}
	// Like goParallel, which prints a line that a notebook would show.
	backend, err := try(gobackend.BackendName)
	if err != nil {
		return nil, err
	}
	workers, is := goWorkers(backend).(interface{ SetMaxParallelism(int) })
	if !is {
		return try(goParallel)
	}
	workers.SetMaxParallelism(-1)
	return backend, nil
}

// requested returns the backend that the user asked for, or "".
func requested() string { return strings.TrimSpace(os.Getenv(ConfigVariable)) }

// openRequested opens exactly the backend of the configuration, or fails.
func openRequested(config string) (compute.Backend, string, error) {
	backend, err := try(config)
	switch name, options, _ := strings.Cut(config, ":"); {
	case err == nil:
	case name == "xla" && !xlaCompiledIn:
		err = errors.New("this program was built without XLA; set DENSITYUNCERTAINTY_XLA=1 for the commands in ./environment, " +
			"or build with cgo and without the tag noxla")
	case name == "xla" && strings.HasPrefix(options, "cuda") && !hasGPU():
		err = errors.New("this machine has no NVIDIA GPU, or no driver for it")
	case name == "xla":
		err = fmt.Errorf("%w%s", err, howToInstall(options))
	}
	if err != nil {
		return nil, "", fmt.Errorf("%w: %s=%q does not work: %w (unset %s to let the program choose, or set %s=%s)",
			ErrBackend, ConfigVariable, config, err, ConfigVariable, ConfigVariable, GoSequential)
	}
	return backend, line(backend, "asked for by "+ConfigVariable, nil), nil
}

// howToInstall returns the command that installs the plugin which the options of
// an XLA backend begin with, or "" if it is there, or not one that can be installed.
func howToInstall(options string) string {
	plugin, _, _ := strings.Cut(options, ",")
	command, known := map[string]string{
		"cuda": "go run ./environment/cmd/xlaplugin cuda13 (cuda12 for GPUs before Turing)",
		"cpu":  "./environment/setup --xla",
	}[plugin]
	there := slices.ContainsFunc(installedXLA(Images), func(config string) bool { return strings.HasPrefix(config, "xla:"+plugin) })
	if !known || there {
		return ""
	}
	return "; to install it: " + command
}

// fullPrecision is the option of an XLA backend with which matrix products keep all
// digits of float32.
const fullPrecision = "tf32=false"

// tf32Variable tells NVIDIA's libraries to leave TF32 off if it is "0". The option
// alone reaches matrix products and not convolutions, whose precision go-xla
// leaves to the library.
const tf32Variable = "NVIDIA_TF32_OVERRIDE"

// channelsLast is the flag with which XLA convolves float32 images as they lie in memory
// on GPUs before Hopper too. Without it, it transposes every activation there.
const channelsLast = "--xla_gpu_force_conv_nhwc"

// fastMaxima is the flag with which XLA's maxima on a processor may forget NaN. To keep it costs no measurable time.
const fastMaxima = "--xla_cpu_enable_fast_min_max"

// prepareXLA sets what XLA and NVIDIA's libraries read from the environment when they are
// loaded, if the user has not: channelsLast for GPUs, fastMaxima for processors, and tf32Variable for a configuration
// that asks for full precision.
func prepareXLA(config string) error {
	flag, value := channelsLast, "=true"
	if plugin, _, _ := strings.Cut(config, ","); strings.HasPrefix(plugin, "xla:") && strings.Contains(filepath.Base(plugin), "cpu") {
		flag, value = fastMaxima, "=false"
	} else if !onCUDA(config) {
		flag = ""
	}
	if flags := os.Getenv("XLA_FLAGS"); !strings.Contains(flags, flag) {
		if err := os.Setenv("XLA_FLAGS", flags+" "+flag+value); err != nil {
			return err
		}
	}
	if _, given := os.LookupEnv(tf32Variable); given || !isFull(config) {
		return nil
	}
	return os.Setenv(tf32Variable, "0")
}

// onCUDA says whether a configuration names a CUDA plugin.
func onCUDA(config string) bool {
	plugin, _, _ := strings.Cut(config, ",")
	return strings.HasPrefix(plugin, "xla:") && strings.Contains(strings.ToLower(plugin), "cuda")
}

// isFull says whether a configuration asks for full precision.
func isFull(config string) bool {
	_, options, _ := strings.Cut(config, ":")
	return slices.Contains(strings.Split(options, ","), fullPrecision)
}

// try opens a backend, turning GoMLX's panics into errors.
func try(config string) (backend compute.Backend, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			cause, is := reason.(error)
			if !is {
				cause = fmt.Errorf("%v", reason)
			}
			backend, err = nil, fmt.Errorf("opening backend %q: %w", config, cause)
		}
	}()
	if err := prepareXLA(config); err != nil {
		return nil, err
	}
	programs.Keep(config)
	return compute.NewWithConfig(config)
}

// line joins the facts about the chosen backend into one line.
func line(backend compute.Backend, why string, notes []string) string {
	info := Describe(backend)
	if backend.String() == gobackend.BackendName && !vectorised() {
		notes = append(notes, "build with GOEXPERIMENT=simd for faster matrix products")
	}
	if onCUDA(info.Backend) && !isFull(info.Backend) {
		notes = append(notes, "products of float32 in TF32 ("+fullPrecision+" keeps all digits)")
	}
	text := fmt.Sprintf("backend %s (%s), device: %s", info.Backend, why, info.Device)
	for _, note := range notes {
		text += "; " + note
	}
	return text
}

// whyNotXLA says in a few words why the Go backend was taken.
func whyNotXLA(work Work, skipped []string) string {
	switch {
	case !xlaCompiledIn:
		return "built without XLA"
	case work == ShortTrainings:
		return "as compiling for XLA would take longer than training"
	case len(skipped) > 0:
		return "no XLA plugin works"
	default:
		return "no XLA plugin found"
	}
}

// firstLine shortens an error that carries a stack trace or a plugin's log.
func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
