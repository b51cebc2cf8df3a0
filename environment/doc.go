// Package environment chooses where computations run and describes that choice
// for people and for result files.
//
// [Open] returns a GoMLX backend. Without any configuration it takes the
// fastest one that is already installed: XLA on a CUDA GPU, XLA on the CPU, or
// the pure Go backend, which needs nothing but Go. It never downloads anything.
// The environment variable GOMLX_BACKEND overrides the choice; a value that
// cannot be honoured is an error, never a silent fallback.
//
// [Describe] returns the same facts as fields, for result lines.
//
// XLA for processors comes from ./environment/setup --xla, which takes it out of a pinned
// Python package.
//
// The build tag noxla (or CGO_ENABLED=0) leaves XLA out, which makes programs
// link several times faster.
package environment
