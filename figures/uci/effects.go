package uci

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// direction is a way from one fidelity towards the other, one option at a time.
type direction struct {
	from  string // the name of the fidelity
	base  Protocol
	steps []step
}

// directions are both ways, on the same splits of the small sets, each with one step more: generative pretraining, which
// the text does not have and both fidelities do.
func directions() []direction {
	text, released := Paper().On(smallDatasets()...), Released().On(smallDatasets()...)
	released.Splits = GalSplits
	ways := []direction{{results.Paper, text, oneAtATime(text, released)}, {results.Released, released, oneAtATime(released, text)}}
	for i, way := range ways {
		p := way.base
		p.PretrainEpochs = 0
		ways[i].steps = append(way.steps, step{"pretrain_epochs", "0", p})
	}
	return ways
}

// An effect is what a test of one option compares: the places of its direction and of its step, and a data set.
type effect struct {
	direction, step int
	dataset         string
}

// effects are the paired differences of the negative log likelihood that single options make, of those for which all
// runs are there.
func effects(index results.Index) (map[effect]tested, error) {
	var tests family[effect]
	for d, way := range directions() {
		for s, step := range way.steps {
			for _, dataset := range smallDatasets() {
				values := func(p Protocol) map[int]float64 { return p.bySplit(index, dataset, methods.Density, results.MetricNLL) }
				if err := tests.add(effect{d, s, dataset}, values(step.protocol), values(way.base), randomSplits, step.protocol.splitCount(dataset)); err != nil {
					return nil, err
				}
			}
		}
	}
	return tests.decided()
}

// optionsEffects says which of the differences between text and released code matter: the paired difference of the
// negative log likelihood of density layers where one option has the other fidelity's value. A row for each option in
// each direction, a column for each of the small data sets.
func optionsEffects(lines []results.Result) (report.Table, error) {
	t := report.Table{Name: "uci-options", Columns: []string{"From, and the one option"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	for _, dataset := range smallDatasets() {
		t.Columns = append(t.Columns, DatasetTitle(dataset))
	}
	tests, err := effects(results.ByID(lines))
	if err != nil {
		return report.Table{}, err
	}
	for d, way := range directions() {
		for i, s := range way.steps {
			row := report.Row{Name: fmt.Sprintf("%s, %s=%s", way.from, s.option, s.value)}
			for _, dataset := range smallDatasets() {
				cell := report.TextCell("not run")
				if test, has := tests[effect{d, i, dataset}]; has {
					cell = report.Cell{test.line(test.verdict)}
				}
				row.Cells = append(row.Cells, cell)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}

// effectMarks are those of the directions. Their colours are of no method, see drawnColours.
var effectMarks = []mark{{colour: report.Navy, shape: draw.CircleGlyph{}}, {colour: report.Brown, shape: draw.PyramidGlyph{}}}

// optionsPicture shows optionsEffects as a picture: a panel for each data set and in it, for each option, what it does
// when it is taken from the other fidelity, with its interval.
func optionsPicture(lines []results.Result, _ uint64) (report.Figure, error) {
	const columns = 3
	f := report.Figure{Name: "uci-options", Width: vg.Points(760), Height: vg.Points(420)}
	f.Caption, _ = prose.Text("options picture", nil)
	tests, err := effects(results.ByID(lines))
	if err != nil {
		return report.Figure{}, err
	}
	ways := directions()
	var marks []mark
	for d, way := range ways {
		m := effectMarks[d]
		m.name = fmt.Sprintf("%s, with this option of the other", way.from)
		marks = append(marks, m)
	}
	f.Key = keyOf(marks...)
	options := optionNames(ways)
	var panels []*plot.Plot
	for n, dataset := range smallDatasets() {
		series := make([]bars, len(ways))
		for d, way := range ways {
			series[d] = bars{colour: effectMarks[d].colour, shape: effectMarks[d].shape}
			for i, s := range way.steps {
				if test, has := tests[effect{d, i, dataset}]; has {
					series[d].addDifference(test.pairedCell, float64(slices.Index(options, s.option)))
				}
			}
		}
		p, err := forest(DatasetTitle(dataset), options, n%columns == 0, series)
		if err != nil {
			return report.Figure{}, err
		}
		panels = append(panels, p)
	}
	f.Panels = report.InRows(panels, columns, nil)
	return f, nil
}

// addDifference appends a difference with its interval in a row of a forest.
func (b *bars) addDifference(c pairedCell, row float64) {
	b.add(c.difference.Mean, row, c.difference.High-c.difference.Mean)
}

// forest is a plot of differences with their intervals: rows with the labels from above, in each a mark of every series
// that has one there, whose y is the row, and a line at 0.
func forest(title string, labels []string, labelled bool, series []bars) (*plot.Plot, error) {
	p := report.New(title, "change of NLL (nats)", "")
	var ticks []plot.Tick
	for i, label := range labels {
		if !labelled {
			label = " "
		}
		ticks = append(ticks, plot.Tick{Value: float64(len(labels) - 1 - i), Label: label})
	}
	drawn := 0
	for k, b := range series {
		if len(b.x) == 0 {
			continue
		}
		drawn++
		y := make([]float64, len(b.y))
		for i, row := range b.y {
			y[i] = float64(len(labels)-1) - row + 2*apart/float64(len(series))*(float64(len(series)-1)-2*float64(k))
		}
		if err := report.ErrorBars(p, "", b.x, y, b.std, b.colour, b.shape); err != nil {
			return nil, err
		}
	}
	if drawn == 0 {
		p.X.Label.Text = "not run"
	}
	if err := report.Dashes(p, "", []float64{0, 0}, []float64{-0.6, float64(len(labels)) - 0.4}, report.Grey); err != nil {
		return nil, err
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Min, p.Y.Max = -0.6, float64(len(labels))-0.4
	return p, nil
}

// optionNames are the options of the steps, each once, in their order.
func optionNames(ways []direction) (names []string) {
	for _, way := range ways {
		for _, s := range way.steps {
			if !slices.Contains(names, s.option) {
				names = append(names, s.option)
			}
		}
	}
	return names
}
