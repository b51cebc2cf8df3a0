//go:build linux && amd64

package main

import "github.com/gomlx/go-xla/installer"

// installCUDA installs the plugin and NVIDIA's libraries, some gigabytes.
func installCUDA(plugin, folder string) error {
	return installer.CudaInstall(plugin, jaxVersion, folder, false, installer.Verbose)
}
