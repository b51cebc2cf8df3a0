// Package environment chooses the backend of computations: XLA, if a plugin is installed and the work is worth compiling, or
// pure Go. GOMLX_BACKEND overrides the choice, and is an error if it cannot be honoured. The build tag noxla leaves XLA out,
// so that programs link several times faster.
package environment
