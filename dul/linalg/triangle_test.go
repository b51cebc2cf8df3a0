package linalg_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/linalg"
)

func TestLowerTriangle(t *testing.T) {
	x := fixtures.Matrix(2, 3, 1, 2, 3, 4, 5, 6)
	out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"x": x}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{linalg.LowerTriangle(in["x"])}
	})[0]
	fixtures.Compare(t, "lower triangle", out, fixtures.Matrix(2, 3, 1, 0, 0, 4, 5, 0), 0)
}

func TestDiagnoseASingleNumber(t *testing.T) {
	if err := linalg.Diagnose([]float64{-3}, 1); !strings.Contains(err.Error(), "of 1 x 1, with eigenvalues from -3 to -3 and condition number 1;") {
		t.Error(err)
	}
}
