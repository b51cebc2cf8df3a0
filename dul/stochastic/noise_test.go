package stochastic_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment/must"
)

// executions draws noise of 4 replicas, [4, rows, columns], in successive executions
// of one graph, by the host or in the graph.
func executions(t *testing.T, host bool, dtype dtypes.DType, d stochastic.Distribution, count, rows, columns int) []fixtures.Array {
	t.Helper()
	var source stochastic.NoiseSource = stochastic.InGraph{}
	var buffers *stochastic.NoiseBuffers
	if host {
		buffers = stochastic.NewReplicatedHostSampler([]uint64{1, 2, 3, 4}).NewBuffers()
		source = buffers
	}
	like := fixtures.Values{"x": fixtures.Zeros(4, 1, 1)}
	c := fixtures.Compile(t, dtype, like, source, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{stochastic.Draw(s, in["x"], d, rows, columns)}
	})
	var out []fixtures.Array
	for i := range count {
		if host && i > 0 {
			must.Do(t, buffers.Refresh())
		}
		out = append(out, c.Call(like)[0])
	}
	return out
}

// single is a distribution that wrongly draws one number for all entries.
type single struct{}

func (single) Sample(b stochastic.Base) *graph.Node { return graph.ReduceAllMean(b.Normal()) }

// Noise of a shape that would be broadcast is refused.
func TestNoiseOfAnotherShape(t *testing.T) {
	must.GetErr(model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		return stochastic.Draw(s, x, single{}, 2, 3)
	}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(2, 3))))(t, "single has shape (Float64), want (Float64)[2, 3]")
}

// laplace is a distribution as a user writes it.
type laplace struct{}

func (laplace) Sample(b stochastic.Base) *graph.Node {
	exponential := func() *graph.Node { return graph.Neg(graph.Log(graph.OneMinus(b.Uniform()))) }
	return graph.Sub(exponential(), exponential())
}

// Draws of a distribution have its moments, and are independent of each other and of other replicas and executions. Equally many lie in
// each of twenty intervals of equal probability, also without moments. The fourth moment is right; its standard error comes from the
// eighth. Squares of pairs of entries are uncorrelated. They would not be if an output of a Box-Muller transform had the wrong radius.
func TestDistributions(t *testing.T) {
	const rows, columns, intervals = 101, 99, 20 // an odd number of entries
	nan := math.NaN()
	for _, known := range []struct {
		name           string
		d              stochastic.Distribution
		mean, variance float64 // NaN if they, or their errors, are not finite
		cdf            func(x float64) float64
		fourth, eighth float64 // moments, 0 if not finite
	}{
		{"Gaussian", stochastic.Gaussian(), 0, 1, distuv.UnitNormal.CDF, 3, 105},
		{"Uniform01", stochastic.Uniform01(), 0.5, 1.0 / 12, distuv.UnitUniform.CDF, 1.0 / 5, 1.0 / 9},
		{"DropoutMask", stochastic.DropoutMask(0.3), 1, 0.3 / 0.7, nil, 0, 0},
		{"StudentT 0.7", stochastic.StudentT{Nu: 0.7}, nan, nan, studentT(0.7, 1).CDF, 0, 0},
		{"StudentT 2.5", stochastic.StudentT{Nu: 2.5}, nan, nan, studentT(2.5, 1).CDF, 0, 0},
		{"StudentT 2.5, UnitVariance", stochastic.StudentT{Nu: 2.5, UnitVariance: true}, nan, nan, studentT(2.5, math.Sqrt(0.5/2.5)).CDF, 0, 0},
		{"StudentT 9.5", stochastic.StudentT{Nu: 9.5}, 0, 9.5 / 7.5, studentT(9.5, 1).CDF, 0, 0},
		{"StudentT 9.5, UnitVariance", stochastic.StudentT{Nu: 9.5, UnitVariance: true}, 0, 1, studentT(9.5, math.Sqrt(7.5/9.5)).CDF, 0, 0},
		// Moments of t with nu: 3 nu^2 / ((nu-2)(nu-4)) and 105 nu^4 / ((nu-2)(nu-4)(nu-6)(nu-8)).
		{"StudentT 14", stochastic.StudentT{Nu: 14}, 0, 14 / 12.0, studentT(14, 1).CDF, 3 * 196 / 120.0, 105 * 38416 / 5760.0},
		{"a distribution of your own", laplace{}, 0, 2, distuv.Laplace{Scale: 1}.CDF, 24, 40320},
	} {
		for _, host := range []bool{true, false} {
			for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
				t.Run(fmt.Sprintf("%s/host=%t/%s", known.name, host, dtype), func(t *testing.T) {
					draws := executions(t, host, dtype, known.d, 3, rows, columns)
					var all []float64
					for i, draw := range draws {
						all = append(all, draw.Values...)
						if math.IsNaN(known.mean) {
							continue
						}
						replicas := slices.Collect(slices.Chunk(draw.Values, rows*columns))
						for r, replica := range replicas {
							what := fmt.Sprintf("execution %d, replica %d", i, r)
							fixtures.CheckMoments(t, what, replica, known.mean, known.variance)
							fixtures.CheckUncorrelated(t, what+" and the next entry", replica[1:], replica[:len(replica)-1])
							for s := range r {
								fixtures.CheckUncorrelated(t, fmt.Sprintf("%s and replica %d", what, s), replica, replicas[s])
							}
						}
						if i > 0 {
							fixtures.CheckUncorrelated(t, fmt.Sprintf("executions %d and %d", i-1, i), draws[i-1].Values, draw.Values)
						}
					}
					if !math.IsNaN(known.mean) {
						fixtures.CheckMoments(t, "all", all, known.mean, known.variance)
					}
					if known.cdf == nil {
						return
					}
					n := float64(len(all))
					counts, expected := make([]float64, intervals), slices.Repeat([]float64{n / intervals}, intervals)
					fourth := 0.0
					for _, x := range all {
						counts[min(int(intervals*known.cdf(x)), intervals-1)]++
						fourth += x * x * x * x / n
					}
					must.Z(t, (stat.ChiSquare(counts, expected)-(intervals-1))/math.Sqrt(2*(intervals-1)), "%v draws in %d intervals of equal probability", counts, intervals)
					if known.fourth > 0 {
						must.Z(t, (fourth-known.fourth)/math.Sqrt((known.eighth-known.fourth*known.fourth)/n), "the fourth moment is %g, want %g", fourth, known.fourth)
					}
					squares := executions(t, host, dtype, known.d, 1, 100, 100)[0].Values
					for i, x := range squares {
						squares[i] = min(x*x, 100) // so that the squares have a variance
					}
					half := len(squares) / 2
					fixtures.CheckUncorrelated(t, "squares of both halves of an execution", squares[:half], squares[half:])
				})
			}
		}
	}
}

// studentT is the distribution of a scaled Student t.
func studentT(nu, scale float64) distuv.StudentsT { return distuv.StudentsT{Nu: nu, Sigma: scale} }

// badMask is a distribution that asks for what there is not.
type badMask struct{}

func (badMask) Sample(b stochastic.Base) *graph.Node { return b.Mask(0) }

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		d    func() stochastic.Distribution
		n    stochastic.NoiseSource
		want string
	}{
		{"other replicas", stochastic.Gaussian, stochastic.NewReplicatedHostSampler([]uint64{1, 2}).NewBuffers(), "2 replicas"},
		{"mask of nothing", func() stochastic.Distribution { return badMask{} }, stochastic.InGraph{}, "probability 0"},
		{"StudentT without Nu", func() stochastic.Distribution { return stochastic.StudentT{} }, stochastic.InGraph{}, "degrees of freedom"},
		{"StudentT, Nu NaN", func() stochastic.Distribution { return stochastic.StudentT{Nu: math.NaN()} }, stochastic.InGraph{}, "degrees of freedom"},
		{"StudentT without a variance", func() stochastic.Distribution { return stochastic.StudentT{Nu: 2, UnitVariance: true} },
			stochastic.InGraph{}, "UnitVariance"},
		{"dropout rate below 0", func() stochastic.Distribution { return stochastic.DropoutMask(-0.1) }, stochastic.InGraph{}, "dropout rate"},
		{"dropout rate 1", func() stochastic.Distribution { return stochastic.DropoutMask(1) }, stochastic.InGraph{}, "dropout rate"},
		{"dropout rate NaN", func() stochastic.Distribution { return stochastic.DropoutMask(math.NaN()) }, stochastic.InGraph{}, "dropout rate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.GetErr(model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
				stochastic.SetNoiseSource(x.Graph(), c.n)
				return stochastic.Draw(s, x, c.d(), 2, 2)
			}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(3, 1, 1))))(t, c.want)
		})
	}
}

// A source that is put where another one was goes on with its draws, in a graph
// of its own.
func TestHostGoesOnFromItsState(t *testing.T) {
	seeds := []uint64{5, 6}
	like := fixtures.Values{"x": fixtures.Zeros(2, 1, 1)}
	draws := func(h *stochastic.HostSampler, count int) []float64 {
		t.Helper()
		buffers := h.NewBuffers()
		c := fixtures.Compile(t, dtypes.Float32, like, buffers, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{
				stochastic.Draw(s, in["x"], stochastic.Gaussian(), 3, 5),
				stochastic.Draw(s, in["x"], stochastic.DropoutMask(0.3), 7, 1),
			}
		})
		var all []float64
		for i := range count {
			if i > 0 {
				must.Do(t, buffers.Refresh())
			}
			for _, draw := range c.Call(like) {
				all = append(all, draw.Values...)
			}
		}
		return all
	}

	uninterrupted := draws(stochastic.NewReplicatedHostSampler(seeds), 4)

	first := stochastic.NewReplicatedHostSampler(seeds)
	got := draws(first, 1)
	state := must.Get(first.State())(t)
	second := stochastic.NewReplicatedHostSampler([]uint64{0, 0})
	must.Do(t, second.SetState(state))
	if got = append(got, draws(second, 3)...); !slices.Equal(got, uninterrupted) {
		t.Error("the noise of a source that was stopped and put back differs from that of one that was not")
	}
}

func TestHostRefusesOtherStates(t *testing.T) {
	host := stochastic.NewReplicatedHostSampler([]uint64{1, 2})
	before := must.Get(host.State())(t)
	other := must.Get(stochastic.NewReplicatedHostSampler([]uint64{3, 4}).State())(t)
	damagedLast := slices.Concat(other[:len(other)/2], bytes.Repeat([]byte("x"), len(other)/2))
	for name, state := range map[string][]byte{
		"none":            nil,
		"cut short":       other[:len(other)-1],
		"of one replica":  other[:len(other)/2],
		"damaged in part": damagedLast,
	} {
		t.Run(name, func(t *testing.T) {
			must.Err(t, host.SetState(state))
			after := must.Get(host.State())(t)
			if !bytes.Equal(before, after) {
				t.Error("a refused state moved the streams")
			}
		})
	}
}

// Results were kept of these draws.
func TestHostDrawsStay(t *testing.T) {
	for _, c := range []struct {
		of   stochastic.Distribution
		want []float64
		sum  float64 // of 10,001 draws
	}{
		{stochastic.Uniform01(), []float64{0.16895490884780884, 0.2743074297904968, 0.4913180470466614}, 5005.077787280083},
		{stochastic.Gaussian(), []float64{0.640190064907074, 1.1375696659088135, 0.8297821283340454}, -31.53554940964318},
		{stochastic.DropoutMask(0.3), []float64{1.4285714626312256, 1.4285714626312256, 1.4285714626312256}, 9952.857380151749},
	} {
		like := fixtures.Values{"x": fixtures.Zeros(1, 1)}
		got := fixtures.Compile(t, dtypes.Float32, like, stochastic.NewHostSampler(7).NewBuffers(), func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{stochastic.Draw(s, in["x"], c.of, 1, 10001)}
		}).Call(like)[0].Values
		sum := 0.0
		for _, v := range got {
			sum += v
		}
		if !slices.Equal(got[:3], c.want) || sum != c.sum {
			t.Errorf("%T: drew %v, and %v in all, want %v and %v", c.of, got[:3], sum, c.want, c.sum)
		}
	}
}

// seeded are the draws of a graph for so many examples, from sample and example on: by rows, by columns, and shared.
func seeded(t *testing.T, dtype dtypes.DType, seed uint64, replicas []uint64, examples, copies, sample, example int) []fixtures.Array {
	t.Helper()
	replicated := len(replicas) > 1
	lead := []int{}
	if replicated {
		lead = append(lead, len(replicas))
	}
	source := stochastic.NewSeeded(seed, replicas, replicated)
	draw := func(n, copies int) func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		return func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			var out []*graph.Node
			for range copies {
				out = append(out, stochastic.Draw(s, in["x"], stochastic.Uniform01(), n, 2), // a row for each example
					stochastic.Draw(s, in["x"], stochastic.Gaussian(), 2, 3*n), // three columns for each
					stochastic.Draw(s, in["x"], stochastic.DropoutMask(0.5), 4, 5))
			}
			return out
		}
	}
	like := fixtures.Values{"x": fixtures.Zeros(append(lead, 1, 1)...)}
	fixtures.Compile(t, dtype, like, source.Trace(examples+1), draw(examples+1, 1)).Call(like)
	buffers := source.NewBuffers(copies)
	source.StartAt(sample, example)
	c := fixtures.Compile(t, dtype, like, buffers, draw(examples, copies))
	out := c.Call(like)
	must.Do(t, buffers.Refresh())
	if again := c.Call(like); fmt.Sprint(again) != fmt.Sprint(out) {
		t.Errorf("a second execution at the same place draws %v, the first %v", again, out)
	}
	return out
}

// An example gets the same noise for a sample in every graph, and every draw differs.
func TestSeededDraws(t *testing.T) {
	all := seeded(t, dtypes.Float64, 7, []uint64{1}, 5, 2, 10, 20)
	seen := map[string]bool{}
	for k := range 2 {
		for e := range 5 {
			one := seeded(t, dtypes.Float64, 7, []uint64{1}, 1, 1, 10+k, 20+e)
			got := all[3*k].Values[2*e : 2*e+2]
			if !slices.Equal(got, one[0].Values) {
				t.Errorf("sample %d, example %d, by rows: %v, alone %v", k, e, got, one[0].Values)
			}
			wide := all[3*k+1].Values
			columns := slices.Concat(wide[3*e:3*e+3], wide[15+3*e:15+3*e+3])
			if !slices.Equal(columns, one[1].Values) {
				t.Errorf("sample %d, example %d, by columns: %v, alone %v", k, e, columns, one[1].Values)
			}
			if !slices.Equal(all[3*k+2].Values, one[2].Values) {
				t.Errorf("sample %d, shared: %v, alone %v", k, all[3*k+2].Values, one[2].Values)
			}
			for _, values := range [][]float64{got, columns} {
				if key := fmt.Sprint(values); seen[key] {
					t.Errorf("sample %d, example %d: %v was drawn before", k, e, values)
				} else {
					seen[key] = true
				}
			}
		}
	}
	if slices.Equal(all[2].Values, all[5].Values) {
		t.Error("two samples share their noise")
	}
	// Replicas by their seeds, and the seed.
	two := seeded(t, dtypes.Float64, 7, []uint64{2, 1}, 5, 2, 10, 20)
	for i, draw := range all {
		half := len(draw.Values)
		if !slices.Equal(two[i].Values[half:], draw.Values) || slices.Equal(two[i].Values[:half], draw.Values) {
			t.Errorf("draw %d of replicas: %v, alone %v", i, two[i].Values, draw.Values)
		}
	}
	if other := seeded(t, dtypes.Float64, 8, []uint64{1}, 5, 2, 10, 20); slices.Equal(other[0].Values, all[0].Values) {
		t.Error("another seed draws the same")
	}
	// As it was in the first version: results may have been kept by their seed.
	want := []float64{0.04438984394073486, 0.9869266748428345}
	if got := seeded(t, dtypes.Float32, 7, []uint64{1}, 1, 1, 0, 0)[0].Values; !slices.Equal(got, want) {
		t.Errorf("the first draw is %v, want %v", got, want)
	}
}
