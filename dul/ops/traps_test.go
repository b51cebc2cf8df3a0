package ops_test

import (
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/environment/must"
)

// What this project steps around in GoMLX is still there. Where a value is the right one now, the table of traps in
// .github/CONTRIBUTING.md says which guard may go.
func TestTraps(t *testing.T) {
	backend := fixtures.GoBackend(t)
	one := func(f func(g *graph.Graph) *graph.Node) float64 {
		return fixtures.FromTensor(t, must.Get(must.Get(graph.NewExec(backend, func(x *graph.Node) *graph.Node { return f(x.Graph()) }))(t).Call1(float32(0)))(t)).Values[0]
	}
	last := func(f func(*graph.Node) *graph.Node) float64 { // of 17 numbers, which one vector does not hold
		return one(func(g *graph.Graph) *graph.Node {
			return graph.SliceAxis(f(graph.Const(g, slices.Repeat([]float32{float32(math.NaN())}, 17))), 0, graph.AxisRange(16, 17))
		})
	}
	sizes := must.Get(graph.NewExec(backend, func(x *graph.Node) *graph.Node { return graph.Neg(x) }))(t)
	var full error
	for n := 1; n <= 33 && full == nil; n++ {
		_, full = sizes.Call1(make([]float32, n))
	}
	store := model.NewStore()
	weight := store.RootScope().VariableWithValue("w", float32(1))
	evaluation := must.Get(model.NewExec(backend, store, func(s *model.Scope, x *graph.Node) *graph.Node {
		return graph.Mul(x, weight.NodeValue(x))
	}))(t)
	must.Get(evaluation.Call1(float32(1)))(t)
	must.Do(t, weight.SetValue(fixtures.Tensor(dtypes.Float32, fixtures.Array{Values: []float64{2}})))
	old := fixtures.FromTensor(t, must.Get(evaluation.Call1(float32(1)))(t)).Values[0]

	build, _ := debug.ReadBuildInfo()
	vectors := slices.ContainsFunc(build.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "GOEXPERIMENT" && strings.Contains(s.Value, "simd")
	})
	for _, c := range []struct {
		trap      string
		is        bool
		ofVectors bool
	}{
		{"an evaluation keeps the variables' values of its first call", old == 1, false},
		{"the mean of integers is 0", one(func(g *graph.Graph) *graph.Node {
			return graph.ConvertDType(graph.ReduceAllMean(graph.Const(g, []int32{1, 2, 3, 6})), dtypes.Float32)
		}) == 0, false},
		{"a sum over rows loses its digits", math.Abs(one(func(g *graph.Graph) *graph.Node {
			return graph.ReduceSum(graph.MulScalar(graph.Ones(g, fixtures.Tensor(dtypes.Float32, fixtures.Zeros(1_000_000, 1)).Shape()), 0.1), 0)
		})-1e5) > 100, false},
		{"a 33rd shape is an error", full != nil, false},
		{"a maximum drops NaN", !math.IsNaN(last(func(x *graph.Node) *graph.Node { return graph.MaxScalar(x, 0) })), true},
		{"e to the NaN is a number", !math.IsNaN(last(graph.Exp)), true},
		{"Erf has seven digits in float64", math.Abs(one(func(g *graph.Graph) *graph.Node {
			return graph.Erf(graph.Const(g, []float64{0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}))
		})-math.Erf(0.5)) > 1e-10, true},
	} {
		if !c.is && (vectors || !c.ofVectors) {
			t.Errorf("no longer true of GoMLX: %s", c.trap)
		}
	}
}
