package report_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/report"
)

func TestStandardDeviations(t *testing.T) {
	var x, exact, rough []float64
	for i := range 81 {
		at := -4 + 0.1*float64(i)
		x, exact, rough = append(x, at), append(exact, 1-math.Exp(-at*at)), append(rough, 1-0.8*math.Exp(-at*at))
	}
	curves := []report.Variance{{"exact", exact}, {"rough", rough}}
	f, err := report.StandardDeviations("process", x, []float64{-0.5, 0, 0.5}, report.Variances{"left", curves}, report.Variances{"right", curves[:1]})
	figtest.Golden(t)(f, err)
	if left, right := f.Panels[0][0], f.Panels[0][1]; left.Y.Max != right.Y.Max || right.Y.Label.Text != "" {
		t.Errorf("axes to %v and %v, label %q", left.Y.Max, right.Y.Max, right.Y.Label.Text)
	}
	rough[3] = -0.1
	must.GetErr(report.StandardDeviations("process", x, []float64{0}, report.Variances{"left", curves}))(t, "rough has the variance -0.1 at place 3")
	for lowest, refused := range map[float64]bool{-1e-9: false, -1e-8: true} { // of variances of 0.005
		small := slices.Repeat([]float64{0.005}, len(x))
		small[3] = lowest
		if _, err := report.StandardDeviations("process", x, []float64{0}, report.Variances{"left", []report.Variance{{"small", small}}}); (err != nil) != refused {
			t.Errorf("a variance of %g among 0.005: %v", lowest, err)
		}
	}
	must.GetErr(report.StandardDeviations("process", x, []float64{0}, report.Variances{"left", []report.Variance{{"short", exact[1:]}}}))(t, "81 x values but 80")
}

func TestDistances(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pairs := report.Pairs{Title: "network", Inputs: []float64{1, 1}, Features: []float64{0.5, 3}, Across: []bool{false, true}}
	for range 200 {
		d := 4 * rng.Float64()
		pairs.Inputs = append(pairs.Inputs, d)
		pairs.Features = append(pairs.Features, d*(0.5+2.5*rng.Float64()))
		pairs.Across = append(pairs.Across, rng.IntN(2) == 1)
	}
	same := pairs
	same.Across = slices.Repeat([]bool{false}, len(pairs.Inputs))
	f, err := report.Distances("stretch", pairs, same)
	figtest.Golden(t)(f, err)
	if got := f.Panels[0][0].Title.Text; !strings.HasSuffix(got, "stretched 0.5 to 3 times") {
		t.Errorf("title %q", got)
	}
	for _, bad := range []report.Pairs{{}, {Inputs: []float64{1}, Features: []float64{1}}, {Inputs: []float64{0}, Features: []float64{1}, Across: []bool{true}}} {
		if _, err := report.Distances("stretch", bad); err == nil {
			t.Errorf("%+v was drawn", bad)
		}
	}
}
