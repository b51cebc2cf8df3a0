#!/usr/bin/env bash
# Expected: onnx.Save of GoMLX, called with the names "draw" and "variance" for the two results of a function, writes a file whose
#   outputs "draw" and "variance" are these results.
# Seen: if the function draws random numbers, the file's first output is the generator's next state. It gets the first name: "draw" is three integers, "variance" is the draw, and the variance has a name such as node_100.
# Why it matters: a prediction with noise is what one exports of a Bayesian network. Who asks ONNX Runtime for "variance" gets
#   a number of the right shape and type, without an error, and it is the prediction.
# Versions: GoMLX 0.28.16, compute-onnx 0.1.13, onnxruntime 1.32.0, Go 1.27. It needs a C compiler. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet onnxruntime==1.32.0 numpy==2.4.6
export GOPATH="$work/go" GOCACHE="$work/cache" GOFLAGS="-modcacherw -mod=mod -tags=noxla,onnx" GOTOOLCHAIN=auto GOWORK=off CGO_ENABLED=1
unset GOEXPERIMENT GOMODCACHE GOMLX_BACKEND
ONNXRUNTIME_SHARED_LIBRARY_PATH=$(ls "$work"/venv/lib/python*/site-packages/onnxruntime/capi/libonnxruntime*.1.32.0* | head -n 1)
export ONNXRUNTIME_SHARED_LIBRARY_PATH
cd "$work"
cat >go.mod <<'MODULE'
module example

go 1.27

require (
	github.com/gomlx/compute v0.1.14
	github.com/gomlx/compute-onnx v0.1.13
	github.com/gomlx/gomlx v0.28.16
)
MODULE
cat >main.go <<'GO'
package main

import (
	"log"

	onnxbackend "github.com/gomlx/compute-onnx"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/onnx"
)

func main() {
	backend, err := onnxbackend.New("cpu")
	if err != nil {
		log.Fatal(err)
	}
	predict, err := model.NewExec(backend, model.NewStore(), func(s *model.Scope, x *graph.Node) []*graph.Node {
		noise := graph.MulScalar(s.RandomNormal(x.Graph(), x.Shape()), 0.01)
		return []*graph.Node{graph.Add(graph.MulScalar(x, 2), noise), graph.MulScalar(graph.OnesLike(x), 0.0001)}
	})
	if err != nil {
		log.Fatal(err)
	}
	shape := shapes.Make(dtypes.Float32, 1, 2)
	err = onnx.SaveToFile(backend, predict, "model.onnx", []shapes.Shape{shape}, []string{"x"}, []string{"draw", "variance"})
	if err != nil {
		log.Fatal(err)
	}
}
GO
go run .
"$work/venv/bin/python" - <<'PYTHON'
import sys
import numpy as np
import onnxruntime

onnxruntime.set_default_logger_severity(3)
session = onnxruntime.InferenceSession("model.onnx")
given = {i.name: np.array([1, 0, 0], np.uint64) for i in session.get_inputs() if i.name != "x"}
given["x"] = np.array([[3, 5]], np.float32)
found = dict(zip((o.name for o in session.get_outputs()), session.run(None, given)))
print("2 x is 6 and 10, with noise of the variance 0.0001; the outputs of the file:")
for name, value in found.items():
    print(f"  {name}: {value}")
if not (found["draw"].shape == (3,) and np.allclose(found["variance"], [[6, 10]], atol=0.1)):
    sys.exit("changed")
PYTHON
