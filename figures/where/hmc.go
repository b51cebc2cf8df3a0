package where

import (
	"context"
	"errors"
	"fmt"
	"math"

	"densityuncertainty/dul/hmc"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/spec"
)

// The metrics of HMC: the largest split R-hat and the smallest effective sample size of the function at all inputs, the mean
// acceptance probability, the number of divergent transitions, and the step size.
const (
	metricRHat          = "rhat"
	metricEffectiveSize = "effective_size"
	metricAcceptance    = "acceptance"
	metricDivergences   = "divergences"
	metricStepSize      = "step_size"
)

// hmcProgram draws the networks of a regression by Hamiltonian Monte Carlo, a chain from each member, in Float64. Layers must be
// without noise, and add the prior to the graph's stochastic.LayerLosses as KL; see hmc.Posterior. It measures, of the
// function at the inputs of all sets, the largest split R-hat and the smallest effective sample size, and the acceptance,
// the divergences and the step size of the chains. Chains that do not move at an input have diverged.
type hmcProgram struct {
	Warmup, Draws, Leapfrogs int // as in hmc.Options
	// Keep is the number of draws of each chain, evenly spaced among Draws, that predictions are kept of.
	Keep int
}

// Identity implements spec.Identifier by the name that the type has in stored results.
func (h hmcProgram) Identity() spec.Identity {
	type fields hmcProgram
	return spec.Identity{Type: "experiment.HMC", Value: fields(h)}
}

// Check implements experiment.Program.
func (h hmcProgram) Check(e experiment.Experiment) error {
	if e.Method.IsProcess() {
		return errors.New("where.HMC draws a network's parameters from their posterior, and a Gaussian process has parameters that describe a posterior themselves; give other Method.Layers")
	}
	if h.Warmup < 40 || h.Leapfrogs < 1 || h.Keep < 1 || h.Draws < 4 || h.Draws%h.Keep != 0 { // those of hmc.Options, and Keep
		return fmt.Errorf("where.HMC has Warmup %d, Leapfrogs %d, Draws %d and Keep %d; they must be at least 40, 1, 4 and 1, and Keep must divide Draws", h.Warmup, h.Leapfrogs, h.Draws, h.Keep)
	}
	return nil
}

// Run implements experiment.Program: it trains the members of the experiment, and draws from there.
func (h hmcProgram) Run(ctx context.Context, e experiment.Experiment, d experiment.Data, progress func(done float64, note string)) (*experiment.Predictions, error) {
	members, err := experiment.FitOne(ctx, e, d, func(_ float64, note string) { progress(0, note) }, nil)
	if err != nil {
		return nil, err
	}
	p := new(experiment.Predictions)
	p.Sets, p.Metrics, err = h.sample(ctx, members, d, nets.SeedOf(e.Seed, e.Split, len(members)), progress)
	return p, err
}

// sample draws the networks, and predicts all sets by those that are kept.
func (h hmcProgram) sample(ctx context.Context, members []*nets.Model, d experiment.Data, seed uint64, progress func(done float64, note string)) ([]experiment.Prediction, map[string]float64, error) {
	seeds := make([]uint64, len(members)) // of initial values, which the members' replace
	m, err := nets.NewReplicas(members[0].Backend, members[0].Network, members[0].Likelihood, seeds...)
	if err != nil {
		return nil, nil, err
	}
	p, err := hmc.NewPosterior(m, d.Train)
	if err != nil {
		return nil, nil, err
	}
	defer p.Close()
	start, err := p.Start(members...)
	if err != nil {
		return nil, nil, err
	}
	chains, err := hmc.Sample(ctx, p.Density, start, hmc.Options{Warmup: h.Warmup, Draws: h.Draws, Leapfrogs: h.Leapfrogs, Seed: seed, Progress: func(done, total int) {
		progress(float64(done)/float64(total), fmt.Sprintf("transition %d of %d", done, total))
	}})
	if err != nil {
		return nil, nil, err
	}
	found := map[string]float64{
		metricAcceptance: chains.Acceptance, metricDivergences: float64(chains.Divergences), metricStepSize: chains.StepSize,
		metricRHat: 0, metricEffectiveSize: math.Inf(1),
	}
	var all []experiment.Prediction
	for _, set := range d.Sets {
		var drawn, kept []predict.Mixture
		for draw := range h.Draws {
			var at [][]float64
			for _, chain := range chains.Draws {
				at = append(at, chain[draw])
			}
			m, err := p.Predict(at, set.Inputs.(nets.Floats))
			if err != nil {
				return nil, nil, err
			}
			if drawn = append(drawn, m); len(drawn)%(h.Draws/h.Keep) == 0 {
				kept = append(kept, m)
			}
		}
		for i := range set.Len() {
			function := make([][]float64, len(members)) // [chain][draw]
			for _, m := range drawn {
				for c := range function {
					function[c] = append(function[c], m.Mean[c][i])
				}
			}
			rHat, size := metrics.SplitRHat(function), metrics.EffectiveSize(function)
			if math.IsNaN(rHat + size) {
				return nil, nil, fmt.Errorf("where: chains with acceptance %.3g and %s do not move: %w", chains.Acceptance, report.Counted(chains.Divergences, "divergence", "divergences"), metrics.ErrValue)
			}
			found[metricRHat] = max(found[metricRHat], rHat)
			found[metricEffectiveSize] = min(found[metricEffectiveSize], size)
		}
		mixed, err := predict.Mix(kept...)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, experiment.Prediction{Set: set.Name, Targets: set.Targets, Prediction: predict.Prediction{Mixture: mixed, Width: 1, LastConvolution: -1}})
	}
	return all, found, nil
}
