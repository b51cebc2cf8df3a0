package toy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/datasets"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// The map has the places that its axes say.
func TestMoonsGrid(t *testing.T) {
	if got := gridOf([]float64{1, 2}, []float64{3, 4}); !slices.Equal(got, []float64{1, 3, 2, 3, 1, 4, 2, 4}) {
		t.Errorf("grid %v; want rows from below", got)
	}
	axis := axisOf(moonsLow)
	if len(axis) != moonsPoints || axis[0] != moonsLow || axis[moonsPoints-1] != moonsLow+moonsSide {
		t.Errorf("axis %v", axis)
	}
	for i, v := range axis {
		if want := moonsLow + moonsSide*float64(i)/(moonsPoints-1); math.Abs(v-want) > 1e-12 {
			t.Errorf("place %d of the axis is %v, want %v", i, v, want)
		}
	}
	// Of the four places, on the point and the square's sides away, one is not far.
	ends := func(low float64) []float64 { return []float64{low, low + moonsSide} }
	if far := farOf([]float64{1, 2, 3, 4}, ends(moonsLeft), ends(moonsLow), []float64{moonsLeft, moonsLow}); !slices.Equal(far, []float64{2, 3, 4}) {
		t.Errorf("far places have values %v", far)
	}
}

// A Gaussian process is uncertain far away, and a single network is not.
func TestMoonsDistanceAwareness(t *testing.T) {
	r := runner(t)
	for _, c := range []struct {
		method    methods.Method
		low, high float64 // of the entropy far away
	}{
		{methods.Deterministic, 0, 0.2},
		{methods.Ensemble, 0, math.Ln2},
		{methods.Density, 0, math.Ln2},
		{methods.SNGP, 0.6, math.Ln2},
		{methods.DUE, 0.5, math.Ln2},
	} {
		t.Run(c.method.Name, func(t *testing.T) {
			last := 0.0
			found := must.Get(r.Run(t.Context(), short(Moons(), c.method, 60, 2, 0), func(done float64, note string) {
				if done < last || done > 1 || note == "" {
					t.Errorf("progress %v after %v, %q", done, last, note)
				}
				last = done
			}))(t)
			s, metrics := found[0].Series, found[0].Metrics
			if len(s[results.SeriesEntropy]) != len(s[results.SeriesX])*len(s[results.SeriesY]) || len(s[results.SeriesTrainX]) != moonsN || len(s[results.SeriesLabel]) != moonsN {
				t.Errorf("%d values of a map of %d by %d, %d points", len(s[results.SeriesEntropy]), len(s[results.SeriesX]), len(s[results.SeriesY]), len(s[results.SeriesTrainX]))
			}
			points, labels := datasets.TwoMoons(moonsN, moonsNoise, 0)
			for i, label := range labels { // what was trained on is shown where it is
				if s[results.SeriesTrainX][i] != points[2*i] || s[results.SeriesTrainY][i] != points[2*i+1] || s[results.SeriesLabel][i] != float64(label) {
					t.Fatalf("point %d is shown at (%v, %v)", i, s[results.SeriesTrainX][i], s[results.SeriesTrainY][i])
				}
			}
			if a := metrics[results.MetricAccuracy]; a < 0.8 {
				t.Errorf("accuracy %.3f", a)
			}
			if far := metrics[results.MetricEntropyFar]; far < c.low || far > c.high {
				t.Errorf("entropy far from the data %.3f, want %.2f to %.2f", far, c.low, c.high)
			}
		})
	}
}

// The weights of the generative objective reach the training of classifiers with energy models, and are part of what
// their experiments are. On the cubic, and for what has no energy model, they are refused.
func TestGenerativeWeights(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		p := Moons()
		p.GenerativeWeights = weighted
		e := p.Experiments(methods.Density)[0]
		if got := e.Options["generative_weights"] == "true"; got != weighted || !weighted && e.Options != nil {
			t.Errorf("weighted %t: options %v", weighted, e.Options)
		}
		carriedOut, m := must.Get2(ProtocolOf(e, methods.All()))(t)
		if got := carriedOut.trainer(m, 9).WeightEnergies; got != weighted {
			t.Errorf("weighted %t: trained with weights: %t", weighted, got)
		}
	}
	for _, c := range []struct {
		p Protocol
		m methods.Method
	}{{Cubic(), methods.Density}, {Moons(), methods.Rank1}, {Moons(), methods.DensityConstant}} {
		want := c.m.Name + " has no use for the option generative_weights"
		e := c.p.Experiments(c.m)[0]
		e.Options = map[string]string{"generative_weights": "true"}
		if _, _, err := ProtocolOf(e, methods.All()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), c.p.Problem) {
			t.Errorf("%s on %s: %v", c.m.Name, c.p.Problem, err)
		}
	}

	r := runner(t)
	entropies := func(change func(*methods.Options)) []float64 {
		found := must.Get(r.Run(t.Context(), short(Moons(), methods.Density.Variant("", change), 20, 2, 0), func(float64, string) {}))(t)
		return found[0].Series[results.SeriesEntropy]
	}
	if slices.Equal(entropies(nil), entropies(func(o *methods.Options) { o.GenerativeWeights = true })) {
		t.Error("with weights the map is the same")
	}
}

// brokenLayers give no numbers.
type brokenLayers struct{ baselines.Deterministic }

func (l brokenLayers) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return graph.MulScalar(l.Deterministic.Dense(s, x, units), math.NaN())
}

// A training that diverges is a result, and does not lose those of other methods.
func TestMoonsDiverge(t *testing.T) {
	p := Moons().Quick()
	p.Seeds, p.Steps = []uint64{0}, 5
	lines, err := Run(t.Context(), p, methods.New("broken", brokenLayers{}), methods.Deterministic)
	if err != nil || len(lines) != 2 || !lines[0].Diverged || lines[0].Metrics != nil || lines[1].Diverged {
		t.Errorf("%+v, %v", lines, err)
	}
}

func TestMoonsStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reports := 0
	_, err := runner(t).Run(ctx, short(Moons(), methods.SNGP, 1000, 2, 0), func(done float64, note string) {
		if reports++; done > 0.1 || note == "" {
			t.Errorf("report %v, %q", done, note)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) || reports == 0 {
		t.Errorf("%d reports, then %v", reports, err)
	}
}

// What LookInside sees is the network that Run trains: the same mean, up to the noise of the draws.
func TestLookInside(t *testing.T) {
	r := runner(t)
	p := Cubic().Quick()
	p.Steps, p.Samples, p.Seeds = 20, 200, []uint64{0}
	last := 0.0
	p.Progress = func(done float64, note string) { last = done }
	inside := must.Get(LookInside(t.Context(), p, methods.Density))(t)
	if last != 1 || len(inside.Energies) != 2 {
		t.Fatalf("progress ended at %g with energies of %d layers, want 1 and 2", last, len(inside.Energies))
	}
	lines := must.Get(r.Run(t.Context(), p.Experiments(methods.Density), func(float64, string) {}))(t)
	want := lines[0].Series
	if !slices.Equal(inside.TrainX, want[results.SeriesTrainX]) || !slices.Equal(inside.TrainY, want[results.SeriesTrainY]) {
		t.Error("the training data are others")
	}
	for i, x := range want[results.SeriesX] {
		// Two means of 200 draws differ by their standard errors.
		if bound := 5 * want[results.SeriesStd][i] * 0.1; math.Abs(inside.Mean[i]-want[results.SeriesMean][i]) > bound {
			t.Errorf("at x = %g the mean is %g, that of Run %g", x, inside.Mean[i], want[results.SeriesMean][i])
		}
		for l, energy := range inside.Energies {
			if len(energy) != len(inside.X) || energy[i] < 0 {
				t.Fatalf("energies of layer %d: %d values for %d inputs, %g at x = %g", l, len(energy), len(inside.X), energy[i], x)
			}
		}
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
		f := must.Get(InsideFigure(runs, i))(t)
		if want := fmt.Sprintf("after %d gradient steps", r.Steps); !strings.Contains(f.Caption, want) || len(f.Panels) != 3 {
			t.Errorf("%d panels, %q, want 3 and %q", len(f.Panels), f.Caption, want)
		}
		for panel, top := range []float64{9, 9, 18} {
			if got := f.Panels[panel][0].Y.Max; got != top {
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
		shown int
		want  string
	}{
		{nil, 0, "number 0 is to be shown, and there are 0"},
		{runs, 2, "number 2"},
		{runs, -1, "number -1"},
		{[]Inside{runs[0], {Steps: 7}}, 0, "after 7 steps there are energies of 0 layers, after 100 of 2"},
		{[]Inside{{X: []float64{0}, Std: nil}}, 0, "inside networks"},
	} {
		if _, err := InsideFigure(wrong.runs, wrong.shown); err == nil || !strings.Contains(err.Error(), wrong.want) {
			t.Errorf("number %d of %d: %v, want %q", wrong.shown, len(wrong.runs), err, wrong.want)
		}
	}
}

func TestLookInsideRefuses(t *testing.T) {
	seedless := Cubic()
	seedless.Seeds = nil
	for _, c := range []struct {
		name string
		p    Protocol
		m    methods.Method
		want string
	}{
		{"moons", Moons(), methods.Density, "only the cubic"},
		{"no energies", short20(), methods.Rank1, "energy model"},
		{"no seeds", seedless, methods.Density, "no seeds"},
		{"no layers", Cubic(), methods.Method{Name: "own"}, "own has no layers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			runner(t) // sets the backend
			if _, err := LookInside(t.Context(), c.p, c.m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// short20 is the cubic's protocol with 20 steps.
func short20() Protocol {
	p := Cubic().Quick()
	p.Steps = 20
	return p
}
