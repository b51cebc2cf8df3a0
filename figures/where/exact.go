package where

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/hmc"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/spec"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/toy"
	"densityuncertainty/figures/uci"
)

// exactSplits and exactSeeds are the numbers of splits of each problem, and of seeds of each method on each of them.
const exactSplits, exactSeeds = 3, 10

// An exactProblem is a regression whose posterior is drawn by Hamiltonian Monte Carlo.
type exactProblem struct {
	name, title string
	data        experiment.Source
	noise       float64 // the known standard deviation of the noise, of a standardised target
	chains      HMC
	splits      int
}

// exactProblems are the cubic of Figure 1, and two sets of UCI with a gap.
func exactProblems() []exactProblem {
	long := HMC{Warmup: 400, Draws: 600, Leapfrogs: 400, Keep: 120}
	return []exactProblem{
		{"cubic", "Cubic", toy.Cubic{Seeds: exactSplits}, 0.09, HMC{Warmup: 500, Draws: 1000, Leapfrogs: 100, Keep: 125}, exactSplits},
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
func exactMethods() []experiment.Method {
	list := append(compared(), methods.MFVI)
	for i, m := range list {
		list[i] = withPrior(m)
	}
	return list
}

// withPrior is a method whose weights have the prior of hmc.Prior, and whose noise begins at 0.01.
func withPrior(m experiment.Method) experiment.Method {
	m = methods.Defaults{InitStd: 0.01}.Fill(m)
	if l, is := m.Layers.(baselines.MFVI); is {
		m.Layers = scaledMFVI{l.InitStd}
	}
	m.Layers = hmc.Prior{Layers: m.Layers}
	return m
}

// scaledMFVI is baselines.MFVI with the prior of hmc.Prior, N(0, 1/in) for a layer with so many inputs.
type scaledMFVI struct{ InitStd float64 }

// Dense implements nets.Layers.
func (l scaledMFVI) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return baselines.MFVI{InitStd: l.InitStd, PriorStd: 1 / math.Sqrt(float64(x.Shape().Dim(-1)))}.Dense(s, x, units)
}

// everyGapMethods are the methods of question 7, density first.
func everyGapMethods() []experiment.Method {
	all := exactMethods()
	for _, k := range []float64{1.5, 2, 3} {
		all = append(all, withPrior(times(k)))
	}
	return all
}

// chains is the number of chains of a posterior, which begin at networks that were trained from as many seeds.
const chains = 4

// smallNetwork is the experiment of a method with one hidden layer of 50 units and known noise, trained by steps of Adam on
// all examples at once, after half as many of energy models alone.
func smallNetwork(task string, data experiment.Source, noise float64, m experiment.Method, steps int, rate float64, draws int) experiment.Experiment {
	recipe := experiment.Adam(steps, 1000, rate)
	recipe.PretrainEpochs = steps / 2
	l := likelihood.KnownNoise{Std: noise}
	recipe, err := recipe.For(m, l, draws)
	if err != nil {
		panic(err) // a mistake in this package
	}
	return experiment.Experiment{Task: experiment.Task{Name: task, Data: data, Network: nets.MLP{Widths: []int{50}}, Likelihood: l}, Method: m, Recipe: recipe}
}

// experiment is the experiment of a method on the problem, trained for as long as in toy.Paper.
func (p exactProblem) experiment(m experiment.Method, metric experiment.Metric) experiment.Experiment {
	e := smallNetwork(p.name+", exact", p.data, p.noise, m, 4000, 1e-3, 500)
	e.Preset, e.Task.Metrics = "where.exact", []experiment.Metric{metric}
	return e
}

// posterior are the experiments that draw the posterior of each split.
func (p exactProblem) posterior() experiment.Experiments {
	return crossed(p.experiment(experiment.Method{Name: "HMC", Layers: hmc.Prior{Layers: baselines.Deterministic{}}, Members: chains, Sampler: p.chains}, halvesApart), p.splits, 1)
}

// runs are the experiments of a method.
func (p exactProblem) runs(m experiment.Method) experiment.Experiments {
	return crossed(p.experiment(m, p.fromPosterior), p.splits, exactSeeds)
}

// ExactSets are the experiments of questions 2 and 7: the posteriors, and the methods, whose distances are measured from the
// posteriors in figures/runs when they are run.
func ExactSets() []tables.Set {
	of := func(problems []exactProblem, methods []experiment.Method) (posteriors, runs experiment.Experiments) {
		for _, p := range problems {
			posteriors = append(posteriors, p.posterior()...)
			for _, m := range methods {
				runs = append(runs, p.runs(m)...)
			}
		}
		return posteriors, runs
	}
	posteriors, runs := of(exactProblems(), exactMethods())
	everyPosterior, everyRun := of(everyGap(), everyGapMethods())
	return []tables.Set{
		{Name: "where-posterior", Doc: "question 2: posteriors drawn by Hamiltonian Monte Carlo", Experiments: posteriors},
		{Name: "where-exact", Doc: "question 2: how far is each method from the posterior? (run where-posterior first)", Experiments: runs},
		{Name: "where-posterior-gaps", Doc: "question 7: the posteriors of every gap of Boston and Yacht", Experiments: everyPosterior},
		{Name: "where-exact-gaps", Doc: "question 7: how far is each method from them? (run where-posterior-gaps first)", Experiments: everyRun},
	}
}

// The regions where predictions are compared. Those of the cubic are parts of its grid.
const dataRegion, gapRegion = "data", "gap"

// regionAt is the name of the region of an input of a set; "" if it is in none.
func regionAt(set string, input int) string {
	if set == dataRegion || set == gapRegion {
		return set
	}
	switch x := math.Abs(toy.Grid()[input]); {
	case x < 2:
		return gapRegion
	case x <= 4:
		return dataRegion
	}
	return ""
}

// byRegion are the draws of the function at each input, by the names of regions.
func byRegion(p *experiment.Predictions) map[string][][]float64 {
	all := map[string][][]float64{}
	for _, set := range p.Sets {
		for input := range set.Mean[0] {
			var draws []float64
			for _, function := range set.Mean {
				draws = append(draws, function[input])
			}
			if region := regionAt(set.Set, input); region != "" {
				all[region] = append(all[region], draws)
			}
		}
	}
	return all
}

// apart measures how far predictions are from others in each region, as numbers whose names begin with the region's: the
// mean 1-Wasserstein distance of the function ("w1", standardised), the mean total variation of the target's predictive
// distributions ("tv"), and the mean standard deviation over the others' ("std_ratio").
func apart(p, others *experiment.Predictions) (map[string]float64, error) {
	found, ours, theirs, noise := map[string]float64{}, byRegion(p), byRegion(others), p.Sets[0].NoiseDeviation()
	for _, r := range exactRegions() {
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

// posteriors are the predictions of posteriors that were read, by the identities of their experiments.
var posteriors sync.Map

// fromPosterior is how far predictions are from the posterior of their split in the repository's results.
func (p exactProblem) fromPosterior(found *experiment.Predictions) (map[string]float64, error) {
	e := p.posterior()[found.Split]
	if read, has := posteriors.Load(e.ID()); has {
		return apart(found, read.(*experiment.Predictions))
	}
	folder, err := results.DefaultDir()
	if err != nil {
		return nil, err
	}
	posterior, err := (&experiment.Store{Folder: folder}).Predictions(e)
	switch {
	case errors.Is(err, experiment.ErrNoPredictions):
		return nil, fmt.Errorf("where: %w; draw it first: reproduce run where-posterior, and for question 7 where-posterior-gaps", err)
	case err != nil:
		return nil, err
	case posterior.Diverged:
		return nil, fmt.Errorf("where: there is no distance from a posterior that diverged: %s", posterior.Reason)
	}
	posteriors.Store(e.ID(), posterior)
	return apart(found, posterior)
}
