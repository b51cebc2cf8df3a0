package stochastic

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/environment/backendtest"
)

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
