package toy

import (
	"math"
	"math/rand/v2"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/nets"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
)

// Constant is the largest c with Bound(v, e) >= c (v + e): none is below it, and the best direction reaches it.
func TestResidualStepConstant(t *testing.T) {
	for _, s := range []ResidualStep{{1e-3, 5, 0.05}, {0.5, 1, 2}, {3, 0.01, 1}, {1, 1e-6, 1}} {
		c, least := s.Constant(), math.Inf(1)
		for i := range 20001 {
			angle := math.Pi / 2 * float64(i) / 20000
			v, e := math.Pow(math.Cos(angle), 2), math.Pow(math.Sin(angle), 2) // v + e = 1
			least = min(least, s.Bound(v, e))
		}
		if least < c*(1-1e-12) || least > c*(1+1e-3) || !(c > 0 && c <= 1) {
			t.Errorf("%+v: the least bound of v + e = 1 is %v, the constant %v", s, least, c)
		}
	}
}

// A unit of variance v that the layer subtracts w times, E(h) = lambda/2 h^2: the bound is what remains.
func TestResidualStepBoundIsAttained(t *testing.T) {
	const n, v, lambda, alpha = 200000, 2.0, 0.5, 0.3
	random := rand.New(rand.NewPCG(1, 2))
	for _, w := range []float64{0, 0.4, 0.9, 1} {
		var p powers
		for range n {
			a := math.Sqrt(v) * random.NormFloat64()
			p.add(a - w*a + math.Sqrt(alpha*lambda/2*a*a)*random.NormFloat64())
		}
		variance, deviation := p.variance()
		bound := ResidualStep{Alpha: alpha, Weight: w * w, Lambda: lambda}.Bound(v, lambda/2*v)
		must.Z(t, (variance-bound)/deviation, "w %v: variance %v ± %v, bound %v", w, variance, deviation, bound)
	}
}

func TestPrintedConstant(t *testing.T) {
	s := ResidualStep{Alpha: 0.1, Weight: 0.01, Lambda: 1}
	for width, want := range map[int]float64{1: 0.1, 4: 0.5 - 2*0.1*4, 2: 0.1} {
		must.Near(t, s.PrintedConstant(width, 0.5, 1), want, 1e-12, "width %d", width)
	}
}

// The precision L D L^T with L = [1 0; 2 1] and D = diag(1/4, 1) is [1/4 1/2; 1/2 2].
func TestLeastPrecision(t *testing.T) {
	got := must.Get(leastPrecision([]float64{9, 9, 2, 9}, []float64{math.Log(4), 0}))(t)
	must.Near(t, got, (2.25-math.Sqrt(2.25*2.25-4*0.25))/2, 1e-12, "the least eigenvalue")
}

// In a trained network every unit's variance is above both bounds after every layer, and the energy of the scalar input
// is lambda/2 x^2.
func TestFindBounds(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	for _, batchNorm := range []bool{false, true} {
		last := 0.0
		network := nets.ResidualSum{Width: 8, Depth: 2, BatchNorm: batchNorm}
		b := must.Get(FindBounds(t.Context(), network, 400, 1000, func(done float64, _ string) { last = done }))(t)
		if len(b.Layers) != 3 || last < 1-1e-9 {
			t.Fatalf("%d layers, progress %v", len(b.Layers), last)
		}
		data := cubicData(0)
		scale := datasets.FitScaler(data.X, 1, datasets.Order(0, 0, data.N))
		for i, x := range scale.Transform(b.X) {
			want := b.Layers[0].Steps[0].Lambda / 2 * x * x
			must.Near(t, b.Layers[0].Energy[i], want, 1e-5*(1+want), "energy of the input %v", x)
		}
		repaired, printed := b.Constants()
		for l, layer := range b.Layers {
			total, lowest := b.TotalEnergy(l), math.Inf(1)
			for j := range layer.Steps {
				bound := b.LayerByLayer(j)[l]
				for i, v := range layer.Variance[j] {
					below := max(bound[i], repaired[l]*total[i])
					lowest = min(lowest, (v-below)/layer.VarianceError[j][i])
				}
			}
			// The least of 1900 standard normal numbers is above -4.5 with a probability of 0.99.
			if lowest < -4.5 {
				t.Errorf("batch norm %v, layer %d: a variance is %.1f standard errors below its bound", batchNorm, l, -lowest)
			}
			if low, high := b.Ratios(l); !(low <= high) || low < repaired[l] || layer.Variance[0][7]/total[7] < low {
				t.Errorf("batch norm %v, layer %d: ratios %v to %v, constant %v", batchNorm, l, low, high, repaired[l])
			}
			if l > 0 && (printed[l] >= 0 || !(repaired[l] > 0)) {
				t.Errorf("batch norm %v, layer %d: constants printed %v, repaired %v", batchNorm, l, printed[l], repaired[l])
			}
		}
	}
}

func TestFindBoundsErrors(t *testing.T) {
	good := nets.ResidualSum{Width: 8, Depth: 1}
	must.GetErr(FindBounds(t.Context(), good, 2, 1, nil))(t, "1 draws")
	must.GetErr(FindBounds(t.Context(), nets.ResidualSum{Width: 8}, 2, 10, nil))(t, "depth 0")
	must.GetErr(FindBounds(canceled(t), good, 2, 10, nil))(t, "canceled")
}
