// Command carry writes the stored result lines of the old UCI engine as lines of the new one:
//
//	go run ./figures/experiment/internal/carry figures/runs NEWSTORE
//
// It reads each line by the old engine's own protocol, which fills in every number, and trains nothing. It is run once,
// and deleted together with the old engine.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/experiment/methods"
	"densityuncertainty/figures/experiment/uci"
	oldmethods "densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
	olduci "densityuncertainty/figures/uci"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: carry OLDSTORE NEWSTORE")
	}
	if err := carry(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

// alike is the most that a number of two stored lines of one experiment may differ by, as a part of it, without a word.
const alike = 1e-3

// carry converts all lines.
func carry(ctx context.Context, from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "uci-*.jsonl"))
	if err != nil {
		return err
	}
	lines, notes, err := results.Read(files...)
	if err != nil || len(notes) > 0 {
		return errors.Join(err, fmt.Errorf("%d notes: %v", len(notes), notes))
	}
	known, err := presetNames()
	if err != nil {
		return err
	}
	first := map[string]results.Result{}
	var list []experiment.Carried
	twice, different := 0, 0
	for _, line := range lines {
		e, err := experimentOf(line.Experiment)
		if err != nil {
			return fmt.Errorf("%v: %w", line.Experiment, err)
		}
		if e.Preset = known[e.Group()]; e.Preset == "" {
			e.Preset = "uci." + map[string]string{results.Paper: "Paper", results.Released: "Released"}[line.Experiment.Fidelity] + ", changed"
		}
		if err := e.Check(); err != nil {
			return err
		}
		id := e.ID()
		if before, has := first[id]; has { // the first counts
			twice++
			if difference := before.Difference(line, func(a, b float64) bool { return math.Abs(a-b) <= alike*math.Abs(b) }); difference != "" {
				different++
				fmt.Printf("%v and %v are one experiment: %s\n", before.Experiment, line.Experiment, difference)
			}
			continue
		}
		first[id] = line
		list = append(list, experiment.Carried{Experiment: e, Result: experiment.Result{
			Was: line.ID, Metrics: line.Metrics, Diverged: line.Diverged, Backend: line.Backend, Device: line.Device, Version: line.Version,
			WallSeconds: line.WallSeconds, Batched: line.Batched, Finished: line.Finished,
		}})
	}
	fmt.Printf("%d lines are %d experiments; %d lines repeat one, %d of them with other numbers\n", len(lines), len(list), twice, different)
	return (&experiment.Store{Folder: to}).Add(ctx, list...)
}

// experimentOf is the experiment of a stored line.
func experimentOf(old results.Experiment) (experiment.Experiment, error) {
	p, m, err := olduci.ProtocolOf(old, oldmethods.All())
	if err != nil {
		return experiment.Experiment{}, err
	}
	data := uci.Data{
		Name: old.Dataset, Choosing: old.Scale == results.Grid, HeldOut: p.EarlyStopping && m.Process == nil,
		Kind: map[string]uci.Splits{olduci.GalSplits: uci.Gal, olduci.RandomSplits: uci.Random, olduci.GapSplits: uci.Gap}[old.Splits],
	}
	method := experiment.Method{Name: m.Title, Layers: m.Layers(p.Options), Members: m.Members}
	switch m.Name {
	case oldmethods.SNGP.Name:
		method.Layers, method.Process = nil, experiment.SNGP{}
	case oldmethods.DUE.Name:
		method.Layers, method.Process = nil, experiment.DUE{Inducing: 50}
	}
	l := likelihood.Gaussian{}
	t, err := traitsOf(method, l)
	if err != nil {
		return experiment.Experiment{}, err
	}
	sgd := func(decay float64) train.Optimizer { return train.SGD{Momentum: 0.9, Decay: decay} }
	var groups []experiment.Group
	add := func(o train.Optimizer, roles ...params.Role) {
		if slices.ContainsFunc(roles, t.Has) {
			groups = append(groups, experiment.Group{Roles: roles, Optimizer: o, Rate: 1})
		}
	}
	otherDecay, scale := 0.0, 1.0
	if p.Decay == oldmethods.DecayAll {
		otherDecay = p.WeightDecay
	}
	if p.EnergyOptimizer == oldmethods.JointOptimizer {
		scale = 0.01
		add(sgd(p.WeightDecay), params.Generative)
	} else {
		add(train.Adam{Decay: 1e-5}, params.Generative)
	}
	if p.Optimizer == oldmethods.Adam {
		add(train.Adam{Decay: p.WeightDecay}, params.Weight)
		add(sgd(otherDecay), params.Likelihood)
		add(train.Adam{Decay: otherDecay}, params.Variational)
	} else {
		add(sgd(p.WeightDecay), params.Weight)
		add(sgd(otherDecay), params.Variational, params.Likelihood)
	}
	r := experiment.Recipe{Epochs: p.Epochs, BatchSize: p.BatchSize, Schedule: experiment.Cosine{Start: p.LearningRate}, Groups: groups, Samples: 1, EarlyStopping: data.HeldOut, SharedNoise: true}
	if t.Noise {
		r.Samples = p.Samples
	}
	if t.Energies {
		r.LogLikelihoodScale = scale
		if p.PretrainEpochs > 0 {
			r.PretrainEpochs, r.PretrainGroups = p.PretrainEpochs, groups[:1]
		}
	}
	name := data.Name
	if data.Kind != uci.Gal {
		name = fmt.Sprintf("%s, %v splits", data.Name, data.Kind)
	}
	return experiment.Experiment{
		Task:   experiment.Task{Name: name, Data: data, Network: nets.MLP{Widths: slices.Repeat([]int{p.Width}, p.HiddenLayers)}, Likelihood: l, Metrics: []experiment.Metric{experiment.Regression}},
		Method: method, Recipe: r, Split: old.Split, Seed: old.Seed,
	}, nil
}

// traits are those of methods that were asked for.
var traits = map[string]experiment.Traits{}

func traitsOf(m experiment.Method, l likelihood.Likelihood) (experiment.Traits, error) {
	key := fmt.Sprintf("%#v", m)
	t, has := traits[key]
	if has {
		return t, nil
	}
	t, err := experiment.MethodTraits(m, l)
	traits[key] = t
	return t, err
}

// presetNames are the presets by the groups of their experiments.
func presetNames() (map[string]string, error) {
	names := map[string]string{}
	for _, p := range []struct {
		preset experiment.Preset
		kinds  []uci.Splits
	}{
		{uci.Paper, []uci.Splits{uci.Gal, uci.Gap}}, {uci.Released, []uci.Splits{uci.Random}}, {uci.Adam, []uci.Splits{uci.Gal}},
		{uci.Long, []uci.Splits{uci.Gal}}, {uci.Longest, []uci.Splits{uci.Gal}}, {uci.StoppedEarly, []uci.Splits{uci.Gal}},
	} {
		for _, name := range olduci.Datasets() {
			for _, kind := range p.kinds {
				for _, m := range methods.All() {
					e, err := p.preset(uci.Data{Name: name, Kind: kind}, m.Method)
					if err != nil {
						return nil, err
					}
					if group := e.Group(); names[group] == "" {
						names[group] = e.Preset
					}
				}
			}
		}
	}
	return names, nil
}
