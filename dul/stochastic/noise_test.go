package stochastic_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/internal/fixtures"
	"densityuncertainty/dul/stochastic"
)

// executions draws noise of 4 replicas, [4, rows, columns], in successive executions
// of one graph, by the host or in the graph.
func executions(t *testing.T, host bool, dtype dtypes.DType, d stochastic.Distribution, count, rows, columns int) []fixtures.Array {
	t.Helper()
	var source stochastic.Noise = stochastic.InGraph{}
	var sheet *stochastic.Sheet
	if host {
		sheet = stochastic.NewReplicatedHost([]uint64{1, 2, 3, 4}).NewSheet()
		source = sheet
	}
	like := fixtures.Values{"x": fixtures.Zeros(4, 1, 1)}
	c := fixtures.Compile(t, dtype, like, source, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
		return []*graph.Node{stochastic.Draw(s, in["x"], d, rows, columns)}
	})
	var out []fixtures.Array
	for i := range count {
		if host && i > 0 {
			if err := sheet.Refresh(); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, c.Call(like)[0])
	}
	return out
}

func TestNoiseMomentsAndIndependence(t *testing.T) {
	const rows, columns = 101, 99 // an odd number of entries
	for _, known := range []struct {
		name           string
		d              stochastic.Distribution
		mean, variance float64
	}{
		{"Gaussian", stochastic.Gaussian(), 0, 1},
		{"Uniform01", stochastic.Uniform01(), 0.5, 1.0 / 12},
		{"DropoutMask", stochastic.DropoutMask(0.3), 1, 0.3 / 0.7},
	} {
		for _, host := range []bool{true, false} {
			for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
				t.Run(fmt.Sprintf("%s/host=%t/%s", known.name, host, dtype), func(t *testing.T) {
					draws := executions(t, host, dtype, known.d, 3, rows, columns)
					var all []float64
					for i, draw := range draws {
						all = append(all, draw.Values...)
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
					fixtures.CheckMoments(t, "all", all, known.mean, known.variance)
				})
			}
		}
	}
}

// The shape of the Gaussian: its fourth moment is 3, with standard error
// sqrt((105 - 9)/n) as E z^8 = 105, and pairs of entries are independent also
// in their squares.
func TestGaussianShape(t *testing.T) {
	for _, host := range []bool{true, false} {
		draw := executions(t, host, dtypes.Float64, stochastic.Gaussian(), 1, 100, 100)[0]
		n := float64(len(draw.Values))
		fourth := 0.0
		squares := make([]float64, len(draw.Values))
		for i, z := range draw.Values {
			squares[i] = z * z
			fourth += z * z * z * z / n
		}
		if z := (fourth - 3) / math.Sqrt(96/n); math.Abs(z) > fixtures.MaxZ {
			t.Errorf("host=%t: the fourth moment is %g, z-score %.2f", host, fourth, z)
		}
		half := len(squares) / 2
		fixtures.CheckUncorrelated(t, fmt.Sprintf("host=%t: squares of both halves", host), squares[:half], squares[half:])
	}
}

// The statistics tell the noise of the released code from the paper's: uniform
// noise, also when it is centred, fails the Gaussian's check.
func TestUniformNoiseFailsTheGaussianCheck(t *testing.T) {
	draw := executions(t, true, dtypes.Float64, stochastic.Uniform01(), 1, 50, 50)[0]
	ofMean, ofVariance := fixtures.Scores(draw.Values, 0, 1)
	if math.Abs(ofMean) < 10*fixtures.MaxZ || math.Abs(ofVariance) < 10*fixtures.MaxZ {
		t.Errorf("z-scores of uniform noise as Gaussian are only %.1f and %.1f", ofMean, ofVariance)
	}
	centred := make([]float64, len(draw.Values))
	for i, u := range draw.Values {
		centred[i] = u - 0.5
	}
	ofMean, ofVariance = fixtures.Scores(centred, 0, 1)
	if math.Abs(ofMean) > fixtures.MaxZ || math.Abs(ofVariance) < 10*fixtures.MaxZ {
		t.Errorf("z-scores of centred uniform noise as Gaussian are %.1f and %.1f", ofMean, ofVariance)
	}
}

func TestUniformAndMaskValues(t *testing.T) {
	for _, host := range []bool{true, false} {
		for _, u := range executions(t, host, dtypes.Float32, stochastic.Uniform01(), 1, 50, 50)[0].Values {
			if u < 0 || u > 1 {
				t.Fatalf("host=%t: uniform noise %g is outside [0, 1]", host, u)
			}
		}
		for _, m := range executions(t, host, dtypes.Float64, stochastic.DropoutMask(0.25), 1, 50, 50)[0].Values {
			if m != 0 && math.Abs(m-1/0.75) > 1e-15 {
				t.Fatalf("host=%t: a mask entry is %g, want 0 or 4/3", host, m)
			}
		}
	}
}

// A replica's noise is that of a host with its seed alone, in every execution
// and for every draw.
func TestHostReplicasAreSeparateStreams(t *testing.T) {
	seeds := []uint64{5, 6, 7}
	draw := func(h *stochastic.Host, lead ...int) [][]fixtures.Array {
		t.Helper()
		sheet := h.NewSheet()
		like := fixtures.Values{"x": fixtures.Zeros(append(lead, 1, 1)...)}
		c := fixtures.Compile(t, dtypes.Float64, like, sheet, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{
				stochastic.Draw(s, in["x"], stochastic.Gaussian(), 2, 3),
				stochastic.Draw(s, in["x"], stochastic.Uniform01(), 4, 1),
			}
		})
		first := c.Call(like)
		if err := sheet.Refresh(); err != nil {
			t.Fatal(err)
		}
		return [][]fixtures.Array{first, c.Call(like)}
	}
	together := draw(stochastic.NewReplicatedHost(seeds), 3)
	for r, seed := range seeds {
		alone := draw(stochastic.NewHost(seed))
		for execution := range alone {
			for i, want := range alone[execution] {
				size := len(want.Values)
				got := together[execution][i].Values[r*size : (r+1)*size]
				if !slices.Equal(got, want.Values) {
					t.Errorf("replica %d, execution %d, draw %d: %v, alone %v", r, execution, i, got, want.Values)
				}
			}
		}
	}
}

func TestSheetsOfOneHostDiffer(t *testing.T) {
	host := stochastic.NewHost(1)
	like := fixtures.Values{"x": fixtures.Zeros(1, 1)}
	var draws [][]float64
	for range 2 {
		draws = append(draws, fixtures.Compile(t, dtypes.Float64, like, host.NewSheet(), func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			return []*graph.Node{stochastic.Draw(s, in["x"], stochastic.Gaussian(), 3, 3)}
		}).Call(like)[0].Values)
	}
	if slices.Equal(draws[0], draws[1]) {
		t.Error("two sheets of one host hold the same noise")
	}
}

func TestNoiseWithoutSourceIsDrawnInTheGraph(t *testing.T) {
	store := model.NewStore()
	if err := store.SetRNGStateFromSeed(1); err != nil {
		t.Fatal(err)
	}
	exec, err := model.NewExec(fixtures.Backend(t), store, func(s *model.Scope, x *graph.Node) *graph.Node {
		return stochastic.Draw(s, x, stochastic.Gaussian(), 5, 5)
	})
	if err != nil {
		t.Fatal(err)
	}
	var draws [][]float64
	for range 2 {
		y, err := exec.Call1(fixtures.Tensor(dtypes.Float64, fixtures.Zeros(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		draws = append(draws, fixtures.FromTensor(t, y).Values)
	}
	if slices.Equal(draws[0], draws[1]) {
		t.Error("two executions drew the same noise")
	}
}

func TestReplicatedHostRejectsOtherShapes(t *testing.T) {
	_, err := model.CallOnce(fixtures.Backend(t), model.NewStore(), func(s *model.Scope, x *graph.Node) *graph.Node {
		stochastic.SetNoise(x.Graph(), stochastic.NewReplicatedHost([]uint64{1, 2}).NewSheet())
		return stochastic.Draw(s, x, stochastic.Gaussian(), 2, 2)
	}, fixtures.Tensor(dtypes.Float64, fixtures.Zeros(3, 1, 1)))
	if err == nil {
		t.Error("no error for noise of 3 replicas from a source of 2")
	}
}

func TestDropoutMaskRejectsBadRates(t *testing.T) {
	for _, rate := range []float64{-0.1, 1, math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for rate %g", rate)
				}
			}()
			stochastic.DropoutMask(rate)
		}()
	}
}
