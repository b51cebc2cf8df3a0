package metrics

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// autoregressive are chains of x_t = rho x_(t-1) + sqrt(1 - rho^2) e_t, which begin in their stationary distribution N(0, 1).
func autoregressive(rng *rand.Rand, chains, draws int, rho float64) [][]float64 {
	all := make([][]float64, chains)
	for c := range all {
		x := rng.NormFloat64()
		for range draws {
			all[c] = append(all[c], x)
			x = rho*x + math.Sqrt(1-rho*rho)*rng.NormFloat64()
		}
	}
	return all
}

// The effective size of an AR(1) process is draws (1 - rho)/(1 + rho): below the number of draws, equal to it for
// independent draws, and above for anticorrelated ones. Over many repetitions the mean is within a few percent, and the
// chains agree: with so many draws in a half, R-hat is about 1 + 1/(2 draws).
func TestChainsOfKnownCorrelation(t *testing.T) {
	const chains, draws, repetitions = 4, 1000, 20
	for _, rho := range []float64{-0.3, 0, 0.5, 0.9} {
		rng := rand.New(rand.NewPCG(7, uint64(100*(rho+1))))
		var ratios []float64
		for range repetitions {
			all := autoregressive(rng, chains, draws, rho)
			size := must.Get(EffectiveSize(all))(t)
			ratios = append(ratios, size/(chains*draws*(1-rho)/(1+rho)))
			perHalf := draws / 2 * (1 - rho) / (1 + rho)
			if rHat := must.Get(SplitRHat(all))(t); rHat > 1+3/perHalf {
				t.Errorf("rho %g: R-hat of chains of one distribution is %.4f", rho, rHat)
			}
		}
		if mean := Mean(ratios); math.Abs(mean-1) > 0.07 {
			t.Errorf("rho %g: the effective size is %.3f times the theory's", rho, mean)
		}
	}
}

// Chains that differ in place, in width, or that drift, have a large R-hat; and their effective size is small.
func TestSplitRHatOfChainsThatDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for name, change := range map[string]func(chain, draw int, x float64) float64{
		"place": func(chain, _ int, x float64) float64 { return x + 3*float64(chain%2) },
		"width": func(chain, _ int, x float64) float64 { return x * math.Pow(4, float64(chain%2)) },
		"drift": func(_, draw int, x float64) float64 { return x + float64(draw)/250 },
	} {
		all := autoregressive(rng, 4, 1000, 0)
		for c := range all {
			for i, x := range all[c] {
				all[c][i] = change(c, i, x)
			}
		}
		if rHat := must.Get(SplitRHat(all))(t); rHat < 1.2 {
			t.Errorf("chains that differ in %s have the R-hat %.4f", name, rHat)
		}
		if size := must.Get(EffectiveSize(all))(t); name != "width" && size > 40 {
			t.Errorf("chains that differ in %s have the effective size %.1f", name, size)
		}
	}
}

// A monotone change of all draws changes no ranks, and so nothing.
func TestChainsByRanks(t *testing.T) {
	all := autoregressive(rand.New(rand.NewPCG(5, 5)), 2, 101, 0.3)
	size := must.Get(EffectiveSize(all))(t)
	for c := range all {
		for i, x := range all[c] {
			all[c][i] = math.Exp(3 * x)
		}
	}
	if got := must.Get(EffectiveSize(all))(t); got != size {
		t.Errorf("the effective size is %v, and of the exponentials %v", size, got)
	}
}

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
		if got := must.Get(SplitRHat(all))(t); c.rHat > 0 && math.Abs(got-c.rHat) > 1e-9 {
			t.Errorf("%+v: R-hat is %.12g", c, got)
		}
		if got := must.Get(EffectiveSize(all))(t); math.Abs(got-c.size) > 1e-9*c.size {
			t.Errorf("%+v: the effective size is %.12g", c, got)
		}
	}
}

// Chains that never move say so, wherever they are stuck.
func TestChainsThatDoNotMove(t *testing.T) {
	for want, chains := range map[string][][]float64{
		"do not move": {{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, {0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3}, {-1e-200, -1e-200, -1e-200, -1e-200, -1e-200, -1e-200, -1e-200}},
		"are 0.1":     {{0.1, 0.1, 0.1, 0.1}, {0.1, 0.1, 0.1, 0.1}},
	} {
		_, rHat := SplitRHat(chains)
		_, size := EffectiveSize(chains)
		for _, err := range []error{rHat, size} {
			if !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
		}
	}
}
