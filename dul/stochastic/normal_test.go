package stochastic

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
)

// The draws fill intervals of equal probability equally, and those beyond
// several limits, where layers differ in kind, are as many as they should be.
func TestNormalDraws(t *testing.T) {
	t.Run("host/float32", func(t *testing.T) { testNormalDraws(t, filled[float32]()) })
	t.Run("host/float64", func(t *testing.T) { testNormalDraws(t, filled[float64]()) })
}

const drawn = 2_000_001

func filled[T float32 | float64]() []T {
	noise := make([]T, drawn)
	fillNormal(rand.New(rand.NewPCG(5, 7)), noise)
	return noise
}

// fillNormal fills noise with draws of N(0, 1).
func fillNormal[T float32 | float64](stream *rand.Rand, noise []T) {
	fill(noise, baseDistribution{}, func(yield func(*rand.Rand, part) bool) { yield(stream, part{0, 1, len(noise), 0}) })
}

// The bits of a draw are those that SplitMix64 is published to give of the seed 0, the next draw's 2^32 words later.
func TestRandomBits(t *testing.T) {
	for draw := range uint64(2) {
		store := model.NewStore()
		const step uint64 = 0x9e3779b97f4a7c15
		must.Do(t, randomState(store).SetValue(tensors.FromValue([]uint64{-(draw << 32) * step, draw, 0})))
		bits := must.Get(model.CallOnce(backendtest.Open(t), store, func(s *model.Scope, g *graph.Graph) *graph.Node {
			return InGraph{}.randomBits(s, g, shapes.Make(dtypes.Uint32, 4))
		}))(t)
		if got, want := must.Get(tensors.CopyFlatData[uint32](bits))(t)[1:], []uint32{0xe220a839, 0x6e789e6a, 0x06c45d18}; !slices.Equal(got, want) {
			t.Errorf("draw %d has the bits %x, want %x", draw, got, want)
		}
	}
}

// Where the number of rows is unknown until the graph is executed, draws are those of a graph that knows it.
func TestUnknownRows(t *testing.T) {
	backend := must.Get(gobackend.New(""))(t)
	draw := func(rows int, unknown bool, source NoiseSource) ([]float32, error) {
		store := model.NewStore()
		program := must.Get(model.NewExec(backend, store, func(s *model.Scope, x *graph.Node) *graph.Node {
			SetNoiseSource(x.Graph(), source)
			return Draw(s, x, Gaussian(), x.Shape().Dim(0), 5)
		}))(t)
		must.Do(t, randomState(store).SetValue(tensors.FromValue([]uint64{3, 1, 0})))
		if unknown {
			if _, err := program.Compile(shapes.MakeDynamic(dtypes.Float32, []int{shapes.DynamicDim, 2}, []string{"rows", ""})); err != nil {
				return nil, err
			}
		}
		return tensors.CopyFlatData[float32](must.Get(program.Call1(tensors.FromShape(shapes.Make(dtypes.Float32, rows, 2))))(t))
	}
	for _, rows := range []int{1, 4} {
		if got, want := must.Get(draw(rows, true, InGraph{}))(t), must.Get(draw(rows, false, InGraph{}))(t); !slices.Equal(got, want) {
			t.Errorf("%d rows are %v, want %v", rows, got, want)
		}
	}
	must.GetErr(draw(4, true, NewHostSampler(1).NewBuffers()))(t, "needs the number of rows")
}

func testNormalDraws[T float32 | float64](t *testing.T, noise []T) {
	const n, intervals = drawn, 500
	counts := make([]int, intervals)
	for _, x := range noise {
		counts[min(int(intervals*0.5*math.Erfc(-float64(x)/math.Sqrt2)), intervals-1)]++
	}
	chi2, expected := 0.0, float64(n)/intervals
	for _, count := range counts {
		chi2 += (float64(count) - expected) * (float64(count) - expected) / expected
	}
	must.Z(t, (chi2-(intervals-1))/math.Sqrt(2*(intervals-1)), "chi-square over %d intervals is %g", intervals, chi2)

	for _, limit := range []float64{0, 0.1, 0.3, 1, 3, 3.5, tailStart, 3.8, 4.2} {
		for _, sign := range []float64{1, -1} {
			beyond := 0
			for _, x := range noise {
				if float64(x)*sign > limit {
					beyond++
				}
			}
			p := 0.5 * math.Erfc(limit/math.Sqrt2)
			must.Z(t, (float64(beyond)-n*p)/math.Sqrt(n*p*(1-p)), "%d of %d draws are beyond %g on the side of %g, want %g", beyond, n, limit, sign, n*p)
		}
	}
}

// The two draws of one word, and draws that follow each other, are uncorrelated,
// as are their squares.
func TestNormalDrawsAreIndependent(t *testing.T) {
	const n = 1_000_000
	noise := make([]float64, n+2)
	fillNormal(rand.New(rand.NewPCG(11, 13)), noise)
	for _, lag := range []int{1, 2} {
		product, squares := 0.0, 0.0
		for i := range n {
			a, b := noise[i], noise[i+lag]
			product += a * b
			squares += (a*a - 1) * (b*b - 1)
		}
		must.Z(t, product/math.Sqrt(n), "lag %d: the draws' correlation", lag)
		must.Z(t, squares/2/math.Sqrt(n), "lag %d: their squares' correlation", lag)
	}
}

// The formula is the inverse of the distribution function at every probability:
// near 0, in the bulk, and at the largest draw of either sign.
func TestNormalsOfInvertTheDistributionFunction(t *testing.T) {
	var bits []uint32
	for k := 1.0; k < math.MaxInt32; k = k*1.01 + 1 {
		bits = append(bits, uint32(k), 1<<31|uint32(k), math.MaxInt32-uint32(k))
	}
	bits = append(bits, 0, math.MaxInt32, 1<<31, math.MaxUint32)
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
		t.Run(dtype.String(), func(t *testing.T) {
			z := graph.MustNewExec(backendtest.Open(t), func(bits *graph.Node) *graph.Node {
				return graph.ConvertDType(normalsOf(bits, dtype), dtypes.Float64)
			}).MustCall1(bits).Value().([]float64)
			for i, b := range bits {
				u := (float64(b&math.MaxInt32) + 0.5) / (1 << 32)
				want := math.Sqrt2 * math.Erfcinv(2*u)
				if b > math.MaxInt32 {
					want = -want
				}
				distance := math.Abs(want)
				if off := math.Abs(z[i] - want); !(off < 2e-5*distance+min(4e-4, 2e-7/distance)) {
					t.Errorf("bits %08x give %g, want %g", b, z[i], want)
				}
			}
		})
	}
}
