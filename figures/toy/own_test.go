package toy_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/toy"
)

// growing is a family of layers y = x W + b + sd |x| eps, whose noise grows with its input.
type growing struct{ sd float64 }

func (l growing) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	eps := stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(-2), units)
	length := graph.Sqrt(graph.AddScalar(graph.ReduceAndKeep(graph.Mul(x, x), graph.ReduceSum, -1), 1e-12))
	return graph.Add(params.Dense(s, x, units), graph.MulScalar(graph.Mul(length, eps), l.sd))
}

// own are two methods of one's own, the second with a title, and a variant of one of the paper's.
func own() methods.List {
	second := methods.New("growing", growing{0.1})
	second.Title = "Noise that grows"
	return methods.List{methods.New("additive", additive{0.3}), second, methods.Density.Variant("Start 0.2", func(o *methods.Options) { o.InitStd = 0.2 })}
}

// quick are the runs of the catalogue and of two methods of one's own at quick scale, of a few steps only, passed off
// as runs of the whole protocol. Both are trained once.
func quick(t *testing.T) []results.Result {
	t.Helper()
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	var lines []results.Result
	for _, p := range []toy.Protocol{toy.Cubic(), toy.Moons()} {
		steps := p.Quick().Steps
		p = p.Quick()
		p.Steps, p.Samples = 8, 6
		list := slices.Concat(methods.All(), own())
		trained := must.Get(toy.Run(t.Context(), p, list...))(t)
		clipped := methods.Density.Variant("", func(o *methods.Options) { o.Clip = true })
		more := must.Get(toy.Run(t.Context(), p, clipped, methods.DensityMean))(t)
		for _, line := range append(trained, more...) {
			line.Experiment.Epochs = steps
			line.Experiment.Samples = map[string]int{toy.CubicName: 1000, toy.MoonsName: 100}[p.Problem]
			line.ID = line.Experiment.ID()
			lines = append(lines, line)
		}
	}
	return lines
}

// Methods of one's own are trained and shown as those of the paper are: each has a row or panel of its own under its
// title, and what the others show stays as it was.
func TestOwnMethods(t *testing.T) {
	lines := quick(t)
	for _, line := range lines {
		if line.Diverged || line.Experiment.Method == "growing" && len(line.Series) == 0 {
			t.Errorf("%v diverged or has no series", line.Experiment)
		}
	}
	full := slices.Clone(lines) // the table of distances is of full runs
	for i := range full {
		full[i].Experiment.Scale = results.Full
		full[i].Experiment.Epochs = map[string]int{toy.CubicName: 4000, toy.MoonsName: 1000}[full[i].Experiment.Dataset]
		full[i].ID = full[i].Experiment.ID()
	}
	for _, c := range []struct {
		name  string
		lines []results.Result
		make  func([]results.Result, ...methods.Method) (report.Table, error)
	}{
		{"gap-ratio", lines, func(lines []results.Result, further ...methods.Method) (report.Table, error) {
			return toy.Tables(further...)[0].Make(lines)
		}},
		{"distance", full, toy.DistanceTable},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := must.Get(c.make(c.lines))(t)
			after := must.Get(c.make(c.lines, own()...))(t)
			if len(after.Rows) != len(before.Rows)+3 {
				t.Fatalf("%d rows with three methods more than %d", len(after.Rows), len(before.Rows))
			}
			for i, row := range after.Rows {
				want := report.Row{}
				if i < len(before.Rows) {
					want = before.Rows[i]
				} else if want.Name = own()[i-len(before.Rows)].Title; row.Name != want.Name {
					t.Errorf("row %d is %q, want %q", i, row.Name, want.Name)
				}
				for k, cell := range row.Cells {
					if got := figtest.Text(cell); want.Cells != nil && got != figtest.Text(want.Cells[k]) || strings.Contains(got, "not run") {
						t.Errorf("%s, %s: %q", row.Name, after.Columns[k+1], got)
					}
				}
			}
			figtest.Renders(t, after)
		})
	}
	for i, named := range toy.Figures(own()...) {
		t.Run(named.Name, func(t *testing.T) {
			before := must.Get(toy.Figures()[i].Make(lines, 1))(t)
			after := must.Get(named.Make(lines, 1))(t)
			want := figtest.Titles(before)
			if named.Name != "figure1-energies" { // which compares energy models alone
				for k, m := range own() {
					title := m.Title
					if strings.HasPrefix(named.Name, "figure1") {
						title = []string{"(e) ", "(f) ", "(g) "}[k] + title
					}
					want = append(want, title)
				}
			}
			got := figtest.Titles(after)
			if len(got) != len(want) {
				t.Fatalf("panels %q, want %q", got, want)
			}
			for k := range got {
				if !strings.HasPrefix(got[k], want[k]) {
					t.Errorf("panel %d is %q, want %q", k, got[k], want[k])
				}
			}
			if _, err := after.Bytes(report.SVG); err != nil {
				t.Error(err)
			}
		})
	}
	// Which run a panel shows is found by the method, not by its place in the list of lines.
	slices.Reverse(lines)
	if _, err := toy.Figure1(lines, 1, 4, own()...); err != nil {
		t.Error(err)
	}
	if _, err := toy.Figure1(slices.DeleteFunc(lines, func(r results.Result) bool { return r.Experiment.Method == "growing" }), 1, 4, own()...); err == nil || !strings.Contains(err.Error(), "additive, growing, density init_std=0.2; run") {
		t.Errorf("without the runs of a method of one's own: %v", err)
	}
}

// Two methods of one name would take each other's results.
func TestOwnMethodsAreChecked(t *testing.T) {
	if _, err := toy.Run(t.Context(), toy.Cubic(), methods.New("density", additive{1}), methods.Density); err == nil || !strings.Contains(err.Error(), `two methods are named "density"`) {
		t.Errorf("got %v", err)
	}
}

// A protocol that asks for nothing, or for a run that cannot be, is refused before training.
func TestProtocolsThatCannotBe(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	for _, c := range []struct {
		name   string
		change func(p *toy.Protocol)
		list   methods.List
		want   string
	}{
		{"no seeds", func(p *toy.Protocol) { p.Seeds = nil }, methods.List{methods.MFVI}, "there are no experiments"},
		{"no methods", func(*toy.Protocol) {}, nil, "there are no experiments"},
		{"a seed twice", func(p *toy.Protocol) { p.Seeds = []uint64{1, 2, 1} }, methods.List{methods.MFVI}, "the seed 1 is there twice"},
		{"samples", func(p *toy.Protocol) { p.Samples = 0 }, methods.List{methods.MFVI}, "samples is 0, want at least 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := toy.Cubic().Quick()
			p.Progress = func(_ float64, note string) { t.Errorf("it runs: %s", note) }
			c.change(&p)
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // what is not refused must not train for long
			if _, err := toy.Run(ctx, p, c.list...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
