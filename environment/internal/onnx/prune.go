//go:build onnx && cgo && linux && amd64

package onnx

import (
	"reflect"
	"unsafe"

	onnxruntime "github.com/gomlx/compute-onnx"
)

// prune takes the operations out of a function that none of its outputs needs.
//
// GoMLX leaves them there, most of them derivatives that a gradient of our own
// took the place of, and ONNX Runtime executes whatever it is given. The wrapped
// backend has no way to remove an operation, so this reaches into its fields
// nodes and returns, and into those of a node: name, inputs, and outputNames
// where it has several outputs, which others then use under those names.
func prune(f *onnxruntime.Function) {
	fields := reflect.ValueOf(f).Elem()
	nodes := fields.FieldByName("nodes")
	makerOf := map[string]reflect.Value{}
	for i := range nodes.Len() {
		node := nodes.Index(i)
		makerOf[nameOf(node)] = node
		names := node.Elem().FieldByName("outputNames")
		for k := range names.Len() {
			makerOf[names.Index(k).String()] = node
		}
	}

	needed := map[unsafe.Pointer]bool{}
	var need func(values reflect.Value)
	need = func(values reflect.Value) {
		for i := range values.Len() {
			node := makerOf[nameOf(values.Index(i))]
			if !needed[node.UnsafePointer()] {
				needed[node.UnsafePointer()] = true
				need(node.Elem().FieldByName("inputs"))
			}
		}
	}
	need(fields.FieldByName("returns"))

	kept := reflect.MakeSlice(nodes.Type(), 0, len(needed))
	for i := range nodes.Len() {
		if node := nodes.Index(i); needed[node.UnsafePointer()] {
			kept = reflect.Append(kept, reflect.NewAt(node.Type(), node.Addr().UnsafePointer()).Elem())
		}
	}
	reflect.NewAt(nodes.Type(), nodes.Addr().UnsafePointer()).Elem().Set(kept)
}

// nameOf is the name of a node's output.
func nameOf(node reflect.Value) string { return node.Elem().FieldByName("name").String() }
