package uci_test

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/plot"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/uci"
)

// additive is a family of layers y = x W + b + sd eps, whose noise is the same everywhere.
type additive struct{ sd float64 }

func (l additive) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	eps := stochastic.Draw(s, x, stochastic.Gaussian(), x.Shape().Dim(-2), units)
	return graph.Add(params.Dense(s, x, units), graph.MulScalar(eps, l.sd))
}

// own are two methods of one's own, the second with a title, and a variant of one of the paper's.
func own() methods.List {
	second := methods.New("growing", growing{0.1})
	second.Title = "Noise that grows"
	return methods.List{methods.New("additive", additive{0.3}), second, methods.Density.Variant("Start 0.2", func(o *methods.Options) { o.InitStd = 0.2 })}
}

// Methods of one's own are trained and shown as those of the paper are: each has a column or row of its own under its
// title, and what the others show stays as it was.
func TestOwnMethods(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	var lines []results.Result
	for _, c := range []struct {
		splits    string
		optimizer methods.Optimizer
	}{{uci.GalSplits, ""}, {uci.GalSplits, methods.Adam}, {uci.GapSplits, ""}} {
		p := uci.Paper().On("yacht")
		p.Epochs, p.Samples, p.Only, p.Splits, p.Optimizer = 2, 3, []int{0, 1}, c.splits, c.optimizer
		found := must.Get(uci.Run(t.Context(), p, slices.Concat(methods.List{methods.Density, methods.Rank1, methods.Ensemble}, own())...))(t)
		for _, line := range found { // passed off as runs of the whole protocol
			line.Experiment.Epochs, line.Experiment.Samples = 100, 10
			line.ID = line.Experiment.ID()
			lines = append(lines, line)
		}
	}
	if len(lines) != 3*6*2 {
		t.Fatalf("%d lines", len(lines))
	}
	type table struct {
		name   string
		make   func([]results.Result, ...methods.Method) (report.Table, error)
		titles []string // of the further columns; none for tables that do not compare all methods
	}
	plain := []string{"additive", "Noise that grows", "Start 0.2"}
	var tables []table
	for _, metric := range []string{results.MetricRMSE, results.MetricNLL} {
		tables = append(tables, table{"paired-" + metric, func(lines []results.Result, further ...methods.Method) (report.Table, error) {
			return uci.Paired(lines, metric, further...)
		}, plain})
	}
	for i, named := range uci.Tables() {
		of := table{named.Name, func(lines []results.Result, further ...methods.Method) (report.Table, error) {
			return uci.Tables(further...)[i].Make(lines)
		}, nil}
		switch named.Name {
		case "uci-nll", "uci-rmse":
			of.titles = []string{"additive (not in the paper)", "Noise that grows (not in the paper)", "Start 0.2 (not in the paper)"}
		case "uci-adam", "uci-gap", "uci-tuned", "uci-scores":
			of.titles = plain
		}
		tables = append(tables, of)
	}
	for _, c := range tables {
		t.Run(c.name, func(t *testing.T) {
			before := must.Get(c.make(lines))(t)
			// Nothing may depend on the order of the lines.
			shuffled := slices.Clone(lines)
			slices.Reverse(shuffled)
			after := must.Get(c.make(shuffled, own()...))(t)
			if want := slices.Concat(before.Columns, c.titles); !slices.Equal(after.Columns, want) || len(after.Rows) != len(before.Rows) {
				t.Fatalf("%d rows of columns %q, want %q", len(after.Rows), after.Columns, want)
			}
			for i, row := range after.Rows {
				for k, cell := range row.Cells {
					got := figtest.Text(cell)
					if k < len(before.Rows[i].Cells) {
						if want := figtest.Text(before.Rows[i].Cells[k]); got != want {
							t.Errorf("%s, %s: %q, without the further methods %q", row.Name, after.Columns[k+1], got, want)
						}
					} else if tuned := strings.Contains(row.Name, ", tuned,") || c.name == "uci-tuned"; tuned && strings.HasPrefix(after.Columns[k+1], "Start") {
						continue // tuned as density layers are, of which these may be the runs with Adam
					} else if none, ran := got == "–", strings.HasPrefix(row.Name, "Yacht"); none != tuned || !tuned && ran == strings.Contains(got, "not run") {
						t.Errorf("%s, %s: %q", row.Name, after.Columns[k+1], got)
					}
				}
			}
			figtest.Renders(t, after)
		})
	}
	for i, named := range uci.Figures(own()...) {
		if slices.Contains([]string{"uci-options", "uci-energy", "uci-epochs"}, named.Name) { // do not compare all methods
			continue
		}
		t.Run("figure "+named.Name, func(t *testing.T) {
			before := must.Get(uci.Figures()[i].Make(lines, 0))(t)
			after := must.Get(named.Make(lines, 0))(t)
			labels := func(f report.Figure) (list []string) {
				for _, tick := range f.Panels[0][0].Y.Tick.Marker.(plot.ConstantTicks) {
					list = append(list, tick.Label)
				}
				return list
			}
			if got, want := labels(after), slices.Concat(labels(before), plain); !slices.Equal(got, want) {
				t.Errorf("the rows are %q, want %q", got, want)
			}
			if _, err := after.Bytes(report.SVG); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("table of runs", func(t *testing.T) {
		of := func(protocols ...uci.Protocol) (made []results.Result) { // density's lines, passed off as runs of protocols
			for _, p := range protocols {
				for i, e := range p.On("yacht").Experiments(methods.Density)[:2] {
					made = append(made, results.Result{ID: e.ID(), Experiment: e, Metrics: lines[i].Metrics})
				}
			}
			return made
		}
		onGal, grid := uci.Released(), uci.Paper()
		onGal.Splits, grid.Scale = uci.GalSplits, results.Grid
		var all []string
		for _, what := range []string{", Yacht Hydrodynamics", " optimizer=adam, Yacht Hydrodynamics", ", Yacht Hydrodynamics, gaps"} {
			for _, name := range []string{"density", "rank1", "ensemble", "additive", "growing", "density init_std=0.2"} {
				all = append(all, name+what)
			}
		}
		for _, c := range []struct {
			name  string
			lines []results.Result
			want  []string // names of rows and data sets
		}{
			{"methods, options and splits", lines, all},
			{"fidelities that have other splits", of(uci.Paper(), uci.Released()), []string{"density, Yacht Hydrodynamics", "density, Yacht Hydrodynamics, random splits"}},
			{"fidelities on the same splits", of(uci.Paper(), uci.Released(), onGal), []string{
				"density, paper, Yacht Hydrodynamics", "density, Yacht Hydrodynamics, random splits", "density, released, Yacht Hydrodynamics"}},
			{"beside a choice of settings", of(uci.Paper(), grid), []string{"density, Yacht Hydrodynamics", "density, Yacht Hydrodynamics, held-out training examples"}},
			{"a choice of settings alone", of(grid), []string{"density, Yacht Hydrodynamics, held-out training examples"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				table := must.Get(uci.Table(c.lines))(t)
				var rows []string
				for _, row := range table.Rows {
					rows = append(rows, row.Name+", "+figtest.Text(row.Cells[0]))
				}
				if !slices.Equal(rows, c.want) {
					t.Errorf("the rows are %q, want %q", rows, c.want)
				}
			})
		}
	})
}

// Two methods of one name would take each other's results, also where one has other options.
func TestOwnMethodsAreChecked(t *testing.T) {
	five := methods.Density.Variant("five", nil)
	five.Members = 5
	for _, c := range []struct {
		name string
		list methods.List
	}{
		{"one name", methods.List{methods.New("density", additive{1}), methods.Density}},
		{"a variant of another method", methods.List{methods.New("density", additive{1}).Variant("", nil), methods.Density}},
		{"variants of two families", methods.List{methods.New("mine", additive{1}).Variant("slow", nil), methods.New("mine", additive{2})}},
		{"a variant that is an ensemble", methods.List{methods.Density, five}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := uci.Run(t.Context(), uci.Paper(), c.list...); err == nil || !strings.Contains(err.Error(), "two methods are named") {
				t.Errorf("got %v", err)
			}
		})
	}
	mine := methods.New("mine", additive{1})
	if err := (methods.List{mine, mine.Variant("slow", nil), mine.Variant("fast", nil)}).Validate(); err != nil {
		t.Error(err)
	}
}

// Data of one's own are split, trained on and scored as a UCI set with the same numbers is.
func TestOwnData(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	yacht := must.Get(datasets.UCI("yacht"))(t)
	mine := *yacht
	mine.Name = "mine"
	for _, splits := range []string{uci.RandomSplits, uci.GapSplits} {
		t.Run(splits, func(t *testing.T) {
			p := uci.Paper()
			p.Splits = splits
			run := func(p uci.Protocol) []results.Result {
				p = p.Quick()
				p.Epochs, p.Samples = 2, 3
				return must.Get(uci.Run(t.Context(), p, methods.Density, methods.Rank1))(t)
			}
			got, want := run(p.OnOwn(&mine)), run(p.On("yacht"))
			if len(got) != 4 || len(want) != 4 {
				t.Fatalf("%d and %d lines", len(got), len(want))
			}
			for i := range got {
				if got[i].Experiment.Dataset != "mine" || got[i].Experiment.Split != want[i].Experiment.Split || !maps.Equal(got[i].Metrics, want[i].Metrics) {
					t.Errorf("%v has %v, %v has %v", got[i].Experiment, got[i].Metrics, want[i].Experiment, want[i].Metrics)
				}
			}
			table := must.Get(uci.Table(got))(t)
			if title := table.Rows[0].Cells[0][0].Text; !strings.HasPrefix(title, "mine") {
				t.Errorf("the data set is shown as %q", title)
			}
		})
	}
	if n := len(uci.Paper().OnOwn(&mine).Experiments(methods.Density)); n != 20 {
		t.Errorf("%d splits, want 20", n)
	}
}

func TestOwnDataErrors(t *testing.T) {
	set := func(name string, n int) *datasets.Regression {
		y := make([]float64, n)
		y[0] = 1
		return &datasets.Regression{Name: name, X: make([]float64, n), Y: y, N: n, D: 1}
	}
	constant := set("mine", 9)
	constant.Y[0] = 0
	broken := set("mine", 9)
	broken.X[3] = math.Inf(1)
	published := uci.Paper().OnOwn(set("mine", 9))
	published.Splits = uci.GalSplits
	for _, c := range []struct {
		name     string
		protocol uci.Protocol
		want     string
	}{
		{"a name that no file can have", uci.Paper().OnOwn(set("My Set", 9)), `data set is "My Set"`},
		{"a UCI set's name", uci.Paper().OnOwn(set("wine", 9)), `two data sets "wine"`},
		{"a name twice", uci.Paper().OnOwn(set("mine", 9), set("mine", 9)), `two data sets "mine"`},
		{"infinite", uci.Paper().OnOwn(broken), "example 3, feature 0 is +Inf"},
		{"a constant target", uci.Paper().OnOwn(constant), "the target is 0 in all 9 examples"},
		{"few examples", uci.Paper().OnOwn(set("mine", 3)), "has 3 examples"},
		{"published splits", published, "no published splits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := uci.Run(t.Context(), c.protocol, methods.Deterministic); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v lacks %q", err, c.want)
			}
		})
	}
}

// A protocol that asks for what there is not, for nothing, or for a run that cannot be, is refused before training.
func TestProtocolsThatCannotBe(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	only := func(dataset string, splits ...int) uci.Protocol {
		p := uci.Paper().On(dataset)
		p.Only = splits
		return p
	}
	changed := func(change func(p *uci.Protocol)) uci.Protocol {
		p := uci.Paper().On("yacht").Quick()
		change(&p)
		return p
	}
	density := methods.List{methods.Density}
	for _, c := range []struct {
		name     string
		protocol uci.Protocol
		list     methods.List
		want     string
	}{
		{"data set", uci.Paper().On("yatch"), density, `there is no data set "yatch", want one of boston, `},
		{"data set of a quick run", uci.Paper().On("yacht", "yatch").Quick(), density, `there is no data set "yatch"`},
		{"large data set of a quick run", uci.Paper().On("protein").Quick(), density, "has no data set; name some of boston, "},
		{"no data set", uci.Paper().On(), density, "for a quick run of boston, yacht, energy-cooling"},
		{"data set twice", uci.Paper().On("yacht", "yacht").Quick(), density, "the data set yacht is there twice"},
		{"no method", uci.Paper().On("yacht").Quick(), nil, "no method was given"},
		{"split", only("yacht", 99), density, "Only is [99], but the gal splits of yacht are 0 to 19"},
		{"negative split", only("yacht", -1), density, "Only is [-1]"},
		{"one split of two", only("yacht", 0, 99), density, "Only has the split 99, but the gal splits of yacht are 0 to 19"},
		{"empty list of splits", changed(func(p *uci.Protocol) { p.Only = []int{} }), density, "Only is []"},
		{"splits", changed(func(p *uci.Protocol) { p.Splits = "other" }), density, `splits are "other", want gal, random or gap`},
		{"samples", changed(func(p *uci.Protocol) { p.Samples = 0 }), density, "samples is 0, want at least 1"},
		{"epochs", changed(func(p *uci.Protocol) { p.Epochs = 0 }), density, "epochs is 0, want at least 1"},
		{"scale", changed(func(p *uci.Protocol) { p.Scale = "foo" }), density, `scale is "foo", want one of full, quick`},
		{"fidelity", changed(func(p *uci.Protocol) { p.Fidelity = "foo" }), density, `fidelity is "foo", want one of paper, released`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.protocol.Progress = func(_ float64, note string) { t.Errorf("it runs: %s", note) }
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // what is not refused must not train for long
			if _, err := uci.Run(ctx, c.protocol, c.list...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
