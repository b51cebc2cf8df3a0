//go:build !(cgo && !noxla && ((linux && (amd64 || arm64)) || (darwin && arm64)))

package environment

import "github.com/gomlx/compute"

// xlaCompiledIn tells whether this program contains the XLA backend.
const xlaCompiledIn = false

// prepareXLA has nothing to prepare in a program without XLA.
func prepareXLA() {}

// installedXLA returns no configurations in a program without XLA.
func installedXLA() []string { return nil }

// describeXLA recognises no backend in a program without XLA.
func describeXLA(compute.Backend) (config, device string, ok bool) { return "", "", false }
