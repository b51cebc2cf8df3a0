package layertest

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// A source is one of the two places where noise is drawn.
type source struct {
	name string
	// of returns the source for the given seeds, one for each replica, and what is
	// to be called between executions.
	of func(seeds ...uint64) (stochastic.NoiseSource, func() error)
}

var sources = []source{
	{"host", func(seeds ...uint64) (stochastic.NoiseSource, func() error) {
		host := stochastic.NewHostSampler(seeds[0])
		if len(seeds) > 1 {
			host = stochastic.NewReplicatedHostSampler(seeds)
		}
		noise := host.NewBuffers()
		return noise, noise.Refresh
	}},
	{"graph", func(...uint64) (stochastic.NoiseSource, func() error) {
		return stochastic.InGraph{}, func() error { return nil }
	}},
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(17, 19)) }

// A part is something that a layer gives: its output, or what it adds to the layer losses.
type part struct {
	name string
	of   func(y *graph.Node, losses *stochastic.LayerLosses) *graph.Node
	dims func(g geometry) []int
}

var parts = []part{
	{"output", func(y *graph.Node, _ *stochastic.LayerLosses) *graph.Node { return y }, func(g geometry) []int { return g.out }},
	{"KL", func(_ *graph.Node, losses *stochastic.LayerLosses) *graph.Node { return losses.KL }, func(g geometry) []int {
		return slices.Concat(g.lead, []int{1, 1})
	}},
	{"log-likelihood", func(_ *graph.Node, losses *stochastic.LayerLosses) *graph.Node { return losses.LogLikelihood }, geometry.eachExample},
	{"energy", func(_ *graph.Node, losses *stochastic.LayerLosses) *graph.Node {
		if len(losses.Energies) == 0 {
			return nil
		}
		return losses.Energies[0]
	}, geometry.eachExample},
}

// partsOf are the parts that a layer with output y gives.
func partsOf(y *graph.Node) (has []part, nodes []*graph.Node) {
	for _, p := range parts {
		if node := p.of(y, stochastic.LayerLossesOf(y.Graph())); node != nil {
			has, nodes = append(has, p), append(nodes, node)
		}
	}
	return has, nodes
}

// eachExample is the shape of one number for each example.
func (g geometry) eachExample() []int { return slices.Concat(g.lead, []int{g.batch, 1}) }

// checkShapes builds new layers in both precisions.
func (f family) checkShapes(t testing.TB, g geometry) {
	for _, dtype := range []dtypes.DType{dtypes.Float64, dtypes.Float32} {
		var has []part
		seeds := []uint64{1}
		if len(g.lead) > 0 {
			seeds = make([]uint64, g.lead[0])
		}
		noise, _ := sources[0].of(seeds...)
		results := fresh(t, dtype, g.input(), seeds, func(s *model.Scope, x *graph.Node) []*graph.Node {
			stochastic.SetNoiseSource(x.Graph(), noise)
			var outputs []*graph.Node
			has, outputs = partsOf(g.layer(s, x))
			return outputs
		})
		for i, p := range has {
			if got, want := results[i].Dims, p.dims(g); !slices.Equal(got, want) || results[i].DType != dtype {
				t.Errorf("%s of inputs %v: %s%v, want %s%v", p.name, g.x, results[i].DType, got, dtype, want)
			}
			if slices.ContainsFunc(results[i].Values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
				t.Errorf("%s of inputs %v: %.4g has entries that are not finite", p.name, g.x, results[i].Values)
			}
		}
	}
}

// typed is an array and the type of its tensor.
type typed struct {
	fixtures.Array
	DType dtypes.DType
}

// fresh executes a function once, in a new store whose parameters start as the seeds say.
func fresh(t testing.TB, dtype dtypes.DType, x fixtures.Array, seeds []uint64, f func(s *model.Scope, x *graph.Node) []*graph.Node) []typed {
	t.Helper()
	store := model.NewStore()
	params.SetSeeds(store, seeds...)
	must.Do(t, store.SetRNGStateFromSeed(int64(seeds[0])))
	results, err := model.CallOnceN(fixtures.Backend(t), store, func(root *model.Scope, in []*graph.Node) []*graph.Node {
		defer nets.PanicWithError("building the graph")
		return f(root, in[0])
	}, fixtures.Tensor(dtype, x))
	if err != nil {
		t.Fatal(nets.Cause(err))
	}
	var out []typed
	for _, r := range results {
		out = append(out, typed{fixtures.FromTensor(t, r), r.DType()})
	}
	return out
}

// singlePrecision is the largest error relative to an entry, or to 1
// if it is smaller: a KL near 0 is a difference of terms near 1.
const singlePrecision = 2e-5

// checkPrecision compares all parts in both precisions, at the same parameters and noise.
func checkPrecision(t testing.TB, g geometry) {
	values, noise := fixtures.Explore(t, fixtures.Values{"x": g.input()}, g.function)
	var has []part
	of := func(dtype dtypes.DType) []fixtures.Array {
		return fixtures.Evaluate(t, dtype, values, noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			var outputs []*graph.Node
			has, outputs = partsOf(g.layer(s, in["x"]))
			return outputs
		})
	}
	single, double := of(dtypes.Float32), of(dtypes.Float64)
	for i, p := range has {
		if s, d := single[i].Values, double[i].Values; !floats.EqualApprox(s, d, singlePrecision) {
			t.Errorf("%s in single precision: an error of %.2g, of entries up to %.2g", p.name, floats.Distance(s, d, math.Inf(1)), floats.Norm(d, math.Inf(1)))
		}
	}
}

// checkNeighbours compares what f gives for each example of x in the company of copies
// of a second one with what it gives in the company of copies of a third. The examples are
// along the same axis of x and of the output.
func checkNeighbours(t testing.TB, x fixtures.Array, axis int, f func(s *model.Scope, in fixtures.Nodes) *graph.Node) {
	t.Helper()
	values, noise := fixtures.Explore(t, fixtures.Values{"x": x}, f)
	n := x.Dims[axis]
	var has []part
	compiled := fixtures.Compile(t, dtypes.Float64, values, fixtures.Replay(noise), func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		var outputs []*graph.Node
		has, outputs = partsOf(f(s, in))
		return outputs
	})
	for i := range n {
		var results [2][]fixtures.Array
		for k := range results {
			values["x"] = company(x, axis, i, (i+1+k)%n)
			results[k] = compiled.Call(values)
		}
		for p, part := range has {
			along := axis
			switch part.name {
			case "KL":
				continue
			case "log-likelihood", "energy":
				along = 0
			}
			difference, largest := 0.0, 1e-300
			if results[0][p].Dims[along] != n {
				continue // which the check of shapes finds
			}
			size := stride(results[0][p], along)
			for e, v := range results[0][p].Values {
				if e/size%n == i {
					difference = max(difference, math.Abs(v-results[1][p].Values[e]))
					largest = max(largest, math.Abs(v))
				}
			}
			if !(difference <= 1e-10*largest) {
				t.Errorf("the %s for example %d changes by %.2g of its size with the other examples of the batch: some operation mixes the examples", part.name, i, difference/largest)
			}
		}
	}
}

// company is x with all examples but i replaced by the other one.
func company(x fixtures.Array, axis, i, other int) fixtures.Array {
	y, size := fixtures.Zeros(x.Dims...), stride(x, axis)
	for e := range y.Values {
		example := e / size % x.Dims[axis]
		from := other
		if example == i {
			from = i
		}
		y.Values[e] = x.Values[e+(from-example)*size]
	}
	return y
}

// stride is the distance of neighbours along an axis in the values of an array.
func stride(a fixtures.Array, axis int) int {
	size := 1
	for _, d := range a.Dims[axis+1:] {
		size *= d
	}
	return size
}

// checkKL evaluates the KL at the start and at random parameters.
func (f family) checkKL(t testing.TB) {
	g := f.geometries[0]
	noise, _ := sources[0].of(1)
	hasKL := false
	kl := func(s *model.Scope, x *graph.Node) []*graph.Node {
		y := g.layer(s, x)
		kl := stochastic.LayerLossesOf(y.Graph()).KL
		if hasKL = kl != nil; hasKL {
			return []*graph.Node{kl, y} // the Go backend fails on graphs whose last node is not an output
		}
		return []*graph.Node{y}
	}
	start := fresh(t, dtypes.Float64, g.input(), []uint64{1}, func(s *model.Scope, x *graph.Node) []*graph.Node {
		stochastic.SetNoiseSource(x.Graph(), noise)
		return kl(s, x)
	})[0]
	if !hasKL {
		return
	}
	values, _ := fixtures.Explore(t, fixtures.Values{"x": g.input()}, g.function)
	at := func(x fixtures.Array) fixtures.Array {
		values["x"] = x
		return fixtures.Compile(t, dtypes.Float64, values, stochastic.InGraph{}, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			return kl(s, in["x"])
		}).Call(values)[0]
	}
	few := at(f.copies(g, 1))
	fixtures.Compare(t, "KL of a larger batch", at(f.copies(g, 5)), few, 1e-12)
	if f.RelativeKL {
		return
	}
	for _, c := range []struct {
		when string
		kl   fixtures.Array
	}{{"at the start", start.Array}, {"at random parameters", few}} {
		if v := slices.Min(c.kl.Values); v < -1e-10 {
			t.Errorf("%s the KL is %g; a divergence is not negative", c.when, v)
		}
	}
}

// copies are n copies of one example of a layer without replicas.
func (f family) copies(g geometry, n int) fixtures.Array {
	if f.images {
		dims := slices.Clone(g.x)
		dims[1] = 1
		return copies(fixtures.Random(newRand(), dims...), n)
	}
	return fixtures.Matrix(n, g.x[1], fixtures.Random(newRand(), 1, g.x[1]).Repeated(n).Values...)
}

// checkNoise executes a layer at fixed parameters, several times.
func (f family) checkNoise(t testing.TB, s source) {
	g := f.geometries[0]
	x := f.copies(g, noiseCopies)
	values, _ := fixtures.Explore(t, fixtures.Values{"x": x}, g.function)
	values["x"] = x
	drawn := func(seed uint64) (first, second []float64, dims []int) {
		noise, refresh := s.of(seed)
		layer := fixtures.Compile(t, dtypes.Float64, values, noise, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{g.layer(s, in["x"])}
		})
		layer.Seed(seed)
		y := layer.Call(values)[0]
		must.Do(t, refresh())
		return y.Values, layer.Call(values)[0].Values, y.Dims
	}
	first, second, dims := drawn(1)
	firstAgain, secondAgain, _ := drawn(1)
	other, _, _ := drawn(2)
	if f.Deterministic {
		if !slices.Equal(first, second) || !slices.Equal(first, other) {
			t.Error("the output of a deterministic layer changes from one execution to the next")
		}
		return
	}
	if slices.Equal(first, second) {
		t.Error("two executions have the same noise; it is not drawn anew")
	}
	if !slices.Equal(first, firstAgain) || !slices.Equal(second, secondAgain) {
		t.Error("the same seed gives different noise; draw it by stochastic.Draw")
	}
	if slices.Equal(first, other) {
		t.Error("two seeds give the same noise")
	}
	if shared := f.equalExamples(fixtures.Array{Values: first, Dims: dims}); shared != f.SharedNoise {
		t.Errorf("copies of an example have the same output: %t; want %t", shared, f.SharedNoise)
	}
}

// noiseCopies is so many that not all have the same noise by chance, which for two
// copies and a dropout mask of three features happens once in seven times.
const noiseCopies = 16

// equalExamples says whether all examples of a batch have the same output.
func (f family) equalExamples(y fixtures.Array) bool {
	rows := [][]float64{y.Values} // each holds all examples, one after the other
	if f.images {
		rows = slices.Collect(slices.Chunk(y.Values, len(y.Values)/y.Dims[0]))
	}
	return !slices.ContainsFunc(rows, func(row []float64) bool {
		size := len(row) / noiseCopies
		return !slices.Equal(row[size:], row[:len(row)-size])
	})
}

// checkMoments compares the moments of the output for one example with those stated.
func (f family) checkMoments(t testing.TB, s source) {
	g := f.moments
	values, _ := fixtures.Explore(t, fixtures.Values{"x": f.copies(g, 1)}, g.function)
	values["x"] = f.copies(g, 1)
	mean, variance := f.Moments(t, values)
	samples := f.sample(t, g, s, values)
	if len(mean) != len(samples) || len(variance) != len(samples) {
		t.Fatalf("%d means and %d variances are stated of %d entries of the output", len(mean), len(variance), len(samples))
	}
	for i, of := range samples {
		if f.Deterministic {
			near := func(v float64) bool { return scalar.EqualWithinAbsOrRel(v, mean[i], roundingOfMean, roundingOfMean) }
			if variance[i] != 0 || !near(floats.Max(of)) || !near(floats.Min(of)) {
				t.Errorf("entry %d of the output is %g to %g; the stated mean is %g, and the variance, which must be 0 of a deterministic family, %g",
					i, floats.Min(of), floats.Max(of), mean[i], variance[i])
			}
			continue
		}
		ofMean, ofVariance := fixtures.Scores(of, mean[i], variance[i])
		if !(math.Abs(ofMean) < maxZ && math.Abs(ofVariance) < maxZ) {
			t.Errorf("entry %d of the output: z-scores of mean and variance are %.2f and %.2f for mean %g and variance %g; %d draws have %g and %g",
				i, ofMean, ofVariance, mean[i], variance[i], len(of), stat.Mean(of, nil), stat.Variance(of, nil))
		}
	}
	if !f.SharedNoise && !f.Deterministic {
		of := samples[0]
		fixtures.CheckUncorrelated(t, "noise of two examples", of[1:], of[:len(of)-1])
	}
}

// roundingOfMean is how far an output without noise may be from its mean, in single precision.
const roundingOfMean = 5e-5

// maxZ bounds the z-scores of the entries' moments. A right family, which has up
// to 48 of them, exceeds 5 standard errors once in 36,000.
const maxZ = 5

// draws is the number of samples of the output. It shows an error of 4 percent
// of a variance, and of 3 percent of a standard deviation in the mean.
const draws = 32000

// sample returns draws of each entry of the output for one example: as copies in
// a batch, or where one draw serves a batch, as replicas or as executions.
func (f family) sample(t testing.TB, g geometry, s source, values fixtures.Values) [][]float64 {
	t.Helper()
	layer := func(s *model.Scope, in fixtures.Nodes) []*graph.Node { return []*graph.Node{g.function(s, in)} }
	at := maps.Clone(values)
	if !f.SharedNoise {
		at["x"] = f.copies(g, draws)
		noise, _ := s.of(1)
		return f.entries(fixtures.Compile(t, dtypes.Float64, at, noise, layer).Call(at)[0], draws)
	}
	seeds, executions := []uint64{1}, draws/8
	if !f.images && !f.NoReplicas {
		seeds, executions = make([]uint64, draws), 1
		for i := range seeds {
			seeds[i] = uint64(i)
		}
		for name, a := range values {
			at[name] = a.Repeated(draws)
		}
	}
	noise, refresh := s.of(seeds...)
	compiled := fixtures.Compile(t, dtypes.Float64, at, noise, layer)
	var all [][]float64
	for i := range executions {
		must.Do(t, refresh())
		for k, of := range f.entries(compiled.Call(at)[0], len(seeds)) {
			if i == 0 {
				all = append(all, nil)
			}
			all[k] = append(all[k], of...)
		}
	}
	return all
}

// entries are the values of each entry of one example's output, of n examples.
func (f family) entries(y fixtures.Array, n int) [][]float64 {
	size := len(y.Values) / n
	all := make([][]float64, size)
	for k := range all {
		if f.images {
			positions := size / y.Dims[0]
			all[k] = y.Pixel(k/positions, k%positions)
		} else {
			all[k] = y.Column(k)
		}
	}
	return all
}

// Gradients compares the gradients of a layer's output, KL, log-likelihood and
// energy, where it has them, with central finite differences in double
// precision, with respect to the input x and all trained parameters.
func Gradients(t testing.TB, x fixtures.Array, layer func(s *model.Scope, x *graph.Node) *graph.Node) {
	t.Helper()
	for _, p := range parts {
		hasPart := true
		f := func(s *model.Scope, in fixtures.Nodes) *graph.Node {
			y := layer(s, in["x"])
			of := p.of(y, stochastic.LayerLossesOf(y.Graph()))
			if hasPart = of != nil; hasPart {
				return of
			}
			return y
		}
		inputs := fixtures.Values{"x": x}
		values, noise := fixtures.Explore(t, inputs, f)
		if hasPart {
			wrt := append(fixtures.Trained(t, inputs, f), "x")
			run(t, p.name, func(t testing.TB) { fixtures.CheckGradient(t, values, noise, f, wrt...) })
		}
	}
}

// checkReplicas compares a batch of replicas with the layers that their seeds give alone.
func checkReplicas(t testing.TB, layers nets.Layers, features int) {
	seeds := []uint64{3, 1, 4}
	const batch, units = 5, 3
	x := fixtures.Random(rand.New(rand.NewPCG(23, 29)), len(seeds), batch, features)
	of := func(x fixtures.Array, host *stochastic.HostSampler, seeds ...uint64) []typed {
		return fresh(t, dtypes.Float64, x, seeds, func(s *model.Scope, x *graph.Node) []*graph.Node {
			stochastic.SetNoiseSource(x.Graph(), host.NewBuffers())
			_, outputs := partsOf(dense(layers, s, x, units))
			return outputs
		})
	}
	together := of(x, stochastic.NewReplicatedHostSampler(seeds), seeds...)
	for r, seed := range seeds {
		part := fixtures.Matrix(batch, features, x.Values[r*batch*features:(r+1)*batch*features]...)
		for i, want := range of(part, stochastic.NewHostSampler(seed), seed) {
			if !slices.Equal(together[i].Dims, append([]int{len(seeds)}, want.Dims...)) {
				t.Fatalf("%d-th result has shape %v with replicas, %v alone", i, together[i].Dims, want.Dims)
			}
			size := len(want.Values)
			got := fixtures.Array{Values: together[i].Values[r*size : (r+1)*size], Dims: want.Dims}
			fixtures.Compare(t, fmt.Sprintf("replica %d, result %d", r, i), got, want.Array, 1e-13)
		}
	}
}

// copies are n copies of one image, [channels, 1, height, width], as a batch.
func copies(x fixtures.Array, n int) fixtures.Array {
	batch := fixtures.Array{Values: x.Repeated(n).Values, Dims: []int{n, x.Dims[0], x.Dims[2], x.Dims[3]}}
	return batch.ChannelsFirst()
}
