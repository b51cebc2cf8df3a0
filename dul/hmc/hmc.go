// Package hmc draws from a distribution by Hamiltonian Monte Carlo (Duane et al. 1987; Neal 2011). It is an expensive
// reference for approximate posteriors, exact up to a Monte Carlo error that can be measured.
//
//	p, err := hmc.NewPosterior(m, data) // of the parameters of a network
//	start, err := p.Start(m)
//	chains, err := hmc.Sample(ctx, p.Density, start, hmc.Options{Warmup: 500, Draws: 500, Leapfrogs: 50})
package hmc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Density returns the logarithm of a density, up to a constant, and its gradient at the position of each chain,
// at[chain][dimension]. It must not keep or change the positions.
type Density func(at [][]float64) (logs []float64, gradients [][]float64, err error)

// Options are the settings of Sample.
type Options struct {
	// Warmup is the number of transitions that tune the sampler and are discarded, at least 40; Draws is the number of
	// transitions that are kept, at least 1.
	Warmup, Draws int
	// Leapfrogs is the mean number of leapfrog steps in a transition, at least 1. Each transition has a random number
	// from 1 to 2 Leapfrogs - 1, the same for all chains, to avoid periods of the dynamics.
	Leapfrogs int
	// Seed fixes all random choices: the same seed gives the same chains.
	Seed uint64
	// Progress, if not nil, is called with the number of finished transitions and the total.
	Progress func(done, total int)
}

// Chains are the draws of several chains, with diagnostics of the sampler.
type Chains struct {
	Draws      [][][]float64 // [chain][draw][dimension]
	LogDensity [][]float64   // [chain][draw], as Density has it
	// Acceptance is the mean acceptance probability of the kept transitions.
	Acceptance float64
	// Divergences is the number of kept transitions, in all chains, whose energy error was above 1000 or NaN. They are
	// rejected. If there are some, the chains may have missed a part of the distribution.
	Divergences int
	// StepSize is the tuned step size, and Scale the standard deviation of each dimension, by which steps are scaled.
	StepSize float64
	Scale    []float64
}

// Number returns a number computed from each draw, [chain][draw], for metrics.SplitRHat and metrics.EffectiveSize.
func (c *Chains) Number(of func(draw []float64) float64) [][]float64 {
	all := make([][]float64, len(c.Draws))
	for i, chain := range c.Draws {
		for _, draw := range chain {
			all[i] = append(all[i], of(draw))
		}
	}
	return all
}

// mostEnergyError is the error of the energy from which on a transition counts as divergent, as in Stan.
const mostEnergyError = 1000

// Sample returns draws of one chain from each start. With M = diag(Scale^-2), a transition draws momenta p ~ N(0, M),
// follows the dynamics of the energy
//
//	H(q, p) = -log density(q) + 1/2 p^T M^-1 p
//
// by leapfrog steps, and accepts the end with probability min(1, exp(H before - H after)).
//
// The warm-up tunes the step size by dual averaging (Hoffman and Gelman 2014, section 3.2) to a mean acceptance
// probability of 0.8 over all chains. Scale is 1 at first. After an eighth, a quarter, half and three quarters of the
// warm-up it becomes the standard deviation over all chains of the positions since the previous change, and the step
// size is tuned again. After the warm-up nothing changes, so that the kept draws are those of a Markov chain. Start the
// chains far from each other; otherwise metrics.SplitRHat says little.
//
// It is an error if o is out of range, if there is no start or starts differ in length, if the log density at a start
// is NaN or infinite, if density fails, or if ctx is cancelled.
func Sample(ctx context.Context, density Density, start [][]float64, o Options) (*Chains, error) {
	if err := o.check(start); err != nil {
		return nil, err
	}
	s := &sampler{density: density, rng: rand.New(rand.NewPCG(o.Seed, 1)), at: start}
	s.scale = slices.Repeat([]float64{1}, len(start[0]))
	var err error
	if s.logs, s.gradients, err = density(start); err != nil {
		return nil, fmt.Errorf("hmc: %w", err)
	}
	for i, v := range s.logs {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("hmc: the log density at the start of chain %d is %v; start where the density is positive", i, v)
		}
	}
	found := &Chains{Draws: make([][][]float64, len(start)), LogDensity: make([][]float64, len(start))}
	var tuned averaging
	var seen [][]float64
	for t := range o.Warmup + o.Draws {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch t {
		case 0:
			tuned = newAveraging(0.1 / math.Pow(float64(len(s.scale)), 0.25))
		case o.Warmup / 8, o.Warmup / 4, o.Warmup / 2, o.Warmup / 4 * 3:
			s.rescale(seen)
			seen = nil
			tuned = newAveraging(0.5 / math.Pow(float64(len(s.scale)), 0.25))
		}
		size := tuned.size
		if t >= o.Warmup {
			size = tuned.mean()
		}
		accepted, divergent, err := s.transition(size, 1+s.rng.IntN(2*o.Leapfrogs-1))
		if err != nil {
			return nil, fmt.Errorf("hmc: transition %d: %w", t, err)
		}
		switch {
		case t < o.Warmup:
			tuned.update(accepted)
			seen = append(seen, s.at...)
		default:
			found.Acceptance += accepted / float64(o.Draws)
			found.Divergences += divergent
			for c := range start {
				found.Draws[c], found.LogDensity[c] = append(found.Draws[c], s.at[c]), append(found.LogDensity[c], s.logs[c])
			}
		}
		if o.Progress != nil {
			o.Progress(t+1, o.Warmup+o.Draws)
		}
	}
	found.StepSize, found.Scale = tuned.mean(), s.scale
	return found, nil
}

// leastWarmup is the least number of transitions in which the sampler can be tuned.
const leastWarmup = 40

// most bounds the numbers of transitions and steps, so that no sum overflows.
const most = 1_000_000_000

func (o Options) check(start [][]float64) error {
	switch {
	case len(start) == 0 || len(start[0]) == 0:
		return errors.New("hmc: there are no chains, or they have no dimensions; give each chain a start")
	case slices.ContainsFunc(start, func(at []float64) bool { return len(at) != len(start[0]) }):
		return errors.New("hmc: the starts of the chains have different lengths")
	case o.Warmup < leastWarmup || o.Draws < 1 || o.Leapfrogs < 1 || max(o.Warmup, o.Draws, o.Leapfrogs) > most:
		return fmt.Errorf("hmc: Warmup is %d, Draws %d and Leapfrogs %d; they must be at least %d, 1 and 1, and at most %d", o.Warmup, o.Draws, o.Leapfrogs, leastWarmup, most)
	}
	return nil
}

// A sampler is the state of all chains.
type sampler struct {
	density Density
	rng     *rand.Rand
	scale   []float64

	at        [][]float64 // positions are replaced, never changed, so that draws can be kept
	logs      []float64
	gradients [][]float64
}

// transition makes one transition of all chains. It returns their mean acceptance probability, and how many diverged.
func (s *sampler) transition(size float64, steps int) (accepted float64, divergent int, err error) {
	momenta, before := make([][]float64, len(s.at)), make([]float64, len(s.at))
	at, logs, gradients := make([][]float64, len(s.at)), s.logs, s.gradients
	for c := range at {
		at[c], momenta[c] = slices.Clone(s.at[c]), make([]float64, len(s.scale))
		for i := range momenta[c] { // of q / Scale, so that they are standard normal
			momenta[c][i] = s.rng.NormFloat64()
		}
		before[c] = energy(logs[c], momenta[c])
	}
	kick := func(part float64) {
		for c, p := range momenta {
			for i := range p {
				p[i] += part * size * s.scale[i] * gradients[c][i]
			}
		}
	}
	kick(0.5)
	for step := range steps {
		for c, q := range at {
			for i := range q {
				q[i] += size * s.scale[i] * momenta[c][i]
			}
		}
		if logs, gradients, err = s.density(at); err != nil {
			return 0, 0, err
		}
		if step < steps-1 {
			kick(1)
		}
	}
	kick(0.5)
	keptLogs, keptGradients := slices.Clone(s.logs), slices.Clone(s.gradients)
	next := slices.Clone(s.at)
	for c := range at {
		off := energy(logs[c], momenta[c]) - before[c]
		u := s.rng.Float64()
		if !(off < mostEnergyError) { // also if it is NaN
			divergent++
			continue
		}
		probability := min(1, math.Exp(-off))
		accepted += probability / float64(len(at))
		if u < probability {
			next[c], keptLogs[c], keptGradients[c] = at[c], logs[c], gradients[c]
		}
	}
	s.at, s.logs, s.gradients = next, keptLogs, keptGradients
	return accepted, divergent, nil
}

// energy is H of a log density and scaled momenta.
func energy(log float64, momenta []float64) float64 {
	h := -log
	for _, p := range momenta {
		h += p * p / 2
	}
	return h
}

// rescale makes the standard deviations of positions the scale of the steps. A dimension that did not move keeps its own.
func (s *sampler) rescale(seen [][]float64) {
	for i := range s.scale {
		mean, squares := 0.0, 0.0
		for n, at := range seen { // Welford's recursion
			d := at[i] - mean
			mean += d / float64(n+1)
			squares += d * (at[i] - mean)
		}
		if squares > 0 {
			s.scale[i] = math.Sqrt(squares / float64(len(seen)-1))
		}
	}
}

// target is the mean acceptance probability that the step size is tuned for.
const target = 0.8

// averaging tunes a step size by dual averaging.
type averaging struct {
	size                  float64
	middle, sum, logs, at float64 // mu, the sum of the errors, the averaged logarithm, and the number of updates
}

func newAveraging(size float64) averaging {
	return averaging{size: size, middle: math.Log(10 * size)}
}

// update takes the acceptance probability of a transition with the step size. The constants are Hoffman and
// Gelman's: gamma 0.05, t0 10, kappa 0.75.
func (a *averaging) update(accepted float64) {
	a.at++
	a.sum += target - accepted
	log := a.middle - math.Sqrt(a.at)/0.05*a.sum/(a.at+10)
	weight := math.Pow(a.at, -0.75)
	a.logs = weight*log + (1-weight)*a.logs
	a.size = math.Exp(log)
}

// mean is the averaged step size.
func (a *averaging) mean() float64 { return math.Exp(a.logs) }
