// Package environment chooses where computations run. Open takes the fastest GoMLX backend that is installed: XLA on a CUDA
// GPU, XLA on the processor, or pure Go. It downloads nothing. The variable GOMLX_BACKEND overrides the choice; a value that
// cannot be honoured is an error. Describe returns the choice as fields, for result lines. The build tag noxla, or
// CGO_ENABLED=0, leaves XLA out, so that programs link several times faster.
package environment
