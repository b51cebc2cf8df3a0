// Package onnx makes ONNX Runtime's backend for GoMLX, github.com/gomlx/compute-onnx,
// safe to train with.
//
// That backend hands the address of Go memory to the C library and keeps no
// reference to it: the garbage collector may reuse the memory before the library
// reads it, and a rate or a parameter turns into something else without any
// error. In turn it never frees C memory that Go has let go of, executes one
// program from two goroutines on the same scratch memory, returns uninitialised
// memory for an output that is an input, and downloads its library by itself.
//
// New returns a backend that wraps it and does none of this:
//
//   - Values from Go are copied into memory that the library owns, before
//     anything else happens (Backend.BufferFromFlatData, function.Constant).
//   - A buffer frees its C memory when it is finalized or when Go has collected
//     it, and every use keeps it alive until the library is done with it.
//   - Executions of one program take turns.
//   - Outputs that are inputs, constants or given twice pass through a copy.
//   - The library must be there; see Library.
//   - Operations that are missing or slow are composed of others, and those that
//     are computed wrongly are refused; see the methods of function.
//   - Operations that no output needs are taken out; see prune.
//
// One piece of Go memory stays unguarded: the number that stands in for the
// inputs of a program without any. No operation reads it.
//
// The package is empty but for this text unless built with the tag onnx and cgo
// on Linux on amd64.
package onnx
