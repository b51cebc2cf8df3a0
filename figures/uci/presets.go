// Package uci has the UCI regressions of the paper's appendix: the data sets with their splits, the presets, and the tables,
// figures and claims about the results.
//
//	list, err := experiment.Cross(uci.Paper, uci.On("yacht", "boston"), methods.Density, methods.Rank1)
package uci

import (
	"cmp"
	"fmt"
	"slices"

	"densityuncertainty/datasets"
	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/tables"
)

// Paper trains as the paper's text says: two hidden layers of 50 units, of 100 on Protein and Year, and 100 epochs of
// SGD. Where the text is silent, the choices are this project's: ten epochs of generative pretraining, energy models with
// an Adam of their own, and a weight decay on weights alone. SNGP and DUE are trained by Adam, since with momentum they
// do not fit in as many epochs. The data can also be your own.
func Paper(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	return textSettings("uci.Paper", data).experiment(data, defaults.Fill(m))
}

// textSettings are the settings of Paper.
func textSettings(preset string, data experiment.Source) settings {
	width := 50
	if d, is := data.(Data); is && (d.Name == "protein" || d.Name == year) {
		width = 100
	}
	return settings{preset: preset, widths: []int{width, width}, energyScale: 1, energies: train.Adam{Decay: 1e-5}}
}

// Released trains as the authors' code does: three hidden layers of 50 units on random splits, energy models
// that are trained like the weights with a hundredth of their objective, a weight decay on all parameters, and noise
// that is uniform in [0, 1), unless the method has another; see methods.Released. Data with the published splits (Gal) get
// random ones in their place.
func Released(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	if d, is := data.(Data); is && d.Kind == Gal {
		d.Kind = Random
		data = d
	}
	return releasedAsSplit(data, m)
}

// releasedAsSplit is Released on the data's own splits.
func releasedAsSplit(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	m = defaults.Fill(m)
	m.Layers = methods.Released(m.Layers, false)
	return settings{
		preset: "uci.Released", widths: []int{50, 50, 50}, energyScale: 0.01, energies: momentum(weightDecay), otherDecay: weightDecay,
	}.experiment(data, m)
}

// Adam is Paper with Adam for all methods.
func Adam(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	s := textSettings("uci.Adam", data)
	s.optimizer = adam
	return s.experiment(data, defaults.Fill(m))
}

// Long is Paper with 400 epochs, and Longest with 4000.
var Long, Longest = lasting("uci.Long", 400), lasting("uci.Longest", 4000)

func lasting(preset string, epochs int) experiment.Preset {
	return func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		e, err := Paper(data, m)
		e.Preset, e.Recipe.Epochs = preset, epochs
		return e, err
	}
}

// StoppedEarly is Longest with the epoch that is best on the held-out examples. Of Data these are a fifth of the training
// part; other sources need some of their own.
func StoppedEarly(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	if d, is := data.(Data); is {
		d.HeldOut = true
		data = d
	}
	e, err := Longest(data, m)
	e.Preset, e.Recipe.EarlyStopping = "uci.StoppedEarly", true
	return e, err
}

// weightDecay is the decay of the weights.
const weightDecay = 1e-4

// The optimizers to choose from.
const sgd, adam = "sgd", "adam"

// momentum is the optimizer of the paper's appendix.
func momentum(decay float64) train.Optimizer { return train.SGD{Momentum: 0.9, Decay: decay} }

// settings are what differs between the text and the authors' code, and the optimizer.
type settings struct {
	preset      string
	widths      []int
	optimizer   string          // sgd or adam; "" is Adam for Gaussian processes and SGD for all others
	energyScale float64         // of the objective of energy models
	energies    train.Optimizer // of energy models
	otherDecay  float64         // of variational parameters and the observation variance
}

// experiment is the experiment of a method whose layers are filled in.
func (s settings) experiment(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
	l := likelihood.Gaussian{}
	t, err := experiment.MethodTraits(m, l)
	if err != nil {
		return experiment.Experiment{}, fmt.Errorf("%s: %s: %w", s.preset, m.Name, err)
	}
	r := experiment.Recipe{Settings: train.Settings{Epochs: 100, BatchSize: 128, Schedule: train.Cosine{Start: 0.01}}, Samples: 1, SharedNoise: true}
	if t.Noise {
		r.Samples = 10
	}
	r.Groups = s.groups(t, s.optimizer == adam || s.optimizer == "" && m.IsProcess())
	if t.Energies {
		r.PretrainEpochs, r.PretrainGroups, r.LogLikelihoodScale = 10, r.Groups[:1], s.energyScale
	}
	task := experiment.Task{Name: nameOf(data), Data: data, Network: nets.MLP{Widths: s.widths}, Likelihood: l, Metrics: []experiment.Metric{experiment.Regression}}
	return experiment.Experiment{Task: task, Method: m, Recipe: r, Preset: s.preset}, nil
}

// groups are the groups of parameters of networks with these traits. Energy models, if there are some, come first.
func (s settings) groups(t experiment.Traits, withAdam bool) []train.Group {
	var groups []train.Group
	add := func(o train.Optimizer, roles ...params.Role) {
		if slices.ContainsFunc(roles, t.Has) {
			groups = append(groups, train.Group{Roles: roles, Optimizer: o, Rate: 1})
		}
	}
	add(s.energies, params.Generative)
	if !withAdam {
		add(momentum(weightDecay), params.Weight)
		add(momentum(s.otherDecay), params.Variational, params.Likelihood)
		return groups
	}
	add(train.Adam{Decay: weightDecay}, params.Weight)
	add(momentum(s.otherDecay), params.Likelihood) // the noise variance has to fall further than Adam goes
	add(train.Adam{Decay: s.otherDecay}, params.Variational)
	return groups
}

// nameOf is the name of data as a task.
func nameOf(data experiment.Source) string {
	switch d := data.(type) {
	case Data:
		name := d.Name
		if d.Kind != Gal {
			name = fmt.Sprintf("%s, %v splits", name, d.Kind)
		}
		if d.Calibration { // whose results have more numbers
			name += ", calibration"
		}
		return name
	case experiment.Table:
		if d.Set != nil {
			return d.Set.Name
		}
	}
	return fmt.Sprintf("%T", data)
}

// defaults fill in what a method leaves open.
var defaults = methods.Defaults{InitStd: 0.1, MFVIPriorStd: 0.1, VDropoutAlpha: 0.1, Inducing: 50}

// rows are a group of rows, one for each data set of a grid, with a number of each method. With a reference the others are
// tested against it, and the lowest is bold.
func rows(g experiment.Grid, group string, n tables.Number, list []experiment.Method, reference ...experiment.Method) (rows []tables.Row) {
	for _, d := range g.Data {
		row := tables.Row{Group: group, Name: title(d)}
		for _, m := range list {
			mean := n.Over(g.Of(d, m))
			var cell tables.Cell = mean
			for _, r := range reference {
				mean.Best = "lowest"
				if cell = mean; m.Name != r.Name {
					tested := mean.Against(g.Of(d, r))
					if slices.ContainsFunc(laterMethods, m.Equal) {
						tested.Family = "later methods"
					}
					cell = tested
				}
			}
			row.Cells = append(row.Cells, cell)
		}
		rows = append(rows, row)
	}
	return rows
}

// title is DatasetTitle of Data.
func title(d experiment.Source) string { return DatasetTitle(d.(Data).Name) }

// onGaps are data sets with their gap splits.
func onGaps(names ...string) []experiment.Source {
	all := On(names...)
	for i, d := range all {
		all[i] = Data{Name: d.(Data).Name, Kind: Gap}
	}
	return all
}

// The grids of several tables: the text, Adam for all methods, and the authors' code.
func paperGrid(names ...string) experiment.Grid {
	return experiment.Grid{Title: "paper's text", Preset: Paper, Data: On(names...)}
}

func adamGrid(names ...string) experiment.Grid {
	return experiment.Grid{Title: "Adam", Preset: Adam, Data: On(names...)}
}

func releasedGrid(names ...string) experiment.Grid {
	return experiment.Grid{Title: "authors' code", Preset: Released, Data: On(names...)}
}

// allData has the text's settings on all data sets. Methods that this project adds leave out Year, and Gaussian processes all
// but the small sets.
func allData() experiment.Grid {
	return experiment.Grid{Data: On(tableDatasets()...), List: func(d experiment.Source, m experiment.Method) (experiment.Experiments, error) {
		name := d.(Data).Name
		if !slices.ContainsFunc(Methods(), m.Equal) && !slices.Contains(SmallDatasets(), name) && (m.IsProcess() || name == year) {
			return nil, nil
		}
		return paperGrid().Of(d, m), nil
	}}
}

// energyGrids compare energy models.
func energyGrids(names ...string) []experiment.Grid {
	return []experiment.Grid{paperGrid(names...), Tuned(On(names...)...), adamGrid(names...), releasedGrid(names...)}
}

// claimGrids test the paper's claim on UCI.
var claimGrids = []experiment.Grid{paperGrid(withoutYear()...), Tuned(On(withoutYear()...)...), releasedGrid(withoutYear()...)}

// gapGrids are on the gap splits. No settings were tuned there for the mean energy, a control.
func gapGrids() []experiment.Grid {
	paper, tuned := paperGrid(), Tuned(onGaps(SmallDatasets()...)...)
	paper.Data, tuned.Methods = tuned.Data, tunedMethods
	return []experiment.Grid{paper, tuned}
}

// manySamples is the text with so many Monte Carlo samples that their number no longer matters. Gaussian processes take none.
func manySamples() experiment.Grid {
	g := paperGrid(SmallDatasets()...)
	g.Change = func(e *experiment.Experiment) {
		if !e.Method.IsProcess() {
			e.Recipe.Samples = 1000
		}
	}
	return g
}

// drawnMethods are the methods in the picture of longer training.
var drawnMethods = []experiment.Method{detached, methods.DensityConstant, methods.Rank1, methods.MCDropout, methods.Ensemble}

// convergedMethods are the columns of convergedTable.
var convergedMethods = slices.Concat(Methods(), []experiment.Method{detached, methods.DensityConstant}, addedMethods)

// fewSplits is the number of splits on which the longest trainings are made.
const fewSplits = 5

// trainings are the rows of convergedTable on each data set: 100 and 400 epochs, and for some methods 4000 on five splits,
// without and with early stopping, which SWAG, the last, refuses.
func trainings() []experiment.Grid {
	small, all, few := On(SmallDatasets()...), convergedMethods, slices.Concat([]experiment.Method{methods.Density}, drawnMethods, laterMethods)
	return []experiment.Grid{
		{Title: "100 epochs", Preset: Paper, Data: small, Methods: all},
		{Title: "400 epochs", Preset: Long, Data: small, Methods: all},
		{Title: "4000 epochs", Preset: Longest, Data: small, Methods: few, Splits: fewSplits},
		{Title: "4000 epochs, stopped early", Preset: StoppedEarly, Data: small, Methods: few[:len(few)-1], Splits: fewSplits},
	}
}

// SmallDatasets are the data sets with fewer than 2000 rows, on which every method and training is run.
func SmallDatasets() []string {
	return []string{"boston", "concrete", "energy", "energy-cooling", "wine", "yacht"}
}

// withoutYear are all data sets but the largest, which is not part of the program.
func withoutYear() []string { return without(tableDatasets(), year) }

// tableDatasets are the rows of tables: the paper's data sets in its order, then the heating load.
func tableDatasets() []string { return append(without(datasets.UCINames(), "energy"), "energy") }

// without removes name from list.
func without(list []string, name string) []string {
	return slices.DeleteFunc(list, func(other string) bool { return other == name })
}

// paperRows are the paper's names of the data sets. The target of the paper's Energy row is the cooling load, although the
// text does not say so; the heating load is a row of this project.
var paperRows = map[string]string{
	"boston":         "Boston Housing",
	"concrete":       "Concrete Strength",
	"energy-cooling": "Energy Efficiency",
	"kin8nm":         "Kin8nm",
	"naval":          "Naval Propulsion",
	"protein":        "Protein Structure",
	"wine":           "Wine Quality Red",
	"yacht":          "Yacht Hydrodynamics",
	year:             "Year Prediction MSD",
}

// DatasetTitle is a data set's name in tables: the paper's, if it has one.
func DatasetTitle(dataset string) string {
	switch dataset {
	case "energy":
		return "Energy Efficiency (heating)"
	case "energy-cooling":
		return "Energy Efficiency (cooling)"
	}
	return cmp.Or(paperRows[dataset], dataset)
}

// paperColumns are the paper's names of the methods in its UCI tables.
var paperColumns = map[string]string{
	methods.MCDropout.Name: "MCDropout", methods.VDropout.Name: "VDropout", methods.Rank1.Name: "Rank1-BNN", methods.Density.Name: "Density Uncertainty",
}

// paperMethods are the methods of the paper's UCI tables, in their order.
var paperMethods = []experiment.Method{methods.MCDropout, methods.VDropout, methods.Rank1, methods.Density}

// rivals are the methods of the paper's tables but density uncertainty.
var rivals = paperMethods[:3]

// Methods are the methods of our tables beside the paper's: MFVI, which the paper leaves out, and the methods of its tables.
func Methods() []experiment.Method {
	return append([]experiment.Method{methods.MFVI}, paperMethods...)
}

// addedMethods are not run on regression in the paper. Gaussian processes are run on the small data sets, the others on all but Year.
// laterMethods were added after the others. Their tests are a family of their own, so that they change no verdict on the others.
var (
	addedMethods = append([]experiment.Method{methods.Deterministic, methods.Ensemble, methods.SNGP, methods.DUE}, laterMethods...)
	laterMethods = methods.AfterTraining(0)
)

// everyMethod are Methods and addedMethods.
var everyMethod = slices.Concat(Methods(), addedMethods)

// energyMethods are density layers that differ in their energy model alone. The first, whose noise follows nothing, is
// the control of the others.
var energyMethods = []experiment.Method{methods.DensityConstant, methods.DensityDiagonal, methods.Density, methods.DensityMixture}

// detached are density layers without the path through the energy, as in the authors' code: with the text's gradients the
// longer trainings diverge.
var detached = func() experiment.Method {
	m := methods.Density
	layers := m.Layers.(dul.Density)
	layers.Gradients = dul.Detached
	m.Key, m.Name, m.Layers = "density-detached", "Density, detached energies", layers
	return m
}()
