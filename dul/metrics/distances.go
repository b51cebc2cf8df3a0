package metrics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Wasserstein returns the 1-Wasserstein distance between the empirical distributions of two sets of draws, which may
// differ in number. It is the area between their distribution functions, in the unit of the draws:
//
//	integral |F_a(x) - F_b(x)| dx = integral_0^1 |F_a^-1(u) - F_b^-1(u)| du.
func Wasserstein(a, b []float64) float64 {
	if floats.HasNaN(a) || floats.HasNaN(b) {
		return math.NaN()
	}
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	i, j, area, last := 0, 0, 0.0, min(a[0], b[0])
	for i < len(a) || j < len(b) {
		next := math.Inf(1)
		if i < len(a) {
			next = a[i]
		}
		if j < len(b) {
			next = min(next, b[j])
		}
		area += (next - last) * math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b)))
		for last = next; i < len(a) && a[i] == next; {
			i++
		}
		for j < len(b) && b[j] == next {
			j++
		}
	}
	return area
}

// TotalVariation returns the total variation distance between two mixtures of Gaussians with equal weights, one
// standard deviation std and means a and b, such as two predictive distributions whose function has these draws:
//
//	1/2 integral |1/A sum_m N(y; a_m, std^2) - 1/B sum_m N(y; b_m, std^2)| dy.
//
// It is from 0 to 1, and has an error of about 0.001: the integral is a sum in steps of std/8, and a Gaussian farther
// than 6 std from its mean counts as 0. It is NaN if means are more than a million std apart.
func TotalVariation(a, b []float64, std float64) float64 {
	const perStd, reach, most = 8, 6, 1e6
	low, high := min(slices.Min(a), slices.Min(b)), max(slices.Max(a), slices.Max(b))
	if !(std > 0 && high-low <= most*std) {
		return math.NaN()
	}
	step := std / perStd
	difference := make([]float64, int((high-low)/step)+2*reach*perStd+2) // of the densities, from low - reach std on
	add := func(means []float64, weight float64) {
		for _, mean := range means {
			first := int((mean - low) / step)
			for k := first; k <= first+2*reach*perStd; k++ {
				difference[k] += weight * math.Exp(logNormal(low+float64(k-reach*perStd)*step, mean, std*std))
			}
		}
	}
	add(a, 1/float64(len(a)))
	add(b, -1/float64(len(b)))
	return floats.Norm(difference, 1) * step / 2
}
