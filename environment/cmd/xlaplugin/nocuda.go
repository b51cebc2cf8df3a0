//go:build !(linux && amd64)

package main

import (
	"fmt"
	"runtime"
)

// installCUDA fails: the plugin exists for Linux on amd64 only.
func installCUDA(plugin, folder string) error {
	return fmt.Errorf("no %s plugin (JAX %s) for %s/%s, only for linux/amd64", plugin, jaxVersion, runtime.GOOS, runtime.GOARCH)
}
