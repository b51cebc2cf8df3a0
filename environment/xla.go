//go:build cgo && !noxla && ((linux && (amd64 || arm64)) || (darwin && arm64))

package environment

import (
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/installer"
)

// xlaCompiledIn tells whether this program contains the XLA backend.
const xlaCompiledIn = true

// disableXLADownloads keeps go-xla from fetching a plugin when it finds none.
func disableXLADownloads() { xla.EnableAutoInstall(false) }

// hasGPU says whether this machine has an NVIDIA GPU with a driver. Without one, go-xla
// hides CUDA plugins.
func hasGPU() bool { return installer.HasNvidiaGPU() }

// installedXLA returns the configurations of the XLA plugins on this machine
// that may be chosen for the work without being asked for, best first.
func installedXLA(work Work) []string {
	return preferred(work, xla.GetAvailablePlugins())
}

// preferred keeps the plugins for CPUs and, for images, before them those for NVIDIA
// GPUs, and turns their names, as "cuda" or "cpu_v0.83.1", into configurations. Steps of
// small networks take a GPU longer to start than a CPU to compute.
func preferred(work Work, plugins []string) []string {
	var configs []string
	for _, kind := range []string{"cuda", "cpu"} {
		for _, name := range plugins {
			if (name == kind || strings.HasPrefix(name, kind+"_v")) && (kind == "cpu" || work == Images) {
				configs = append(configs, xla.BackendName+":"+name)
			}
		}
	}
	return configs
}

// describeXLA returns the configuration and the device of an XLA backend; ok
// is false for any other backend.
func describeXLA(backend compute.Backend) (config, device string, ok bool) {
	x, ok := backend.(*xla.Backend)
	if !ok {
		return "", "", false
	}
	config = xla.BackendName + ":" + x.PluginName()
	if x.IsCUDA() && !x.DotGeneralUseTF32 {
		config += "," + fullPrecision
	}
	if x.IsCPU() {
		return config, processor(), true
	}
	if models := nvidiaModels("/proc/driver/nvidia/gpus"); x.IsCUDA() && len(models) > 0 {
		return config, models[0], true
	}
	return config, x.DeviceDescription(0), true
}
