package toy

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

func TestFigures(t *testing.T) {
	lines := at(results.Full)
	for _, named := range Figures() {
		t.Run(named.Name, func(t *testing.T) {
			f, err := named.Make(lines, 0)
			if f.Name != named.Name || named.Doc == "" {
				t.Errorf("it calls itself %q, doc %q", f.Name, named.Doc)
			}
			figtest.Golden(t)(f, err)
		})
	}
}

func TestQuickFiguresSaySo(t *testing.T) {
	quick, full := at(results.Quick), at(results.Full)
	for _, c := range []struct{ name, words string }{
		{"figure1", "quick run, 800 steps"}, {"figure1-square", "quick run, 800 steps"}, {"figure1-energies", "quick run, 800 steps"},
		{"distance-toy", "quick run, 800 steps"}, {"distance-moons", "quick run, 100 steps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			named := Figures()[slices.IndexFunc(Figures(), func(f report.NamedFigure) bool { return f.Name == c.name })]
			f, err := named.Make(quick, 1)
			if err != nil || !strings.Contains(f.Caption, "QUICK RUN") {
				t.Errorf("caption %q, %v", f.Caption, err)
			}
			for _, title := range figtest.Titles(f) {
				if !strings.Contains(title, c.words) {
					t.Errorf("title %q", title)
				}
			}
			// The full runs are taken where there are both, and part of them is not enough.
			if f, err := named.Make(slices.Concat(quick, full), 1); err != nil || strings.Contains(f.Caption, "QUICK") {
				t.Errorf("full runs beside quick ones: %q, %v", f.Caption, err)
			}
		})
	}
}

// Without a run a figure says which, and how to make it.
func TestMissingRunsAreNamed(t *testing.T) {
	for _, c := range []struct {
		name, figure, missing, want string
	}{
		{"one", "figure1", "mfvi", "figure1 needs seed 0 of mfvi; run: reproduce run figure1"},
		{"with options", "figure1-energies", "density", "seed 0 of density, density clip=true; run: reproduce run figure1"},
		{"of the cubic", "distance-toy", "due", "seed 0 of due; run: reproduce run distance"},
		{"of the moons", "distance-moons", "sngp", "seed 0 of sngp; run: reproduce run distance"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := slices.DeleteFunc(at(results.Full), func(r results.Result) bool { return r.Experiment.Method == c.missing })
			for _, named := range Figures() {
				if named.Name == c.figure {
					if _, err := named.Make(lines, 0); err == nil || !strings.Contains(err.Error(), c.want) {
						t.Errorf("got %v, want %q", err, c.want)
					}
				}
			}
		})
	}
}

// A run that diverged has no curves, and its panel says so, whichever it is.
func TestDivergedPanels(t *testing.T) {
	for _, c := range []struct {
		figure, method string
		panels         []int
	}{
		{"figure1", "mfvi", []int{0}}, {"figure1", "rank1", []int{2}}, {"figure1-square", "rank1", []int{2}},
		{"figure1-energies", "density", []int{0, 1}}, {"figure1-energies", "density-rank1mix", []int{2}},
		{"distance-toy", "deterministic", []int{0}}, {"distance-toy", "due", []int{4}}, {"distance-moons", "due", []int{4}},
	} {
		t.Run(c.figure+" "+c.method, func(t *testing.T) {
			lines := at(results.Full)
			for i := range lines {
				if lines[i].Experiment.Method == c.method {
					lines[i].Diverged, lines[i].Series, lines[i].Metrics = true, nil, nil
				}
			}
			for _, named := range Figures() {
				if named.Name != c.figure {
					continue
				}
				f := must.Get(named.Make(lines, 0))(t)
				for i, title := range figtest.Titles(f) {
					if strings.Contains(title, "diverged") != slices.Contains(c.panels, i) {
						t.Errorf("panel %d has the title %q", i, title)
					}
				}
				if _, err := f.Bytes(report.SVG); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestPictures(t *testing.T) {
	p := Cubic()
	p.Seeds, p.Steps, p.Width = []uint64{4, 5}, 70, 7
	lines := made(p.Experiments(methods.Rank1, methods.Density))
	f := must.Get(Pictures(lines))(t)
	want := []string{"rank1 width=7, seed 4", "rank1 width=7, seed 5", "density width=7, seed 4", "density width=7, seed 5"}
	if got := figtest.Titles(f); !slices.Equal(got, want) || len(f.Panels) != 2 || len(f.Panels[0]) != 3 {
		t.Errorf("panels %q, want %q, three in a row", got, want)
	}
	if strings.Contains(f.Caption, "seed") || strings.Contains(f.Caption, "QUICK") {
		t.Errorf("the caption %q tells of one seed or of quick runs", f.Caption)
	}
	// A quick run among others is marked, and the others are not.
	lines[2] = made(Cubic().Quick().Experiments(methods.MFVI))[0]
	f, err := Pictures(lines)
	if err != nil || !strings.Contains(f.Caption, "QUICK RUN") {
		t.Errorf("with a quick run: caption %q, %v", f.Caption, err)
	}
	want[2] = "mfvi, seed 0\nquick run, 800 steps"
	if got := figtest.Titles(f); !slices.Equal(got, want) {
		t.Errorf("with a quick run: panels %q, want %q", got, want)
	}
	for _, c := range []struct {
		name  string
		lines []results.Result
		want  string
	}{
		{"none", nil, "no runs to show"},
		{"moons", made(Moons().Experiments(methods.SNGP)), "is no run on the cubic"},
	} {
		if _, err := Pictures(c.lines); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestDistanceMoonsTitles(t *testing.T) {
	lines := at(results.Full)
	f := must.Get(DistanceMoons(lines, 1))(t)
	if title := f.Panels[1][0].Title.Text; title != "SNGP\nat data 0.10, far away 0.50" || !strings.Contains(f.Caption, "seed 1") {
		t.Errorf("title %q, caption %q", title, f.Caption)
	}
	// A browser shows the map of an SVG in the whole of its rectangle.
	svg := must.Get(f.Bytes(report.SVG))(t)
	images, stretched := bytes.Count(svg, []byte("<image")), bytes.Count(svg, []byte(`<image preserveAspectRatio="none" `))
	if images != len(DistanceMethods()) || stretched != images {
		t.Errorf("%d of %d images fill their place", stretched, images)
	}
	for i, line := range lines {
		if line.Experiment.Dataset == MoonsName {
			lines[i].Series[results.SeriesEntropy] = line.Series[results.SeriesEntropy][1:]
		}
	}
	if _, err := DistanceMoons(lines, 2); err == nil || !strings.Contains(err.Error(), "30 by 30 places has 899") {
		t.Errorf("a map with a value too few: %v", err)
	}
}

// The maps of an SVG figure are PNG, and are called so.
func TestMapsArePNG(t *testing.T) {
	f := must.Get(DistanceMoons(at(results.Full), 0))(t)
	svg := must.Get(f.Bytes(report.SVG))(t)
	if !strings.Contains(string(svg), "data:image/png;base64,iVBOR") || strings.Contains(string(svg), "image/jp") {
		t.Error("the maps are not called PNG")
	}
}

// What each experiment of the catalogue is for: the figures and the rows that take it in. An experiment that none
// takes in would be run for nothing.
func TestCatalogue(t *testing.T) {
	takes := func(e results.Experiment) (places []string) {
		lines := at(e.Scale)
		without := slices.DeleteFunc(slices.Clone(lines), func(r results.Result) bool { return r.ID == e.ID() })
		for _, named := range Figures() {
			if _, err := named.Make(without, e.Seed); err != nil {
				places = append(places, named.Name)
			}
		}
		whole, err := GapRatios(lines)
		part, err2 := GapRatios(without)
		must.Do(t, errors.Join(err, err2))
		for i, row := range whole.Rows {
			for k := range row.Cells {
				if figtest.Text(row.Cells[k]) != figtest.Text(part.Rows[i].Cells[k]) {
					places = append(places, row.Name)
					break
				}
			}
		}
		return places
	}
	for _, c := range []struct {
		experiment, id string // the identity, pinned for some
		places         []string
	}{
		{"toy mfvi on toy-cubic, 4000 steps, 1000 samples, seed 0 (paper, full)", "fdcfd9c74d99360e", []string{"figure1", "figure1-square", "MFVI"}},
		{"toy vdropout on toy-cubic, 4000 steps, 1000 samples, seed 1 (paper, full)", "3c6f69bf304c6654", []string{"figure1", "figure1-square", "Variational Dropout"}},
		{"toy rank1 on toy-cubic, 800 steps, 1000 samples, seed 2 (paper, quick)", "fc246ba30a775c26", []string{"figure1", "figure1-square", "Rank-1 BNN"}},
		{"toy density on toy-cubic, 4000 steps, 1000 samples, seed 0 (paper, full)", "1a1d29be468c19ae", []string{"figure1", "figure1-square", "figure1-energies", "distance-toy", "Density Uncertainty (LDL)"}},
		{"toy density clip=true on toy-cubic, 4000 steps, 1000 samples, seed 1 (paper, full)", "0263c9366b1681c7", []string{"figure1-energies", "Density Uncertainty (LDL, energy clipped)"}},
		{"toy density-rank1mix on toy-cubic, 4000 steps, 1000 samples, seed 0 (paper, full)", "0ad183f444ae64a9", []string{"figure1-energies", "Density, rank-1 mixture"}},
		{"toy deterministic on toy-cubic, 4000 steps, 1000 samples, seed 0 (paper, full)", "9f3adae2e01f42ff", []string{"distance-toy"}},
		{"toy due on two-moons, 1000 steps, 100 samples, seed 2 (paper, full)", "5e74b421dd347460", []string{"distance-moons"}},
		{"toy density on two-moons, 100 steps, 100 samples, seed 0 (paper, quick)", "3e2461d576492aeb", []string{"distance-moons"}},
	} {
		t.Run(c.experiment, func(t *testing.T) {
			all := results.Union(Sets()...)
			i := slices.IndexFunc(all, func(e results.Experiment) bool { return e.String() == c.experiment })
			if i < 0 {
				t.Fatal("it is not in the catalogue")
			}
			if got := all[i].ID(); got != c.id {
				t.Errorf("its identity is %s, want %s: stored lines would be lost", got, c.id)
			}
			if got := takes(all[i]); !slices.Equal(got, c.places) {
				t.Errorf("it is taken in by %q, want %q", got, c.places)
			}
		})
	}
	for _, e := range results.Union(Sets()...) {
		if err := e.Validate(); err != nil {
			t.Errorf("%v: %v", e, err)
		}
		if _, _, err := ProtocolOf(e, methods.All()); err != nil {
			t.Errorf("it cannot be carried out: %v", err)
		}
		if e.Seed == 0 && e.Scale == results.Full && takes(e) == nil {
			t.Errorf("nothing takes in %v", e)
		}
	}
	// The runs of density on the cubic are of both sets.
	sets := Sets()
	of := func(sets ...results.Set) int {
		return len(results.Filter{Scale: results.Full}.Apply(results.Union(sets...)))
	}
	if common := of(sets[0]) + of(sets[1]) - of(sets[0], sets[1]); common != 3 {
		t.Errorf("%s and %s share %d full runs, want 3", sets[0].Name, sets[1].Name, common)
	}
}
