package params_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/params"
	"densityuncertainty/environment/must"
)

// starts makes the named parameters, [replicas..., 4, 6], in the given order
// and returns their initial values.
func starts(t *testing.T, store *model.Store, replicas int, names ...string) map[string][]float64 {
	t.Helper()
	var lead []int
	if replicas > 0 {
		lead = []int{replicas}
	}
	results := must.Get(model.CallOnceN(fixtures.Backend(t), store, func(s *model.Scope, in []*graph.Node) []*graph.Node {
		params.FactsOf(in[0].Graph()).Replicas = lead
		var out []*graph.Node
		for _, name := range names {
			out = append(out, params.New(s.At("layer"), in[0], name, params.Weight, params.Normal(0, 1), 4, 6))
		}
		return out
	}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(append(lead, 1, 1)...))))(t)
	values := map[string][]float64{}
	for i, name := range names {
		values[name] = fixtures.FromTensor(t, results[i]).Values
	}
	return values
}

func seeded(seeds ...uint64) *model.Store {
	store := model.NewStore()
	params.SetSeeds(store, seeds...)
	return store
}

func TestStartDependsOnSeedAndPathAlone(t *testing.T) {
	want := starts(t, seeded(7), 0, "a", "b")
	if slices.Equal(want["a"], want["b"]) {
		t.Error("two parameters start equal")
	}
	reversed := starts(t, seeded(7), 0, "b", "c", "a")
	for _, name := range []string{"a", "b"} {
		if !slices.Equal(want[name], reversed[name]) {
			t.Errorf("%s starts differently when others are made first", name)
		}
	}
	if other := starts(t, seeded(8), 0, "a"); slices.Equal(other["a"], want["a"]) {
		t.Error("seeds 7 and 8 give the same start")
	}
}

func TestOneSeedServesAllReplicas(t *testing.T) {
	values := starts(t, seeded(7), 3, "a")["a"]
	if slices.Equal(values[:24], values[24:48]) || slices.Equal(values[24:48], values[48:]) {
		t.Error("replicas of one seed start equal")
	}
}

func TestStoreWithoutSeedsDrawsOne(t *testing.T) {
	first, second := starts(t, model.NewStore(), 0, "a"), starts(t, model.NewStore(), 0, "a")
	if slices.Equal(first["a"], second["a"]) {
		t.Error("two stores without seeds start equal")
	}
}

func TestWrongNumberOfSeeds(t *testing.T) {
	must.GetErr(model.CallOnce(fixtures.Backend(t), seeded(1, 2), func(s *model.Scope, x *graph.Node) *graph.Node {
		params.FactsOf(x.Graph()).Replicas = []int{3}
		return params.New(s, x, "a", params.Weight, params.Constant(0), 2, 2)
	}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(3, 1, 1))))(t, "parameter /a has 3 replicas, but SetSeeds was given 2 seeds")
}

func TestRoleOf(t *testing.T) {
	roles := []params.Role{params.Weight, params.Variational, params.Generative, params.Likelihood}
	store := seeded(1)
	must.Get(model.CallOnceN(fixtures.Backend(t), store, func(s *model.Scope, in []*graph.Node) []*graph.Node {
		var out []*graph.Node
		for i, role := range roles {
			out = append(out, params.New(s.In("layer_%d", i).In("energy"), in[0], "p", role, params.Constant(0), 1, 2))
		}
		return append(out, s.VariableWithValue("other", 1.0).NodeValue(in[0]))
	}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(1, 1))))(t)
	for i, want := range roles {
		path := fmt.Sprintf("/layer_%d/energy/p", i)
		if got := params.RoleOf(store.GetVariable(path), store); got != want {
			t.Errorf("the role of %s is %q, want %q", path, got, want)
		}
	}
	if got := params.RoleOf(store.GetVariable("/other"), store); got != "" {
		t.Errorf("the role of a variable that is not a parameter is %q", got)
	}
}

func TestNormalAndUniformMoments(t *testing.T) {
	const n = 20000
	for _, c := range []struct {
		name           string
		initial        params.Initializer
		mean, variance float64
	}{
		{"Normal", params.Normal(0.5, 2), 0.5, 4},
		{"KaimingNormal", params.KaimingNormal(50), 0, 2.0 / 50},
		{"Uniform", params.Uniform(0.3), 0, 0.3 * 0.3 / 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			values := make([]float64, n)
			c.initial(rand.New(rand.NewPCG(1, 2)), []int{n}, values)
			fixtures.CheckMoments(t, "start", values, c.mean, c.variance)
		})
	}
	values := make([]float64, 10)
	params.Constant(1.5)(nil, []int{10}, values)
	for _, v := range values {
		if v != 1.5 {
			t.Fatalf("Constant(1.5) gives %g", v)
		}
	}
}

func TestOrthogonalRowsAreOrthonormal(t *testing.T) {
	for _, dims := range [][]int{{1, 1}, {1, 5}, {3, 5}, {5, 5}, {7, 3}, {4, 1}} {
		t.Run(fmt.Sprint(dims), func(t *testing.T) {
			rows, columns := dims[0], dims[1]
			values := make([]float64, rows*columns)
			params.Orthogonal(rand.New(rand.NewPCG(3, 4)), dims, values)
			m := mat.NewDense(rows, columns, values)
			for i := range rows {
				for j := range i + 1 {
					if i/columns != j/columns {
						continue // more rows than columns: only each block is orthogonal
					}
					want := 0.0
					if i == j {
						want = 1
					}
					must.Near(t, mat.Dot(m.RowView(i), m.RowView(j)), want, 1e-13, "the product of rows %d and %d", i, j)
				}
			}
		})
	}
}

// The distribution is uniform over directions: every entry of a row of n has
// mean 0 and variance 1/n, which a QR factor with fixed signs would not have.
func TestOrthogonalIsUniform(t *testing.T) {
	const rows, columns, n = 2, 3, 10000
	rng := rand.New(rand.NewPCG(5, 6))
	entries := make([][]float64, rows*columns)
	for range n {
		values := make([]float64, rows*columns)
		params.Orthogonal(rng, []int{rows, columns}, values)
		for i, v := range values {
			entries[i] = append(entries[i], v)
		}
	}
	for i, samples := range entries {
		fixtures.CheckMoments(t, fmt.Sprintf("entry %d", i), samples, 0, 1.0/columns)
	}
}

func TestFromFloat64(t *testing.T) {
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
		tensor := fixtures.Tensor(dtype, fixtures.Matrix(1, 2, 0.5, -3))
		if got := fixtures.FromTensor(t, tensor).Values; tensor.DType() != dtype || !slices.Equal(got, []float64{0.5, -3}) {
			t.Errorf("%s: %v of type %s", dtype, got, tensor.DType())
		}
	}
	must.Panic(t, func() { params.FromFloat64(shapes.Make(dtypes.Float16, 2), []float64{1, 2}) }, "the type is Float16; it must be Float32 or Float64")
}

// What a variable holds comes as float64; one of whole numbers, or none, is named.
func TestValues(t *testing.T) {
	store := model.NewStore()
	store.VariableWithValue("/layer/weights", [][]float32{{1, 2}, {3, 4}})
	store.VariableWithValue("/layer/step", []int64{7})
	values, shape, err := params.Values(store, "/layer/weights")
	if err != nil || !slices.Equal(values, []float64{1, 2, 3, 4}) || !slices.Equal(shape.Dimensions, []int{2, 2}) {
		t.Errorf("%v of %v, %v", values, shape, err)
	}
	for _, path := range []string{"/layer/step", "/layer/none"} {
		_, _, err := params.Values(store, path)
		must.Err(t, err, path)
	}
}

// The bias starts within 1/sqrt(features), whatever the number of examples, and reaches nearly so far.
func TestBiasStart(t *testing.T) {
	store := model.NewStore()
	params.SetSeeds(store, 1)
	must.Get(model.CallOnce(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
		return params.Bias(s, x, 1000)
	}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(25, 4))))(t)
	values, _ := must.Get2(params.Values(store, "/bias"))(t)
	if least, most := slices.Min(values), slices.Max(values); least < -0.5 || most > 0.5 || least > -0.49 || most < 0.49 {
		t.Errorf("biases from %g to %g, want -0.5 to 0.5", least, most)
	}
}
