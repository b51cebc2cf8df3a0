package uci

import (
	"fmt"
	"slices"

	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/results"
)

// sampledMethods are those of the paper's tables and ours whose predictions are means over Monte Carlo samples.
func sampledMethods() methods.List {
	return append(energyMethods(), slices.DeleteFunc(tableMethods(), isDensity)...)
}

func isDensity(m methods.Method) bool { return m.Name == methods.Density.Name }

// manySamples is the paper's protocol with so many samples that their number no longer matters.
func manySamples() Protocol {
	p := Paper().On(smallDatasets()...)
	p.Samples = 1000
	return p
}

// The protocols of longer training: every method for 400 epochs, and those of longMethods for 4000 on five splits.
func longTraining() Protocol {
	p := Paper().On(smallDatasets()...)
	p.Epochs = 400
	return p
}

func longestTraining() Protocol {
	p := longTraining()
	p.Epochs, p.Only = 4000, []int{0, 1, 2, 3, 4}
	return p
}

var longMethods = methods.List{methods.Density, methods.Rank1, methods.MCDropout, methods.Ensemble}

func convergedSet() []results.Experiment {
	return append(longTraining().Experiments(slices.Concat(tableMethods(), addedMethods())...), longestTraining().Experiments(longMethods...)...)
}

func gapExperiments() (all []results.Experiment) {
	for _, s := range gapSettings() {
		all = append(all, atBothScales(s.protocol, gapMethods())...)
	}
	return all
}

func tuningSet() (all []results.Experiment) {
	for _, t := range tunings() {
		for _, m := range t.methods {
			all = slices.Concat(all, slices.Concat(t.protocol.tried(m)...))
		}
	}
	return all
}

func tunedSet() (all []results.Experiment) {
	for _, t := range tunings() {
		p := Tuned().On(t.protocol.Datasets...)
		p.Splits = t.protocol.Splits
		all = append(all, p.Experiments(t.methods...)...)
	}
	return all
}

// A step is a protocol that differs from one fidelity in one option, which has the value of the other.
type step struct {
	option, value string
	protocol      Protocol
}

// oneAtATime are the steps from one protocol towards another: one for each option of density layers in which they
// differ. The splits are those of the protocol that is left.
func oneAtATime(from, to Protocol) (steps []step) {
	resolve := func(p Protocol) any { return p.resolve(results.Experiment{}, methods.Density) }
	for _, f := range methods.Fields(from, results.UCI) {
		value := f.Text(to.filled(results.Experiment{}, methods.Density))
		if value == f.Text(from.filled(results.Experiment{}, methods.Density)) {
			continue
		}
		p, single := from, map[string]string{f.Name: value}
		if err := methods.SetFor(results.UCI, &p, single); err != nil {
			panic(fmt.Errorf("uci: one option at a time: %w", err)) // it is a value of the other protocol
		}
		if len(methods.Unused(p, single, resolve)) == 0 {
			steps = append(steps, step{f.Name, value, p})
		}
	}
	return steps
}

func oneAtATimeSet() (all []results.Experiment) {
	for _, way := range directions() {
		all = append(all, way.base.Experiments(methods.Density)...)
		for _, s := range way.steps {
			all = append(all, s.protocol.Experiments(methods.Density)...)
		}
	}
	return all
}
