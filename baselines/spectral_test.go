package baselines_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/layertest"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
	"densityuncertainty/environment/must"
)

// A spectralCase is a layer and the shape of its input, with the examples along axis 1
// for images, 0 for vectors.
type spectralCase struct {
	name  string
	input []int // one example
	apply func(l baselines.SpectralNormed, s *model.Scope, x *graph.Node) *graph.Node
}

func spectralCases() []spectralCase {
	layer := func(c conv.Spec) func(l baselines.SpectralNormed, s *model.Scope, x *graph.Node) *graph.Node {
		return func(l baselines.SpectralNormed, s *model.Scope, x *graph.Node) *graph.Node {
			return l.Conv(s.In("layer"), x, c)
		}
	}
	return []spectralCase{
		{"dense", []int{5}, func(l baselines.SpectralNormed, s *model.Scope, x *graph.Node) *graph.Node {
			return l.Dense(s.In("layer"), x, 7)
		}},
		{"convolution", []int{2, 5, 4}, layer(conv.Spec{Filters: 3, Window: conv.Same(3, 1)})},
		{"strided convolution", []int{2, 6, 5}, layer(conv.Spec{Filters: 3, Window: conv.Same(3, 2), NoBias: true})},
		{"shortcut", []int{3, 4, 4}, layer(conv.Spec{Filters: 4, Window: conv.Same(1, 2)})},
	}
}

func (c spectralCase) size() int {
	n := 1
	for _, d := range c.input {
		n *= d
	}
	return n
}

// batch is the shape of n examples.
func (c spectralCase) batch(n int) []int {
	if len(c.input) == 1 {
		return []int{n, c.input[0]}
	}
	return []int{c.input[0], n, c.input[1], c.input[2]}
}

// materialised is the layer's linear map as a matrix, one row for each entry of
// its input: the layer's values at the unit vectors, less that at zero.
func (c spectralCase) materialised(t *testing.T, backend compute.Backend, store *model.Store, l baselines.SpectralNormed) *mat.Dense {
	t.Helper()
	n := c.size()
	x := tensors.FromShape(shapes.Make(dtypes.Float64, c.batch(n+1)...))
	pixels := n / c.input[0]
	tensors.MustMutableFlatData(x, func(flat []float64) {
		for i := range n { // example i is unit vector i, example n zero
			if len(c.input) == 1 {
				flat[i*n+i] = 1
			} else {
				flat[(i/pixels*(n+1)+i)*pixels+i%pixels] = 1
			}
		}
	})
	y := must.Get(model.CallOnce(backend, store, func(s *model.Scope, x *graph.Node) *graph.Node {
		y := c.apply(l, s, x)
		if y.Rank() == 4 {
			y = graph.Transpose(y, 0, 1)
		}
		return graph.Reshape(y, n+1, -1)
	}, x))(t)
	flat := must.Get(tensors.CopyFlatData[float64](y))(t)
	outputs := y.Shape().Dim(1)
	m := mat.NewDense(n, outputs, nil)
	for i := range n {
		for j := range outputs {
			m.Set(i, j, flat[i*outputs+j]-flat[n*outputs+j])
		}
	}
	return m
}

func spectralNorm(t *testing.T, m mat.Matrix) float64 {
	t.Helper()
	var svd mat.SVD
	if !svd.Factorize(m, mat.SVDNone) {
		t.Fatal("no singular values")
	}
	return svd.Values(nil)[0]
}

// trainUp makes the layer's outputs grow by gradient ascent, so that the norm of
// its weights passes any bound.
func (c spectralCase) trainUp(t *testing.T, backend compute.Backend, store *model.Store, l baselines.SpectralNormed, steps int) {
	t.Helper()
	exec := must.Get(model.NewExec(backend, store, func(s *model.Scope, x *graph.Node) *graph.Node {
		g := x.Graph()
		s.Store().SetTraining(g, true)
		y := c.apply(l, s, x)
		loss := graph.ReduceAllMean(graph.Mul(y, graph.Sin(graph.MulScalar(graph.Iota(g, y.Shape(), 0), 3))))
		for v := range store.IterVariables() {
			if params.RoleOf(v, store) == params.Weight {
				w := v.NodeValue(g)
				v.SetNodeValue(graph.Add(w, graph.Add(graph.Gradient(loss, w)[0], graph.MulScalar(w, 0.05))))
			}
		}
		return loss
	}))(t)
	x := make([]float64, 6*c.size())
	for i := range x {
		x[i] = float64(i*i%11) - 5
	}
	input := tensors.FromFlatDataAndDimensions(x, c.batch(6)...)
	for range steps {
		must.Get(exec.Call(input))(t)
	}
}

func TestSpectralNormed(t *testing.T) {
	l := baselines.SpectralNormed{Bound: 0.2}
	layertest.Checks{Deterministic: true}.Dense(t, l)
	layertest.Checks{Deterministic: true}.Conv(t, l)
}

// After training the norm of the map, by SVD, is the bound, and the norm of the
// weights themselves is far above it.
func TestSpectralBoundHoldsAfterTraining(t *testing.T) {
	backend := fixtures.Backend(t)
	for _, c := range spectralCases() {
		for _, bound := range []float64{0.7, 3} {
			t.Run(fmt.Sprintf("%s/%g", c.name, bound), func(t *testing.T) {
				store := model.NewStore()
				params.SetSeeds(store, 1)
				l := baselines.SpectralNormed{Bound: bound}
				c.trainUp(t, backend, store, l, 120)
				if free := spectralNorm(t, c.materialised(t, backend, store, baselines.SpectralNormed{Bound: 1e6})); free < 1.5*bound {
					t.Fatalf("the norm of the weights is %g: too small to be bounded by %g", free, bound)
				}
				// The vector lags a step behind the weights, and one direction behind another.
				if norm := spectralNorm(t, c.materialised(t, backend, store, l)); norm > bound*1.01 || norm < bound*0.99 {
					t.Errorf("the norm is %g, want %g", norm, bound)
				}
			})
		}
	}
}

// A map within the bound stays as it is.
func TestSpectralBoundLeavesSmallWeights(t *testing.T) {
	backend := fixtures.Backend(t)
	for _, c := range spectralCases() {
		t.Run(c.name, func(t *testing.T) {
			store := model.NewStore()
			params.SetSeeds(store, 1)
			free := c.materialised(t, backend, store, baselines.SpectralNormed{Bound: 1e6})
			bounded := c.materialised(t, backend, store, baselines.SpectralNormed{Bound: 1.01 * spectralNorm(t, free)})
			if !mat.Equal(free, bounded) {
				t.Error("a bound above the norm changes the map")
			}
		})
	}
}

// The factor of a normalisation is bounded by that of its most stretched channel;
// its shift is not.
func TestSpectralNorm(t *testing.T) {
	backend := fixtures.Backend(t)
	store := model.NewStore()
	set := func(path string, values ...float64) {
		store.VariableWithValue(path, tensors.FromFlatDataAndDimensions(values, 2, 1))
	}
	set("/norm/scale", -3, 1)
	set("/norm/shift", 5, -7)
	set("/norm/running_mean", 0, 0)
	set("/norm/running_variance", 0.25-1e-5, 4-1e-5)
	y := must.Get(model.CallOnce(backend, store, func(s *model.Scope, x *graph.Node) *graph.Node {
		return baselines.SpectralNormed{Bound: 2}.Norm(s.In("norm"), x)
	}, tensors.FromFlatDataAndDimensions([]float64{1, 1}, 2, 1, 1, 1)))(t)
	want := []float64{-2 + 5, 0.5/3 - 7} // factors -6 and 0.5, divided by 6/2
	if got := tensors.MustCopyFlatData[float64](y); !floats.EqualApprox(got, want, 1e-12) {
		t.Errorf("got %v, want %v", got, want)
	}
}
