package where

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/hmc"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/spec"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
)

// exactSplits, exactSeeds and exactDraws are the numbers of splits of each problem, of seeds of each method on each split, and of
// draws of a prediction.
const exactSplits, exactSeeds, exactDraws = 3, 10, 500

// An exactProblem is a regression whose posterior is drawn by Hamiltonian Monte Carlo.
type exactProblem struct {
	name, title string
	data        experiment.Source
	noise       float64 // the known standard deviation of the noise, of a standardised target
	chains      hmcProgram
	splits      int
}

// exactProblems are the cubic of Figure 1, and two sets of UCI with a gap.
func exactProblems() []exactProblem {
	long := hmcProgram{Warmup: 400, Draws: 600, Leapfrogs: 400, Keep: 120}
	return []exactProblem{
		{"cubic", "Cubic", toy.Cubic{Seeds: exactSplits}, 0.09, hmcProgram{Warmup: 500, Draws: 1000, Leapfrogs: 100, Keep: 125}, exactSplits},
		{"yacht", uci.DatasetTitle("yacht"), gapAndData{uci.Data{Name: "yacht", Kind: uci.Gap, HeldOut: true}}, 0.1, long, exactSplits},
		{"boston", uci.DatasetTitle("boston"), gapAndData{uci.Data{Name: "boston", Kind: uci.Gap, HeldOut: true}}, 0.3, long, exactSplits},
	}
}

// everyGap are the UCI problems on all of their gaps, for question 7.
func everyGap() []exactProblem {
	all := exactProblems()[1:]
	for i, p := range all {
		all[i].splits = p.data.Splits()
	}
	return all
}

// gapAndData is a UCI data set with a gap: the set "gap" is the test part of a gap split, and the set "data" a fifth of
// all other examples, which are not trained on.
type gapAndData struct{ uci.Data }

// Identity implements spec.Identifier.
func (s gapAndData) Identity() spec.Identity { return spec.Identity{Value: s.Data} }

// Load implements experiment.Source.
func (s gapAndData) Load(ctx context.Context, split int) (experiment.Data, error) {
	d, err := s.Data.Load(ctx, split)
	if err != nil {
		return d, err
	}
	d.Sets = []experiment.Set{{Name: dataRegion, Dataset: d.HeldOut}, {Name: gapRegion, Dataset: d.Sets[0].Dataset}}
	d.HeldOut = train.Dataset{}
	return d, nil
}

// exactMethods are the methods that are compared with the posterior, density first.
var exactMethods = slices.Concat(compared, []experiment.Method{{Key: methods.MFVI.Key, Name: methods.MFVI.Name, Layers: scaledMFVI{initStd}}})

// exactLater stand beside them, and are not tested.
var exactLater = methods.AfterTraining(exactDraws)

// initStd is the standard deviation of noise at the start.
const initStd = 0.01

// scaledMFVI is baselines.MFVI with the prior of hmc.Prior, N(0, 1/in) for a layer with so many inputs.
type scaledMFVI struct{ InitStd float64 }

// Dense implements nets.Layers.
func (l scaledMFVI) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return baselines.MFVI{InitStd: l.InitStd, PriorStd: 1 / math.Sqrt(float64(x.Shape().Dim(-1)))}.Dense(s, x, units)
}

// everyGapMethods are the methods of question 7, density first.
var everyGapMethods = slices.Concat(exactMethods, []experiment.Method{times(1.5), times(2), times(3)}, exactLater)

// chains is the number of chains of a posterior, which begin at networks that were trained from as many seeds.
const chains = 4

// smallNetwork trains one hidden layer of 50 units with known noise of standardised targets by steps of Adam on all examples at
// once, after half as many of energy models alone. Weights have the prior of hmc.Prior, and the method's noise begins at initStd.
func smallNetwork(task string, noise float64, steps int, rate float64, draws int) experiment.Preset {
	return func(data experiment.Source, m experiment.Method) (experiment.Experiment, error) {
		m = methods.Defaults{InitStd: initStd}.Fill(m)
		m.Layers = hmc.Prior{Layers: m.Layers}
		t := experiment.Task{Name: task, Data: data, Network: nets.MLP{Widths: []int{50}}, Likelihood: likelihood.KnownNoise{Standardised: noise}}
		recipe := experiment.Adam(steps, 1000, rate)
		recipe.PretrainEpochs = steps / 2
		recipe, err := recipe.For(m, t.Likelihood, draws)
		return experiment.Experiment{Task: t, Method: m, Recipe: recipe}, err
	}
}

// grid has the experiments on the problem, trained for as long as in toy.Paper, with a metric.
func (p exactProblem) grid(seeds int, metric experiment.Metric) experiment.Grid {
	return experiment.Grid{
		Preset: smallNetwork(p.name+", exact", p.noise, 4000, 1e-3, exactDraws), Splits: p.splits, Seeds: seeds,
		Change: func(e *experiment.Experiment) { e.Preset, e.Task.Metrics = "where.exact", []experiment.Metric{metric} },
	}
}

// posterior are the experiments that draw the posterior of each split.
func (p exactProblem) posterior() experiment.Experiments {
	hmc := experiment.Method{Name: "HMC", Layers: baselines.Deterministic{}, Members: chains, Program: p.chains}
	return p.grid(1, halvesApart).Of(p.data, hmc)
}

// runs are the experiments of a method.
func (p exactProblem) runs(m experiment.Method) experiment.Experiments {
	posteriors := sync.OnceValues(p.posteriors)
	return p.grid(exactSeeds, func(found *experiment.Predictions) (map[string]float64, error) {
		all, err := posteriors()
		if err != nil {
			return nil, err
		}
		return apart(found, all[found.Split])
	}).Of(besidePosterior{p.data, posteriors}, m)
}

// besidePosterior is the data of experiments that are measured by their distance from posteriors. Without the posteriors of all
// splits there are no data, so that nothing is trained that could not be measured.
type besidePosterior struct {
	experiment.Source
	posteriors func() ([]*experiment.Predictions, error)
}

// Identity implements spec.Identifier by the data alone.
func (b besidePosterior) Identity() spec.Identity {
	return spec.Identity{Type: fmt.Sprintf("%T", b.Source), Value: b.Source}
}

// Load implements experiment.Source.
func (b besidePosterior) Load(ctx context.Context, split int) (experiment.Data, error) {
	all, err := b.posteriors()
	if err == nil && all[split].Diverged {
		err = fmt.Errorf("where: there is no distance from a posterior that diverged: %s", all[split].Reason)
	}
	if err != nil {
		return experiment.Data{}, err
	}
	return b.Source.Load(ctx, split)
}

// posteriors are the runs of the posteriors of problems.
func posteriors(problems func() []exactProblem) func() experiment.Experiments {
	return func() (all experiment.Experiments) {
		for _, p := range problems() {
			all = append(all, p.posterior()...)
		}
		return all
	}
}

// The regions where predictions are compared. Those of the cubic are parts of its grid.
const dataRegion, gapRegion = "data", "gap"

// byRegion are the draws of the function at each input, by the names of regions. Some points of the cubic's grid are in none.
func byRegion(p *experiment.Predictions) map[string][][]float64 {
	all := map[string][][]float64{}
	for _, set := range p.Sets {
		for input := range set.Mean[0] {
			region := set.Set
			if region != dataRegion && region != gapRegion {
				switch x := math.Abs(toy.Grid()[input]); {
				case x < 2:
					region = gapRegion
				case x <= 4:
					region = dataRegion
				default:
					continue
				}
			}
			var draws []float64
			for _, function := range set.Mean {
				draws = append(draws, function[input])
			}
			all[region] = append(all[region], draws)
		}
	}
	return all
}

// apart measures how far predictions are from others in each region, as numbers whose names begin with the region's: the
// mean 1-Wasserstein distance of the function ("w1", standardised), the mean total variation of the target's predictive
// distributions ("tv"), and the mean standard deviation over the others' ("std_ratio").
func apart(p, others *experiment.Predictions) (map[string]float64, error) {
	found, ours, theirs, noise := map[string]float64{}, byRegion(p), byRegion(others), p.Sets[0].NoiseDeviation()
	for _, r := range exactRegions {
		n := float64(len(ours[r.name]))
		w1, tv, std, otherStd := 0.0, 0.0, 0.0, 0.0
		for i, a := range ours[r.name] {
			b := theirs[r.name][i]
			w1, tv, std, otherStd = w1+metrics.Wasserstein(a, b)/n, tv+metrics.TotalVariation(a, b, noise)/n, std+stat.PopStdDev(a, nil), otherStd+stat.PopStdDev(b, nil)
		}
		found[r.name+"_w1"], found[r.name+"_tv"], found[r.name+"_std_ratio"] = w1, tv, std/otherStd
	}
	return found, nil
}

// halvesApart is how far the first two chains of the posterior are from the others, about as close as a method could be.
func halvesApart(p *experiment.Predictions) (map[string]float64, error) {
	var halves [2]experiment.Predictions
	for _, set := range p.Sets {
		var functions [2][][]float64
		for k, function := range set.Mean { // of the four chains by turns
			half := k % chains / 2
			functions[half] = append(functions[half], function)
		}
		for half := range halves {
			set.Mean = functions[half]
			halves[half].Sets = append(halves[half].Sets, set)
		}
	}
	return apart(&halves[0], &halves[1])
}

// posteriors are the predictions of the posterior of each split in the repository's results.
func (p exactProblem) posteriors() (all []*experiment.Predictions, err error) {
	x, err := tables.Committed()
	if err != nil {
		return nil, err
	}
	for _, e := range p.posterior() {
		r, _ := x.Find(e)
		posterior, err := r.Predictions()
		if err == nil && !posterior.Diverged && posterior.Sets[0].Mean == nil { // the repository keeps the cubic's curves
			err = experiment.ErrNoPredictions
		}
		if errors.Is(err, experiment.ErrNoPredictions) {
			err = fmt.Errorf("where: %v: %w; draw the posterior: reproduce run where-posterior (for question 7 where-posterior-gaps), and if its row is stored already, with another --store, whose files of predictions belong into figures/runs", e, err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, posterior)
	}
	return all, nil
}

// bySeed is a mean over the splits and then over the seeds.
func bySeed(name string, list experiment.Experiments) tables.Mean {
	return tables.Mean{Number: tables.Number{Name: name, Decimals: 3}, Of: list, By: func(e experiment.Experiment) int { return int(e.Seed) }}
}

// diagnostics say how the chains of a problem's posteriors went, over all splits; nil if one is missing.
func (p exactProblem) diagnostics(x *tables.Index) []string {
	rHat, size, divergences := 0.0, math.Inf(1), 0.0
	for _, r := range x.Results(p.posterior()) {
		if r.ID == "" {
			return nil
		}
		rHat, size = max(rHat, r.Metrics[metricRHat]), min(size, r.Metrics[metricEffectiveSize])
		divergences += r.Metrics[metricDivergences]
	}
	return []string{fmt.Sprintf("%s: R-hat at most %.3f, effective size at least %.0f, %s.", p.title, rHat, size, report.Counted(int(divergences), "divergence", "divergences"))}
}

// exactRegions are the regions in the words of the table.
var exactRegions = []struct{ name, title string }{{dataRegion, "at the data"}, {gapRegion, "in the gap"}}

// exactTable answers question 2: for each problem and region, and each method, how far its predictions are from the
// posterior's: the Wasserstein distance of the function, the total variation of the target's distributions, and how wide
// the function's distribution is. The Wasserstein distance is tested against density's, over seeds; all verdicts of a
// problem hold together at 5% (Holm).
func exactTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table("where-exact", map[string]int{"Splits": exactSplits, "Seeds": exactSeeds}), Down: true}
	s.Columns = []string{"Method", "Wasserstein distance", "Total variation", "Width"}
	s.Legend = "▲ closer, ▽ farther than density, significant at 5% for all rows of a problem together. No mark: not significant."
	for _, p := range exactProblems() {
		s.Measured = append(s.Measured, p.diagnostics(x)...)
		density := p.runs(exactMethods[0])
		for _, r := range exactRegions {
			add := func(name string, runs, against experiment.Experiments) {
				var cells []tables.Cell
				for _, metric := range exactMetrics {
					cells = append(cells, bySeed(r.name+metric, runs))
				}
				distance := cells[0].(tables.Mean).Against(against)
				distance.Family = p.name
				cells[0] = distance
				s.Add(p.title+", "+r.title, name, cells...)
			}
			add("HMC, two chains from two others", p.posterior(), nil)
			add(exactMethods[0].Name, density, nil)
			for _, m := range exactMethods[1:] {
				add(m.Name, p.runs(m), density)
			}
			for _, m := range exactLater {
				add(m.Name, p.runs(m), nil)
			}
		}
	}
	return s.Make(x)
}

// exactGapsTable answers question 7, in which density is compared with the four multiples of the mean energy.
func exactGapsTable(x *tables.Index) (report.Table, error) {
	return gapDistances(x, "where-exact-gaps", "Density", "density", methods.Density, everyGapMethods, func(m experiment.Method) bool { return strings.HasPrefix(m.Key, methods.DensityMean.Key) })
}

// exactPlacesTable answers question 13 a, in which the location mixture is compared with its own mean energy and with LDL.
func exactPlacesTable(x *tables.Index) (report.Table, error) {
	list := []experiment.Method{places, placesMean, methods.Density, methods.DensityMean}
	return gapDistances(x, "where-exact-places", "Location mixture", "the location mixture", places, list, func(m experiment.Method) bool { return m.Equal(placesMean) || m.Equal(methods.Density) })
}

// gapDistances has for each data set the Wasserstein distance in the gap of each method, and for those that are compared, ours less
// it. A gap's is the mean over seeds. Differences are tested over gaps (t), those of both sets together (Holm).
func gapDistances(x *tables.Index, name, title, words string, ours experiment.Method, list []experiment.Method, compared func(m experiment.Method) bool) (report.Table, error) {
	s := tables.Sheet{Table: prose.Table(name, map[string]int{"Seeds": exactSeeds}), Down: true}
	s.Columns = []string{"Method", "Wasserstein distance", title + " less it"}
	s.Legend = "▲ " + words + " is closer, ▽ farther, significant at 5% for both data sets together. No mark: not significant."
	for _, p := range everyGap() {
		s.Measured = append(s.Measured, p.diagnostics(x)...)
		for _, m := range list {
			distance, difference := p.inGap(m), tables.Words("–")
			if compared(m) {
				less := p.inGap(ours).Against(distance.Of)
				less.Shown = true
				difference = less
			}
			s.Add(p.title, m.Name, distance, difference)
		}
	}
	return s.Make(x)
}

// inGap is the Wasserstein distance of a method in the gap, whose units are gaps.
func (p exactProblem) inGap(m experiment.Method) tables.Mean {
	mean := tables.Number{Name: gapRegion + exactMetrics[0], Decimals: 3}.Over(p.runs(m))
	mean.By = func(e experiment.Experiment) int { return e.Split }
	return mean
}

// exactMetrics are the columns of exactTable, as what follows a region's name in a metric's.
var exactMetrics = []string{"_w1", "_tv", "_std_ratio"}

// exactFigure shows what each method says of the cubic over the exact posterior, for the first split and seed.
func exactFigure(x *tables.Index) (report.Figure, error) {
	cubic := exactProblems()[0]
	drawn := cubic.posterior()[:1]
	for _, m := range slices.Concat(exactMethods, exactLater) {
		drawn = append(drawn, cubic.grid(1, nil).Of(cubic.data, m)[0])
	}
	list := x.Results(drawn)
	if i := slices.IndexFunc(list, func(r experiment.Result) bool { return r.ID == "" }); i >= 0 {
		return report.Figure{}, fmt.Errorf("where: the picture needs %v; run: reproduce run where-posterior, and then where-exact", drawn[i])
	}
	f, err := toy.Over(list[0], list[1:])
	f.Name, f.Caption = "where-exact", prose.Caption("where-exact picture", nil)
	return f, err
}

// An evenEnergy is the energy of a density layer with evenly spread noise. In training it is the mean of the energies of
// energy.LDL over the batch, as with dul.Density.MeanEnergy. In prediction it is Times their mean over the training
// examples, or if Predicted is true, over the inputs that are predicted: as much noise as density layers have there.
type evenEnergy struct {
	Times     float64
	Predicted bool
}

// Dense implements dul.EnergyModel.
func (e evenEnergy) Dense(s *model.Scope, h *graph.Node) energy.Terms {
	terms := energy.LDL{}.Dense(s, h)
	of := terms.Energy
	running := params.Statistic(s, of, "mean_energy", params.Constant(float64(h.Shape().Dim(-1))/2), 1, 1)
	mean, inBatch := graph.MulScalar(running.NodeValue(h.Graph()), e.Times), graph.ReduceAndKeep(of, graph.ReduceMean, -2)
	training := s.Store().IsTraining(h.Graph())
	if training {
		params.Follow(running, inBatch)
	}
	if training || e.Predicted {
		mean = inBatch
	}
	terms.Energy = graph.BroadcastToDims(mean, of.Shape().Dimensions...)
	terms.Root = func() *graph.Node { return graph.Sqrt(terms.Energy) }
	return terms
}

// Conv implements dul.EnergyModel. No question has images with this control: it panics.
func (evenEnergy) Conv(*model.Scope, *graph.Node, conv.Window) energy.ConvTerms {
	panic("where: evenEnergy is for dense layers")
}

// times is the mean-energy control with so many times the noise's energy in prediction.
func times(k float64) experiment.Method {
	return experiment.Method{Key: fmt.Sprintf("density-mean-x%g", k), Name: fmt.Sprintf("Density, mean energy x %g", k), Layers: dul.Density{Energy: evenEnergy{Times: k}}}
}
