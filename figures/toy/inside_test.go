package toy

import (
	"fmt"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
)

func TestLookInside(t *testing.T) {
	list := passedOff(t, append(grid.Of(Cubic{Seeds: 1}, methods.Density), grid.Of(Cubic{Seeds: 1}, methods.Rank1)...))
	inside := must.Get(LookInside(list[:1]))(t)[0]
	if inside.Steps != 4000 || len(inside.Energies) != 2 || len(inside.Std) != len(inside.X) {
		t.Fatalf("%d steps, energies of %d layers, %d deviations at %d places", inside.Steps, len(inside.Energies), len(inside.Std), len(inside.X))
	}
	for l, energy := range inside.Energies {
		for i, e := range energy {
			if len(energy) != len(inside.X) || e < 0 {
				t.Fatalf("energies of layer %d: %d values for %d inputs, %g at x = %g", l, len(energy), len(inside.X), e, inside.X[i])
			}
		}
	}
	moons := passedOff(t, grid.Of(Moons{Seeds: 1}, methods.Density))
	for want, wrong := range map[string]experiment.Result{"no energy model": list[1], "only runs on the cubic": moons[0], "not there": {}} {
		must.GetErr(LookInside([]experiment.Result{wrong}))(t, want)
	}
}

// The picture of one network is its own line before those of the others, on the axes of all.
func TestInsideFigure(t *testing.T) {
	run := func(steps int, scale float64) Inside {
		return Inside{Steps: steps, X: []float64{0, 1}, Std: []float64{scale, 2 * scale}, Energies: [][]float64{{1, scale}, {scale, 3}}}
	}
	runs := []Inside{run(100, 1), run(200, 9)}
	var pictures []string
	for i, r := range runs {
		f := must.Get(InsideFigure(runs, r.Steps))(t)
		if want := fmt.Sprintf("after %d gradient steps", r.Steps); !strings.Contains(f.Caption, want) || len(f.Panels[0]) != 3 {
			t.Errorf("%d panels, %q, want 3 and %q", len(f.Panels[0]), f.Caption, want)
		}
		for panel, top := range []float64{9, 9, 18} {
			if got := f.Panels[0][panel].Y.Max; got != top {
				t.Errorf("number %d, panel %d ends at %g, want %g", i, panel, got, top)
			}
		}
		svg := must.Get(f.Bytes(report.SVG))(t)
		pictures = append(pictures, string(svg))
	}
	if pictures[0] == pictures[1] {
		t.Error("the pictures of both networks are the same")
	}
	for _, wrong := range []struct {
		runs  []Inside
		steps int
		want  string
	}{
		{nil, 0, "none of 0 was trained for 0 steps"},
		{runs, 300, "none of 2"},
		{[]Inside{runs[0], {Steps: 7}}, 100, "after 7 steps there are energies of 0 layers, after 100 of 2"},
		{[]Inside{{X: []float64{0}, Std: nil}}, 0, "inside networks"},
	} {
		must.GetErr(InsideFigure(wrong.runs, wrong.steps))(t, wrong.want)
	}
}
