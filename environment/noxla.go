//go:build !(cgo && !noxla && ((linux && (amd64 || arm64)) || (darwin && arm64)))

package environment

import "github.com/gomlx/compute"

// xlaCompiledIn tells whether this program contains the XLA backend.
const xlaCompiledIn = false

// disableXLADownloads has nothing to disable in a program without XLA.
func disableXLADownloads() {}

// installedXLA returns no configurations in a program without XLA.
func installedXLA(Work) []string { return nil }

// hasGPU finds no GPU that a program without XLA could use.
func hasGPU() bool { return false }

// describeXLA recognises no backend in a program without XLA.
func describeXLA(compute.Backend) (config, device string, ok bool) { return "", "", false }
