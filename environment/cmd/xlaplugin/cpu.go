package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gomlx/go-xla/installer"
)

// The Python package that the plugin for processors is taken out of. It holds, unchanged, the build
// pjrt-cpu_linux-amd64 of github.com/zml/pjrt-artifacts; of XLA's own plugin for processors there is no package.
const (
	cpuPackage = "fastatomstruct-xla-cpu"
	cpuVersion = "2026.6.23"
	cpuSHA256  = "88b1c430b341b4bea40a37420311c9c75db6e22b46d2ff95b6986577bee6afe9"
	cpuMember  = "fastatomstruct_xla_cpu/libpjrt_cpu.so"
	cpuPlugin  = "pjrt_c_api_cpu_plugin.so"
)

// installCPU takes the plugin out of the package, whose bytes are those of the hash.
func installCPU(folder string) (err error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("no plugin that is pinned for %s/%s, only for linux/amd64; GOMLX_BACKEND=xla:/path/to/plugin.so takes one of your own", runtime.GOOS, runtime.GOARCH)
	}
	info, err := installer.GetPipInfo(cpuPackage)
	if err != nil {
		return fmt.Errorf("looking up the package %s: %w", cpuPackage, err)
	}
	address, err := pinned(info.Releases[cpuVersion])
	if err != nil {
		return err
	}
	archive, _, err := installer.DownloadURLToTemp(address, cpuPackage+".whl", cpuSHA256, false, installer.Verbose)
	if err != nil {
		return fmt.Errorf("downloading %s: %w", address, err)
	}
	defer func() { err = errors.Join(err, os.Remove(archive)) }()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the folder for the plugin: %w", err)
	}
	path := filepath.Join(folder, cpuPlugin)
	if err := installer.ExtractFileFromZip(archive, cpuMember, path+".part"); err != nil {
		return fmt.Errorf("taking %s out of %s: %w", cpuMember, cpuPackage, err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		return fmt.Errorf("putting the plugin in its place: %w", err)
	}
	return nil
}

// pinned is the address of the file with the hash, among those of a release.
func pinned(files []installer.PipReleaseInfo) (string, error) {
	for _, file := range files {
		if file.Digests["sha256"] == cpuSHA256 {
			return file.URL, nil
		}
	}
	return "", fmt.Errorf("the package index has no file of %s %s with the SHA-256 %s", cpuPackage, cpuVersion, cpuSHA256)
}
