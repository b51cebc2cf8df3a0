package uci

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// The examples for choosing are a fifth of the training part; no example of the test part is among them or the rest.
func TestForChoosing(t *testing.T) {
	splits := must.Get(datasets.GalSplits("yacht"))(t)
	for number, s := range splits {
		parts := forChoosing(s, number)
		both := slices.Concat(parts.Train, parts.Test)
		slices.Sort(both)
		train := slices.Sorted(slices.Values(s.Train))
		if !slices.Equal(both, train) {
			t.Fatalf("split %d: the parts are not those of the training part", number)
		}
		if want := int(math.Round(0.2 * float64(len(s.Train)))); len(parts.Test) != want {
			t.Errorf("split %d: %d examples to choose by, want %d", number, len(parts.Test), want)
		}
	}
	if a, b := forChoosing(splits[0], 0), forChoosing(splits[0], 1); slices.Equal(a.Test, b.Test) {
		t.Error("two splits have the same examples to choose by")
	}
}

// A run that tries settings sees nothing of its split's test part.
func TestGridRunsAreTestedOnTrainingExamples(t *testing.T) {
	e := Paper().On("yacht").Experiments(methods.Density)[3]
	e.Scale = results.Grid
	s := must.Get(load(t.Context(), e, false))(t)
	full := e
	full.Scale = results.Full
	whole := must.Get(load(t.Context(), full, false))(t)
	if got, want := s.train.Len()+len(s.target), whole.train.Len(); got != want {
		t.Errorf("%d examples in both parts, want the %d of the training part", got, want)
	}
}

// tried are made-up results of all settings on the splits of yacht: the negative log likelihood is that of score.
func tried(m methods.Method, score func(c choice) float64) (lines []results.Result) {
	p := Paper().On("yacht")
	p.Scale = results.Grid
	for _, c := range p.grid(m) {
		lines = append(lines, made(c.apply(p, m).Experiments(m), func(results.Experiment) map[string]float64 {
			return map[string]float64{results.MetricNLL: score(c)}
		})...)
	}
	return lines
}

func TestChoose(t *testing.T) {
	density := tried(methods.Density, func(c choice) float64 {
		if c.optimizer == methods.Adam && c.scale == 0.01 {
			return -1
		}
		return c.scale
	})
	if len(density) != 8*20 {
		t.Fatalf("%d runs, want 8 settings on 20 splits", len(density))
	}
	single := tried(methods.Deterministic, func(c choice) float64 {
		return map[methods.Optimizer]float64{methods.SGD: 1, methods.Adam: 2}[c.optimizer]
	})
	rank1 := tried(methods.Rank1, func(c choice) float64 { return c.scale })
	for i := range 20 {
		rank1[i].Diverged = true // with the first setting, the lowest
	}
	for _, c := range []struct {
		name  string
		lines []results.Result
		want  string // of each split, after its number
		lacks string // one of the missing, "" for density on yacht not among them
	}{
		{"nothing was run", nil, "", "all methods on yacht (gal splits)"},
		{"lowest", density, "density,adam,0.01,-1.0000", ""},
		{"without noise", single, "deterministic,sgd,0,1.0000", "density, "},
		{"diverged", rank1, "rank1,adam,0.003,0.0030", "density, "},
		{"one is missing", density[1:], "", "all methods on yacht (gal splits)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, missing, err := Choose(c.lines)
			if err != nil {
				t.Fatal(err)
			}
			ofYacht := slices.DeleteFunc(missing, func(of string) bool { return !strings.HasSuffix(of, " on yacht (gal splits)") })
			if got := strings.Join(ofYacht, ""); !strings.Contains(got, c.lacks) || c.lacks == "" && (got == "" || strings.Contains(got, "density, ") || strings.Contains(got, "all")) {
				t.Errorf("missing are %q, want one with %q", got, c.lacks)
			}
			want := strings.Join(tunedHeading, ",") + "\n"
			for split := 0; c.want != "" && split < 20; split++ {
				want += fmt.Sprintf("yacht,gal,%d,%s\n", split, c.want)
			}
			if string(text) != want {
				t.Errorf("got\n%s\nwant\n%s", text, want)
			}
			if _, err := parseChoices(string(text)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestParseChoices(t *testing.T) {
	heading := strings.Join(tunedHeading, ",") + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "heading"},
		{"heading", "a,b\n", "heading"},
		{"split", heading + "yacht,gal,x,density,adam,0.01,1\n", "line 2"},
		{"scale", heading + "yacht,gal,1,density,adam,x,1\n", "line 2"},
		{"negative scale", heading + "yacht,gal,1,density,adam,-1,1\n", "init_std"},
		{"optimizer", heading + "yacht,gal,1,density,lbfgs,0.1,1\n", "optimizer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := parseChoices(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// The experiments of tuned settings are those of the paper's protocol with the options chosen for each split.
func TestTuned(t *testing.T) {
	all := must.Get(parseChoices(strings.Join(tunedHeading, ",") + "\nyacht,gal,1,density,adam,0.01,1\nyacht,gal,3,density,sgd,0.1,1\nyacht,gal,3,mcdropout,sgd,0.03,1\n"))(t)
	p := Paper().On("yacht")
	p.choices = all
	var got []string
	for _, e := range p.Experiments(methods.Density, methods.MCDropout) {
		if _, _, err := ProtocolOf(e, methods.All()); err != nil {
			t.Error(err)
		}
		got = append(got, e.String())
	}
	want := []string{
		"uci density init_std=0.01 optimizer=adam on yacht gal split 1, 100 epochs, 10 samples, seed 1 (paper, full)",
		"uci density init_std=0.1 optimizer=sgd on yacht gal split 3, 100 epochs, 10 samples, seed 3 (paper, full)",
		"uci mcdropout dropout_rate=0.03 optimizer=sgd on yacht gal split 3, 100 epochs, 10 samples, seed 3 (paper, full)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if err := p.untuned(methods.List{methods.Density, methods.Rank1}); err == nil || !strings.Contains(err.Error(), "no settings were chosen for rank1 on yacht") {
		t.Errorf("got %v", err)
	}
	if err := Paper().untuned(methods.List{methods.Rank1}); err != nil {
		t.Error(err)
	}
}

// The committed choices are those of the committed results.
func TestCommittedChoices(t *testing.T) {
	lines := must.Get(results.Committed())(t)
	if want, _, err := Choose(lines); err != nil || tunedCSV != string(want) {
		t.Errorf("figures/uci/tuned.csv is not what the results say (%v); make it anew with reproduce choose", err)
	}
}

// From the text to the released code and back, each option of density layers is taken once in each direction.
func TestOneAtATime(t *testing.T) {
	var got []string
	for _, way := range directions() {
		for _, s := range way.steps {
			got = append(got, way.from+" "+s.option+"="+s.value)
			if d := methods.Departures(s.protocol, way.base); len(d) != 1 || d[s.option] != s.value {
				t.Errorf("%s: the protocol differs by %v", s.option, d)
			}
			if s.protocol.Splits != GalSplits {
				t.Errorf("%s: splits are %s", s.option, s.protocol.Splits)
			}
		}
	}
	want := []string{
		"paper noise=uniform01", "paper clip=true", "paper gradients=detached", "paper variance=half-d", "paper hidden_layers=3", "paper energy_optimizer=joint", "paper decay=all", "paper pretrain_epochs=0",
		"released noise=gaussian", "released clip=false", "released gradients=paper", "released variance=plain", "released hidden_layers=2", "released energy_optimizer=own", "released decay=weights", "released pretrain_epochs=0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Three of the options make a difference of -0.1 with 0.02 above and below in turn: a corrected standard error of 0.00824 (see
// TestEnergyTable). The others were not run.
func TestOptionsEffects(t *testing.T) {
	way := directions()[0]
	lines := made(way.base.On("wine").Experiments(methods.Density), spread(2, 0, 0.1))
	lines = append(lines, made(way.steps[0].protocol.On("wine").Experiments(methods.Density), spread(1.9, 0, 0.12))...)
	table := must.Get(optionsEffects(lines))(t)
	check(t, table, [][3]string{
		{"paper, noise=uniform01", "Wine Quality Red", "*-0.100 [-0.117, -0.083], better*"},
		{"paper, noise=uniform01", "Yacht Hydrodynamics", "not run"},
		{"released, noise=gaussian", "Wine Quality Red", "not run"},
	})
	f := must.Get(optionsPicture(lines, 0))(t)
	if len(f.Panels) != 2 || len(f.Panels[0]) != 3 {
		t.Errorf("%d rows of panels", len(f.Panels))
	}
}

// The longer runs are compared with density layers with detached energies after as many epochs.
func TestConvergedTable(t *testing.T) {
	lines := slices.Concat(
		made(of(detached, "yacht"), level(3)), made(of(methods.Rank1, "yacht"), level(2)),
		made(longTraining().On("yacht").Experiments(detached), level(1)), made(longTraining().On("yacht").Experiments(methods.Rank1), level(2)),
		made(longestTraining().On("yacht").Experiments(methods.Density), level(1)),
	)
	table := must.Get(ConvergedTable(lines))(t)
	check(t, table, [][3]string{
		{"Yacht Hydrodynamics, 100", "Rank-1 BNN", "*2.000 ± 0.103 (n=20)* | *-1.000 [-1.000, -1.000], better*"},
		{"Yacht Hydrodynamics, 400", "Rank-1 BNN", "2.000 ± 0.103 (n=20) | +1.000 [+1.000, +1.000], worse"},
		{"Yacht Hydrodynamics, 4000", "Density Uncertainty", "*1.020 ± 0.110 (n=5)*"},
		{"Yacht Hydrodynamics, 4000", "Rank-1 BNN", "not run"},
		{"Yacht Hydrodynamics, 4000", "MFVI", "–"},
		{"Yacht Hydrodynamics, 4000, stopped early", "Rank-1 BNN", "not run"},
		{"Yacht Hydrodynamics, 4000, stopped early", "SNGP", "–"},
	})
	if len(table.Notes) != 0 {
		t.Errorf("without constant energy there is no change of a lead: %q", table.Notes)
	}
	// Detached energies are ahead by 1 on both sets after 100 epochs. On yacht nothing is left of it after 400.
	for _, dataset := range []string{"yacht", "wine"} {
		lead := map[string]float64{"yacht": 0, "wine": 1}[dataset]
		lines = slices.Concat(lines,
			made(of(detached, dataset), level(3)), made(of(methods.DensityConstant, dataset), level(4)),
			made(longTraining().On(dataset).Experiments(detached), level(1)), made(longTraining().On(dataset).Experiments(methods.DensityConstant), level(1+lead)))
	}
	table = must.Get(ConvergedTable(lines))(t)
	if want := ", undecided; Yacht Hydrodynamics -1.000 [-1.000, -1.000], lower."; len(table.Notes) != 1 || !strings.Contains(table.Notes[0], ": Wine Quality Red +0.00000 [") || !strings.HasSuffix(table.Notes[0], want) {
		t.Errorf("the notes are %q, want one that ends with %q", table.Notes, want)
	}
}

// The picture of longer training has the means over the splits that all lengths have; what is not complete is not drawn.
func TestEpochsPicture(t *testing.T) {
	five := func(p Protocol) Protocol {
		p.Only = longestTraining().Only
		return p.On("yacht")
	}
	lines := slices.Concat(
		made(five(Paper()).Experiments(detached), level(3)), made(longTraining().On("yacht").Experiments(detached), level(1)), made(five(longestTraining()).Experiments(detached), level(2)),
		made(five(Paper()).Experiments(methods.MCDropout), level(4)), made(five(longestTraining()).Experiments(methods.MCDropout)[1:], level(1)),
	)
	for _, c := range []struct {
		name  string
		lines []results.Result
		drawn int // shapes of the panel of Yacht
		top   float64
	}{{"nothing run", nil, 0, 1}, {"two methods", lines, 4, 4.3}} {
		t.Run(c.name, func(t *testing.T) {
			f := must.Get(epochsPicture(c.lines, 0))(t)
			if len(f.Panels) != 2 || len(f.Panels[1]) != 3 {
				t.Fatalf("%d rows of panels", len(f.Panels))
			}
			svg := string(must.Get(f.Bytes(report.SVG))(t))
			p := f.Panels[1][2]
			if p.Title.Text != "Yacht Hydrodynamics" || c.lines != nil && math.Abs(p.Y.Max-c.top) > 0.1 || p.X.Min > 2 || p.X.Max < math.Log10(4000) {
				t.Errorf("%s from %v to %v and up to %v, want %v", p.Title.Text, p.X.Min, p.X.Max, p.Y.Max, c.top)
			}
			if got := strings.Count(svg, "<path") - strings.Count(string(must.Get(must.Get(epochsPicture(nil, 0))(t).Bytes(report.SVG))(t)), "<path"); c.drawn == 0 && got != 0 || c.drawn > 0 && got < c.drawn {
				t.Errorf("%d shapes more than without runs, want at least %d", got, c.drawn)
			}
			for _, wrong := range []string{"NaN", "Inf"} {
				if strings.Contains(svg, wrong) {
					t.Errorf("the picture has a %s", wrong)
				}
			}
		})
	}
}

// With 1000 samples the difference is to density uncertainty with as many, with 10 to 1000 of the same method. SNGP has
// no samples, and one run for both.
func TestSamplesTable(t *testing.T) {
	many := manySamples().On("yacht")
	table := must.Get(SamplesTable(slices.Concat(
		made(of(methods.Density, "yacht"), level(3)), made(many.Experiments(methods.Density), level(2)),
		made(of(methods.SNGP, "yacht"), level(1)), made(many.Experiments(methods.Rank1), level(4)),
	)))(t)
	check(t, table, [][3]string{
		{"Yacht Hydrodynamics, 1000", "Density Uncertainty", "2.000 ± 0.103 (n=20)"},
		{"Yacht Hydrodynamics, 10", "Density Uncertainty", "3.000 ± 0.103 (n=20) | +1.000 [+1.000, +1.000], worse"},
		{"Yacht Hydrodynamics, 1000", "SNGP", "1.000 ± 0.103 (n=20) | *-1.000 [-1.000, -1.000], better*"},
		{"Yacht Hydrodynamics, 10", "SNGP", "1.000 ± 0.103 (n=20)"},
		{"Yacht Hydrodynamics, 1000", "Rank-1 BNN", "4.000 ± 0.103 (n=20) | +2.000 [+2.000, +2.000], worse"},
		{"Yacht Hydrodynamics, 10", "Rank-1 BNN", "not run"},
		{"Yacht Hydrodynamics, 1000", "DUE", "not run"},
	})
}
