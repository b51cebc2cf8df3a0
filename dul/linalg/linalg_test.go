package linalg_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/linalg"
	"densityuncertainty/environment/must"
)

// positive is a batch of symmetric positive definite matrices with eigenvalues
// of about 0.1 to 4.
func positive(rng *rand.Rand, batch, n int) fixtures.Array {
	a := fixtures.Zeros(batch, n, n)
	for b := range batch {
		x := mat.NewDense(n, n, fixtures.Random(rng, n, n).Values)
		var s mat.SymDense
		s.SymOuterK(1/float64(n), x)
		for i := range n {
			s.SetSym(i, i, s.At(i, i)+0.1)
			for j := range n {
				a.Values[(b*n+i)*n+j] = s.At(i, j)
			}
		}
	}
	return a
}

// symmetric is matrix k of a batch.
func symmetric(a fixtures.Array, k int) *mat.SymDense {
	n := a.Dims[2]
	return mat.NewSymDense(n, a.Values[k*n*n:(k+1)*n*n])
}

// Factor, solutions and the least pivot are those of gonum.
func TestAgreesWithGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 7, 32, 50} {
		const batch, columns = 2, 3
		a, b := positive(rng, batch, n), fixtures.Random(rng, batch, n, columns)
		out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"a": a, "b": b}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
			f := linalg.Cholesky(in["a"])
			return []*graph.Node{f.Lower, f.SolveLower(in["b"]), f.SolveTransposed(in["b"]), f.LeastPivot}
		})
		for k := range batch {
			var c mat.Cholesky
			if !c.Factorize(symmetric(a, k)) {
				t.Fatal("gonum cannot factorise")
			}
			var l mat.TriDense
			c.LTo(&l)
			right := mat.NewDense(n, columns, b.Values[k*n*columns:(k+1)*n*columns])
			var lower, upper mat.Dense
			must.Do(t, errors.Join(lower.Solve(&l, right), upper.Solve(l.T(), right)))
			least := math.Inf(1)
			for i := range n {
				least = min(least, l.At(i, i)*l.At(i, i))
			}
			for i, want := range []mat.Matrix{&l, &lower, &upper, mat.NewDense(1, 1, []float64{least})} {
				rows, cols := want.Dims()
				size := rows * cols
				got := fixtures.Matrix(rows, cols, out[i].Values[k*size:(k+1)*size]...)
				fixtures.Compare(t, fmt.Sprintf("n=%d, matrix %d, result %d", n, k, i), got, array(want), 1e-11)
			}
		}
	}
}

func array(m mat.Matrix) fixtures.Array {
	rows, columns := m.Dims()
	return fixtures.Matrix(rows, columns, mat.DenseCopyOf(m).RawMatrix().Data...)
}

// Only the triangle is used, and the gradient is the symmetric one: a function of
// the symmetric part of x has half of it for each of two mirrored entries.
func TestGradients(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 5, 8} {
		values := fixtures.Values{"a": positive(rng, 2, n), "b": fixtures.Random(rng, 2, n, 3)}
		symmetrised := func(in fixtures.Nodes) *graph.Node {
			return graph.MulScalar(graph.Add(in["a"], graph.Transpose(in["a"], -2, -1)), 0.5)
		}
		for _, c := range []struct {
			name string
			of   func(in fixtures.Nodes) *graph.Node
		}{
			{"Cholesky", func(in fixtures.Nodes) *graph.Node { return linalg.Cholesky(symmetrised(in)).Lower }},
			{"SolveLower", func(in fixtures.Nodes) *graph.Node { return linalg.Cholesky(symmetrised(in)).SolveLower(in["b"]) }},
			{"SolveTransposed", func(in fixtures.Nodes) *graph.Node { return linalg.Cholesky(symmetrised(in)).SolveTransposed(in["b"]) }},
		} {
			t.Run(fmt.Sprintf("%s/%d", c.name, n), func(t *testing.T) {
				fixtures.CheckGradient(t, values, nil, func(_ *model.Scope, in fixtures.Nodes) *graph.Node { return c.of(in) })
			})
		}
	}
}

// What is above the diagonal is not read.
func TestReadsTheLowerTriangle(t *testing.T) {
	a := positive(rand.New(rand.NewPCG(5, 6)), 1, 4)
	factor := func(a fixtures.Array) fixtures.Array {
		return fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"a": a}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{linalg.Cholesky(in["a"]).Lower}
		})[0]
	}
	want := factor(a)
	for i := range 4 {
		for j := i + 1; j < 4; j++ {
			a.Values[i*4+j] = 7
		}
	}
	fixtures.Compare(t, "factor", factor(a), want, 0)
}

// A matrix that is not positive definite has a pivot that says so, no NaN, and a
// diagnosis with its eigenvalues.
func TestNotPositiveDefinite(t *testing.T) {
	// Eigenvalues 3 and -1.
	values := []float64{1, 2, 2, 1}
	out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{"a": fixtures.Matrix(2, 2, values...)}, nil, func(_ *model.Scope, in fixtures.Nodes) []*graph.Node {
		f := linalg.Cholesky(in["a"])
		return []*graph.Node{f.Lower, f.LeastPivot}
	})
	if pivot := out[1].Values[0]; pivot != -3 { // 1 - 2*2
		t.Errorf("the least pivot is %g, want -3", pivot)
	}
	for _, v := range out[0].Values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("the factor is not finite: %v", out[0].Values)
		}
	}
}

func TestRejectsOtherShapes(t *testing.T) {
	must.GetErr(model.CallOnce(fixtures.Backend(t), model.NewStore(), func(_ *model.Scope, x *graph.Node) *graph.Node {
		return linalg.Cholesky(x).Lower
	}, [][]float64{{1, 2}}))(t, "want [..., n, n]")
}
