package environment

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// processor returns the model of the CPU and the number of cores that this
// process may use, as "AMD EPYC 7B13, 2 cores". Where the model is unknown the
// architecture stands in its place.
func processor() string {
	model := "CPU " + runtime.GOARCH
	// Only Linux has this file; elsewhere the architecture must do.
	if file, err := os.Open("/proc/cpuinfo"); err == nil {
		if name := field(file, "model name"); name != "" {
			model = name
		}
		// A file only read from loses nothing when closing it fails.
		_ = file.Close()
	}
	cores := runtime.GOMAXPROCS(0)
	if cores == 1 {
		return model + ", 1 core"
	}
	return fmt.Sprintf("%s, %d cores", model, cores)
}

// nvidiaModels returns the models of the NVIDIA GPUs that the driver reports
// under root, normally /proc/driver/nvidia/gpus; none where there is no driver.
func nvidiaModels(root string) []string {
	paths, err := filepath.Glob(filepath.Join(root, "*", "information"))
	if err != nil {
		return nil
	}
	var models []string
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		if name := field(file, "Model"); name != "" {
			models = append(models, name)
		}
		_ = file.Close()
	}
	return models
}

// field returns the value of the first line "name: value", or "".
func field(r io.Reader, name string) string {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		key, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return ""
}
