package toy

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// committed is the index of the committed results, read once.
var committed = sync.OnceValues(tables.Committed)

func exhibit(t *testing.T, name string) tables.Exhibit {
	t.Helper()
	return figtest.Exhibit(t, Exhibits(), name)
}

// The figures of the stored runs.
func TestFigures(t *testing.T) {
	x := must.Get(committed())(t)
	for _, named := range Exhibits().Pictures() {
		t.Run(named.Name, func(t *testing.T) {
			f, err := named.Picture(x)
			if f.Name != named.Name {
				t.Errorf("it calls itself %q", f.Name)
			}
			figtest.Golden(t)(f, err)
		})
	}
	seven, _ := x.Find(grid.Of(Cubic{Seeds: 8}, methods.MFVI)[7])
	must.GetErr(Pictures([]experiment.Result{seven}))(t, experiment.ErrNoPredictions, "the seeds 0 to 2")
}

// Without a run a figure says which, and how to make it. A run that diverged has no curves, and its panel says so.
func TestPanelsOfMissingAndDivergedRuns(t *testing.T) {
	full := passedOff(t, drawn(0))
	for _, c := range []struct {
		figure string
		method experiment.Method
		panel  int
		want   string
	}{
		{"figure1", methods.MFVI, 0, "figure1 needs seed 0 of (a) MFVI; run: reproduce run figure1"},
		{"figure1-energies", clipped, 1, "seed 0 of LDL, clipped to [0, D]; run: reproduce run figure1-energies"},
		{"distance-toy", methods.DUE, 4, "seed 0 of DUE; run: reproduce run distance-toy"},
		{"distance-moons", methods.SNGP, 3, "seed 0 of SNGP; run: reproduce run distance-moons"},
	} {
		t.Run(c.figure, func(t *testing.T) {
			must.GetErr(exhibit(t, c.figure).Picture(tables.Of(without(full, c.method.Name))))(t, c.want)
			list := slices.Clone(full)
			for i := range list {
				list[i].Diverged = list[i].Method == c.method.Name
			}
			f := must.Get(exhibit(t, c.figure).Picture(tables.Of(list)))(t)
			for i, title := range figtest.Titles(f) {
				if strings.Contains(title, "diverged") != (i == c.panel) {
					t.Errorf("panel %d has the title %q", i, title)
				}
			}
			must.Get(f.Bytes(report.SVG))(t)
		})
	}
}

func TestPictures(t *testing.T) {
	cubic := grid.Of(Cubic{Seeds: 2}, methods.Rank1)
	cubic = append(cubic, grid.Of(Cubic{Seeds: 2}, methods.Density)...)
	list := passedOff(t, cubic)
	f := must.Get(Pictures(list))(t)
	want := []string{"Rank-1 BNN, seed 0", "Rank-1 BNN, seed 1", "Density Uncertainty, seed 0", "Density Uncertainty, seed 1"}
	if got := figtest.Titles(f); !slices.Equal(got, want) || len(f.Panels) != 2 || len(f.Panels[0]) != 3 {
		t.Errorf("panels %q, want %q, three in a row", got, want)
	}
	moons := experiment.Result{}.Of(grid.Of(Moons{Seeds: 1}, methods.Deterministic)[0])
	for want, wrong := range map[string][]experiment.Result{
		"there are no runs to show": nil, "is not on the cubic": {list[0], moons}, "does not know its experiment": {{ID: "x"}},
	} {
		must.GetErr(Pictures(wrong))(t, want)
	}
}

// A browser shows the maps of an SVG in the whole of their rectangles. They are PNG, and are called so.
func TestMaps(t *testing.T) {
	f := must.Get(distanceMoons(must.Get(committed())(t)))(t)
	svg := must.Get(f.Bytes(report.SVG))(t)
	images, stretched := bytes.Count(svg, []byte("<image")), bytes.Count(svg, []byte(`<image preserveAspectRatio="none" `))
	if images != len(distanceMethods) || stretched != images {
		t.Errorf("%d of %d images fill their place", stretched, images)
	}
	if !strings.Contains(string(svg), "data:image/png;base64,iVBOR") || strings.Contains(string(svg), "image/jp") {
		t.Error("the maps are not called PNG")
	}
}

// Every experiment has a stored result.
func TestRunsAreStored(t *testing.T) {
	x := must.Get(committed())(t)
	for name, want := range map[string]int{"gap-ratio": 160, "distance": 54, "figure1": 160, "figure1-energies": 3} {
		list := exhibit(t, name).Runs()
		for _, e := range list {
			if _, is := x.Find(e); !is {
				t.Errorf("%v of %s is not stored", e, name)
			}
		}
		if len(list) != want {
			t.Errorf("%s is made of %d runs, want %d", name, len(list), want)
		}
	}
}
