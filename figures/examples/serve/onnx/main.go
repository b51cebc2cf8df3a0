//go:build onnx

// Command onnx writes a network that experiment.Engine kept in its folder Networks as an ONNX file, which ONNX Runtime executes
// without Go: in Python or, by onnxruntime-web, in a browser. Copy it and put in your own network.
//
//	export ONNXRUNTIME_SHARED_LIBRARY_PATH=/path/to/libonnxruntime.so # otherwise it is downloaded
//	go run -tags noxla,onnx ./figures/examples/serve/onnx networks/0123456789abcdef.safetensors network.onnx
//	python figures/examples/serve/onnx/predict.py network.onnx 0.1 2.5
//
// It needs a C compiler. Python's package onnxruntime has the library in its folder capi. The file takes any number of rows x, and
// the seed of the noise, and computes a draw for each row (see trained.Opened.Exec).
package main

import (
	"errors"
	"log"
	"os"

	onnxbackend "github.com/gomlx/compute-onnx"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/ml/model/onnx"

	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/figures/trained"
)

// network is the network as it was trained.
var network = nets.MLP{Layers: dul.Density{InitStd: 0.1}, Widths: []int{20}}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: onnx FILE.safetensors FILE.onnx")
	}
	if err := export(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func export(from, to string) error {
	o, err := trained.Open(from, network, likelihood.Gaussian{})
	if err != nil {
		return err
	}
	backend, err := onnxbackend.New("cpu")
	if err != nil {
		return err
	}
	exec, x, err := o.Exec(backend)
	if err != nil {
		return err
	}
	err = onnx.SaveToFile(backend, exec, to, []shapes.Shape{x}, []string{"x", "seed"}, []string{"mean", "variance"})
	if err != nil {
		err = errors.Join(err, os.Remove(to))
	}
	return err
}
