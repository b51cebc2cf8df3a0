package uci

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"densityuncertainty/dul"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// An option is one of the differences between the text and the released code for density layers.
type option struct {
	name            string
	paper, released string // its value in each
	// take changes an experiment of one fidelity so that it has the other's value.
	take func(e *experiment.Experiment, other experiment.Experiment)
}

// ofLayers is an option of the layers alone.
func ofLayers(take func(l *dul.Density, other dul.Density)) func(*experiment.Experiment, experiment.Experiment) {
	return func(e *experiment.Experiment, other experiment.Experiment) {
		layers := e.Method.Layers.(dul.Density)
		take(&layers, other.Method.Layers.(dul.Density))
		e.Method.Layers = layers
	}
}

// densityOptions are all differences between the text and the released code that reach a dense density layer with LDL energies,
// and one more: generative pretraining, which the text does not have and both fidelities do.
var densityOptions = []option{
	{"noise", "gaussian", "uniform01", ofLayers(func(l *dul.Density, other dul.Density) { l.Noise = other.Noise })},
	{"clip", "false", "true", ofLayers(func(l *dul.Density, other dul.Density) { l.Clip = other.Clip })},
	{"gradients", "paper", "detached", ofLayers(func(l *dul.Density, other dul.Density) { l.Gradients = other.Gradients })},
	{"variance", "plain", "half-d", ofLayers(func(l *dul.Density, other dul.Density) {
		l.HalfD = other.HalfD
		l.HalfChannels = l.HalfD && l.HalfChannels // is about convolutions alone
	})},
	{"hidden_layers", "2", "3", func(e *experiment.Experiment, other experiment.Experiment) { e.Task.Network = other.Task.Network }},
	{"energy_optimizer", "own", "joint", func(e *experiment.Experiment, other experiment.Experiment) {
		e.Recipe.Groups[0], e.Recipe.PretrainGroups = other.Recipe.Groups[0], other.Recipe.PretrainGroups
		e.Recipe.LogLikelihoodScale = other.Recipe.LogLikelihoodScale
	}},
	{"decay", "weights", "all", func(e *experiment.Experiment, other experiment.Experiment) {
		e.Recipe.Groups[2] = other.Recipe.Groups[2]
	}},
	{"pretrain_epochs", "0", "0", func(e *experiment.Experiment, _ experiment.Experiment) {
		e.Recipe.PretrainEpochs, e.Recipe.PretrainGroups = 0, nil
	}},
}

// A direction is a way from one fidelity towards the other, one option at a time, on the published splits.
type direction struct {
	from         string
	base, other  setting
	valueOfOther func(o option) string
}

// directions are both ways.
func directions() []direction {
	text := paperSetting(smallDatasets()...)
	released := releasedSetting(smallDatasets()...).changed(func(list experiment.Experiments) experiment.Experiments {
		return list.Change(func(e *experiment.Experiment) {
			data := e.Task.Data.(Data)
			data.Kind = Gal
			e.Task.Data, e.Task.Name = data, nameOf(data)
		})
	})
	return []direction{
		{"paper", text, released, func(o option) string { return o.released }},
		{"released", released, text, func(o option) string { return o.paper }},
	}
}

// with lists the experiments of density layers on a data set with an option of the other fidelity.
func (d direction) with(o option, dataset string) experiment.Experiments {
	other := d.other.runs(dataset, methods.Density)[0]
	return d.base.runs(dataset, methods.Density).Change(func(e *experiment.Experiment) {
		e.Preset += ", " + o.name
		o.take(e, other)
	})
}

// An effect is what a test of one option compares.
type effect struct{ from, option, dataset string }

// effects are the paired differences of the negative log likelihood that single options make, if all runs are there.
func effects(x *tables.Index) (map[effect]tables.Test[effect], error) {
	family := tables.Family[effect]{TestTrain: randomSplits}
	for _, way := range directions() {
		for _, o := range densityOptions {
			for _, dataset := range smallDatasets() {
				if err := family.AddComplete(effect{way.from, o.name, dataset}, x, results.MetricNLL, way.with(o, dataset), way.base.runs(dataset, methods.Density)); err != nil {
					return nil, err
				}
			}
		}
	}
	return family.ByName()
}

// OptionsTable says which of the differences between text and released code matter: the paired difference of the negative
// log likelihood of density layers with one option of the other fidelity. It has a row for each option in each
// direction, and a column for each of the small data sets.
func OptionsTable(x *tables.Index) (report.Table, error) {
	t := report.Table{Name: "uci-options", Columns: []string{"From, and the one option"}}
	t.Caption, t.Notes = prose.Text(t.Name, nil)
	for _, dataset := range smallDatasets() {
		t.Columns = append(t.Columns, DatasetTitle(dataset))
	}
	tests, err := effects(x)
	if err != nil {
		return report.Table{}, err
	}
	for _, way := range directions() {
		for _, o := range densityOptions {
			row := report.Row{Name: fmt.Sprintf("%s, %s=%s", way.from, o.name, way.valueOfOther(o))}
			for _, dataset := range smallDatasets() {
				cell := report.TextCell("not run")
				if test, has := tests[effect{way.from, o.name, dataset}]; has {
					cell = report.Cell{test.Line()}
				}
				row.Cells = append(row.Cells, cell)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}

// effectMarks are those of the directions. No method has their colours; see drawnColours.
var effectMarks = []mark{{colour: report.Navy, shape: draw.CircleGlyph{}}, {colour: report.Brown, shape: draw.PyramidGlyph{}}}

// OptionsPicture shows OptionsTable as a picture: a panel for each data set and in it, for each option, what it does when
// it is taken from the other fidelity, with its interval.
func OptionsPicture(x *tables.Index) (report.Figure, error) {
	const columns = 3
	f := report.Figure{Name: "uci-options", Width: vg.Points(760), Height: vg.Points(420)}
	f.Caption, _ = prose.Text("options picture", nil)
	tests, err := effects(x)
	if err != nil {
		return report.Figure{}, err
	}
	ways := directions()
	var marks []mark
	for i, way := range ways {
		m := effectMarks[i]
		m.name = fmt.Sprintf("%s, with this option of the other", way.from)
		marks = append(marks, m)
	}
	f.Key = keyOf(marks...)
	var labels []string
	for _, o := range densityOptions {
		labels = append(labels, o.name)
	}
	var panels []*plot.Plot
	for n, dataset := range smallDatasets() {
		series := make([]bars, len(ways))
		for i, way := range ways {
			series[i] = bars{colour: effectMarks[i].colour, shape: effectMarks[i].shape}
			for row, o := range densityOptions {
				if test, has := tests[effect{way.from, o.name, dataset}]; has {
					series[i].addDifference(test.Difference, float64(row))
				}
			}
		}
		p, err := forest(DatasetTitle(dataset), labels, n%columns == 0, series)
		if err != nil {
			return report.Figure{}, err
		}
		panels = append(panels, p)
	}
	f.Panels = report.InRows(panels, columns, nil)
	return f, nil
}

// addDifference appends a difference with its interval in a row of a forest.
func (b *bars) addDifference(d metrics.Difference, row float64) {
	b.add(d.Mean, row, d.High-d.Mean)
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
