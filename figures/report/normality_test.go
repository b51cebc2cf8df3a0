package report_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/report"
)

// Normal numbers lie on the line, and so do the logarithms of log-normal ones, whose skewness is that of the formula.
func TestNormality(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	normal, skewed := report.Sample{Name: "normal"}, report.Sample{Name: "log-normal"}
	for range 20000 {
		normal.Values = append(normal.Values, 20+rng.NormFloat64())
		skewed.Values = append(skewed.Values, math.Exp(0.3*rng.NormFloat64()))
	}
	f, err := report.Normality("normality", normal, skewed)
	figtest.Golden(t)(f, err)
	// (e^{s^2} + 2) sqrt(e^{s^2} - 1) = 0.95 for s = 0.3.
	if titles := figtest.Titles(f); !strings.Contains(titles[0], "skewness 0.0") || !strings.Contains(titles[1], "skewness 0.9") && !strings.Contains(titles[1], "skewness 1.0") {
		t.Errorf("titles %q", titles)
	}
	for _, c := range []struct {
		want   string
		values []float64
	}{
		{"2 values", []float64{1, 2}},
		{"all positive", []float64{1, 2, 0}},
		{"all values are 2", []float64{2, 2, 2}},
		{"value at place 1", []float64{1, math.Inf(1), 2}},
	} {
		if _, err := report.Normality("n", report.Sample{Name: "s", Values: c.values}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, want one with %q", err, c.want)
		}
	}
	if _, err := report.Normality("n"); err == nil {
		t.Error("no samples, and no error")
	}
}
