// Package environment chooses where computations run: XLA on a CUDA GPU, XLA on the processor, or pure Go, the fastest that
// is installed. GOMLX_BACKEND overrides the choice, and is an error if it cannot be honoured. The build tag noxla leaves
// XLA out, so that programs link several times faster.
package environment
