//go:build !(cgo && !noxla && linux && (amd64 || arm64))

package programs

// Keep does nothing in a program without XLA.
func Keep(string) {}
