package metrics

import (
	"math"
	"testing"

	"densityuncertainty/environment/must"
)

// Diagnostics are ArviZ's (0.23.4, rhat by "rank" and ess by "bulk"): of even and odd lengths, few draws, chains of different
// widths, ties, anticorrelated draws, and draws so small that their squares are 0.
func TestChainsAsArviZ(t *testing.T) {
	for _, c := range []struct {
		chains, draws int
		rho           float64
		kind          string
		rHat, size    float64 // ArviZ has no R-hat of one chain
	}{
		{4, 100, 0.1, "", 1.00383282954, 374.913728514},
		{4, 20, 0, "", 0.986704231186, 146.782187299},
		{4, 1000, 0.5, "", 1.00405312536, 1211.92773625},
		{2, 101, 0.3, "", 1.00292685538, 130.019482624},
		{1, 37, -0.4, "", 0, 56.0268900276},
		{3, 9, 0, "", 1.0128677845, 33.1250698011},
		{2, 4, 0, "", 0.859788417608, 7.22471989594},
		{4, 50, -0.6, "width", 1.07113621086, 460.205999133},
		{4, 51, 0.9, "rounded", 1.27916190697, 11.7626181917},
		{2, 10, -0.9, "", 1.71966829926, 26.0205999133},
		{4, 100, 0.2, "tiny", 1.00344752171, 318.737359913},
	} {
		all, state := make([][]float64, c.chains), 12345
		for k := range all {
			x := 0.0
			for range c.draws {
				e := -6.0
				for range 12 { // nearly normal, of a generator that is written quickly in Python too
					state = (1103515245*state + 12345) % (1 << 31)
					e += float64(state) / (1 << 31)
				}
				x = c.rho*x + e
				all[k] = append(all[k], map[string]float64{"": x, "width": x * float64(1+k), "rounded": math.Floor(x), "tiny": x * 1e-200}[c.kind])
			}
		}
		if c.rHat > 0 {
			must.Near(t, SplitRHat(all), c.rHat, 1e-9, "%+v: R-hat", c)
		}
		must.Near(t, EffectiveSize(all), c.size, 1e-9*c.size, "%+v: the effective size", c)
	}
}

// Chains that never move have neither number, wherever they are stuck.
func TestChainsThatDoNotMove(t *testing.T) {
	for _, chains := range [][][]float64{{{0.1, 0.1, 0.1, 0.1, 0.1}, {0.3, 0.3, 0.3, 0.3, 0.3}, {-1e-200, -1e-200, -1e-200, -1e-200, -1e-200}}, {{0.1, 0.1, 0.1, 0.1}, {0.1, 0.1, 0.1, 0.1}}} {
		if rHat, size := SplitRHat(chains), EffectiveSize(chains); !math.IsNaN(rHat) || !math.IsNaN(size) {
			t.Errorf("%v have R-hat %g and effective size %g", chains, rHat, size)
		}
	}
}
