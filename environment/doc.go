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
// ONNX Runtime 1.26 is one more backend for processors, and an independent check
// of the others: results agree with those of the pure Go backend to rounding. It
// is an option for Linux on amd64: GOMLX_BACKEND=onnx, in a program built with
// the tag onnx and cgo, where its library is installed; ./environment/setup
// --onnx sees to both. It is not chosen by itself, as neither is faster for all:
// on two cores a training step of a small dense network takes ONNX Runtime about
// twice as long as the pure Go backend, one of the image models about half as
// long. It has no convolutions in double precision.
//
// XLA for processors comes from go run ./environment/cmd/xlaplugin cpu, which
// fetches go-xla's own build, or from ./environment/setup --xla, which takes
// another build out of a pinned Python package.
//
// Package backendtest opens the backend of tests, pure Go where nothing else is
// asked for.
//
// The build tag noxla (or CGO_ENABLED=0) leaves XLA out, which makes programs
// link several times faster.
package environment
