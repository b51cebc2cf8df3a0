package toy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
)

// A ResidualStep is what a density layer adds to one unit of a sum, a' = a + w . h + noise. Its numbers bound the
// variance of a' from below:
//
//	Var[noise | h] >= Alpha E(h),   |w|^2 = Weight,   E(h) >= Lambda/2 |h|^2.
//
// Lambda is the smallest eigenvalue of the precision of a Gaussian energy around zero.
type ResidualStep struct{ Alpha, Weight, Lambda float64 }

// Kappa is kappa = 2 Weight/Lambda, with which E[(w . h)^2] <= kappa E[E(h)].
func (s ResidualStep) Kappa() float64 { return 2 * s.Weight / s.Lambda }

// Bound is a lower bound of Var a', given one of Var a, v >= 0, and the expected energy e = E[E(h)]:
//
//	Var a' >= max(sqrt(v) - sqrt(kappa e), 0)^2 + Alpha e,
//
// since the noise is independent of a and h, and standard deviations obey the triangle inequality:
// sd(a + w . h) >= sd(a) - sd(w . h). It grows with v, so that it can be applied layer by layer.
func (s ResidualStep) Bound(v, e float64) float64 {
	left := max(math.Sqrt(v)-math.Sqrt(s.Kappa()*e), 0)
	return left*left + s.Alpha*e
}

// Constant is the largest c with Bound(v, e) >= c (v + e) for all v and e >= 0: the smaller eigenvalue of the
// quadratic form v - 2 sqrt(kappa v e) + (kappa + Alpha) e of sqrt(v) and sqrt(e), whose determinant is Alpha,
//
//	c = 2 Alpha / (t + sqrt(t^2 - 4 Alpha)),   t = 1 + kappa + Alpha.
//
// It is positive where Alpha is, and at most 1. By induction Var a_{L+1} >= c^{L+1} (E[E_0] + ... + E[E_L]), which is the
// paper's Proposition 1 with a positive constant.
func (s ResidualStep) Constant() float64 {
	t := 1 + s.Kappa() + s.Alpha
	return 2 * s.Alpha / (t + math.Sqrt(t*t-4*s.Alpha))
}

// PrintedConstant is the constant of the paper's proof, min(Alpha, low - 2 sqrt(M) D high), for a layer of width D with
// |w^j|^2 <= M = Weight. The variance of every unit before it is between low and high times the expected sum of the
// energies before it. The constant is negative unless sqrt(M) D < low/(2 high) <= 1/2.
func (s ResidualStep) PrintedConstant(width int, low, high float64) float64 {
	return min(s.Alpha, low-2*math.Sqrt(s.Weight)*float64(width)*high)
}

// Bounds are the variances of one residual network along the grid, and what Proposition 1 and its repair are made of.
type Bounds struct {
	X      []float64      // the grid, in the units of the data
	Layers []BoundedLayer // the input layer and those after it, in their order
}

// A BoundedLayer is one layer and the sum a that it completes.
type BoundedLayer struct {
	// Energy is E[E(h) | x] of the layer's input, [len(X)].
	Energy []float64
	// Variance is Var[a^j | x], and VarianceError the standard error of that estimate, [Width][len(X)].
	Variance, VarianceError [][]float64
	// Steps are the steps of the units, [Width].
	Steps []ResidualStep
}

// Uniform is the step of the layer's worst unit: the least Alpha and the largest Weight.
func (l BoundedLayer) Uniform() ResidualStep {
	worst := l.Steps[0]
	for _, s := range l.Steps {
		worst.Alpha, worst.Weight = min(worst.Alpha, s.Alpha), max(worst.Weight, s.Weight)
	}
	return worst
}

// TotalEnergy is the expected sum of the energies up to layer l, E[E_0 + ... + E_l | x], [len(X)].
func (b Bounds) TotalEnergy(l int) []float64 {
	total := make([]float64, len(b.X))
	for _, layer := range b.Layers[:l+1] {
		floats.Add(total, layer.Energy)
	}
	return total
}

// LayerByLayer is ResidualStep.Bound of a unit, applied from the input layer on, where v = Alpha e: lower bounds of its
// Variance after each layer, [len(Layers)][len(X)].
func (b Bounds) LayerByLayer(unit int) [][]float64 {
	all := make([][]float64, len(b.Layers))
	for l, layer := range b.Layers {
		all[l] = make([]float64, len(b.X))
		for i, e := range layer.Energy {
			if l == 0 {
				all[l][i] = layer.Steps[unit].Alpha * e
			} else {
				all[l][i] = layer.Steps[unit].Bound(all[l-1][i], e)
			}
		}
	}
	return all
}

// Ratios are the smallest and the largest Var[a^j | x] / E[E_0 + ... + E_l | x] after layer l, over all units j and the
// grid: what the constants of the proposition are bounds of.
func (b Bounds) Ratios(l int) (low, high float64) {
	low, total := math.Inf(1), b.TotalEnergy(l)
	for _, unit := range b.Layers[l].Variance {
		for i, v := range unit {
			low, high = min(low, v/total[i]), max(high, v/total[i])
		}
	}
	return low, high
}

// Constants are, after each layer, the constants C with Var a^j >= C E[E_0 + ... + E_l] for all units j: repaired, the
// product of ResidualStep.Constant over the layers, for all x; and printed, ResidualStep.PrintedConstant with the
// Ratios that the layer before it has on the grid, which is to the printed proof's advantage. At the input layer both
// are its Alpha, the repaired one at most 1.
func (b Bounds) Constants() (repaired, printed []float64) {
	for l, layer := range b.Layers {
		worst := layer.Uniform()
		if l == 0 {
			repaired, printed = append(repaired, min(worst.Alpha, 1)), append(printed, worst.Alpha)
			continue
		}
		low, high := b.Ratios(l - 1)
		repaired = append(repaired, repaired[l-1]*worst.Constant())
		printed = append(printed, worst.PrintedConstant(len(layer.Steps), low, high))
	}
	return repaired, printed
}

// FindBounds trains the residual network of section 2.4, of density layers with the LDL energy, on the cubic of seed 0, in
// so many steps after half as many of pretraining. It measures the variance of every unit of every sum with so many draws.
// It replaces network.Layers. It calls progress, if that is not nil, with the part that is done.
func FindBounds(ctx context.Context, network nets.ResidualSum, steps, draws int, progress func(done float64, note string)) (b Bounds, err error) {
	if draws < 2 {
		return b, fmt.Errorf("toy: a variance of %d draws; give at least 2", draws)
	}
	e, err := Paper(Cubic{Seeds: 1}, methods.Density)
	if err != nil {
		return b, err
	}
	network.Layers = e.Method.Layers
	Steps(steps)(&e)
	e.Recipe.Samples, e.Task.Metrics = 1, nil
	e.Task.Network = nets.Func{Name: "residual sum", Build: func(_ nets.Layers, s *model.Scope, x *graph.Node, outputs int) *graph.Node {
		return network.Apply(s, x, outputs)
	}}
	e.Task.AfterTraining = func(ctx context.Context, members []*nets.Model, _ experiment.Data) (map[string]float64, map[string]map[string][]float64, error) {
		b, err = boundsOf(ctx, members[0], network, draws)
		return nil, nil, err
	}
	if _, err := (experiment.Engine{Progress: progress}).Run(ctx, e); err != nil {
		return b, err
	}
	if b.Layers == nil {
		return b, errors.New("toy: the training of the residual network diverged")
	}
	return b, nil
}

// chunk is how many draws of all sums are held at once.
const chunk = 200

// boundsOf measures a network on the grid.
func boundsOf(ctx context.Context, m *nets.Model, network nets.ResidualSum, draws int) (Bounds, error) {
	data, err := Cubic{Seeds: 1}.Load(ctx, 0)
	if err != nil {
		return Bounds{}, err
	}
	b := Bounds{X: Grid()}
	names := []string{"input"}
	for l := range network.Depth {
		names = append(names, fmt.Sprintf("block_%d", l))
	}
	for _, name := range names {
		steps, err := stepsOf(m, "/model/network/"+name, network.Width)
		if err != nil {
			return Bounds{}, err
		}
		b.Layers = append(b.Layers, BoundedLayer{Steps: steps, Energy: make([]float64, len(b.X))})
	}
	moments := make([]powers, len(names)*network.Width*len(b.X))
	for done := 0; done < draws; done += chunk {
		count := min(chunk, draws-done)
		found, err := predict.Sample(ctx, m.With(network.Sums()), data.Sets[0].Inputs, predict.Options{Samples: count, Energies: true})
		if err != nil {
			return Bounds{}, fmt.Errorf("toy: drawing from the residual network: %w", err)
		}
		for l := range b.Layers {
			floats.AddScaled(b.Layers[l].Energy, float64(count)/float64(draws), found.Energies[l].Mean)
		}
		for _, sums := range found.Outputs { // [grid, layers, units]
			for k, a := range sums {
				moments[k].add(a)
			}
		}
	}
	for l := range b.Layers {
		layer := &b.Layers[l]
		for j := range network.Width {
			variance, deviation := make([]float64, len(b.X)), make([]float64, len(b.X))
			for i := range b.X {
				variance[i], deviation[i] = moments[(i*len(names)+l)*network.Width+j].variance()
			}
			layer.Variance, layer.VarianceError = append(layer.Variance, variance), append(layer.VarianceError, deviation)
		}
	}
	return b, nil
}

// powers are sums of powers of draws, less the first of them so that a large mean costs no precision.
type powers struct {
	n, first   float64
	s1, s2, s3 float64
	s4         float64
}

func (p *powers) add(a float64) {
	if p.n == 0 {
		p.first = a
	}
	a -= p.first
	p.n++
	p.s1 += a
	p.s2 += a * a
	p.s3 += a * a * a
	p.s4 += a * a * a * a
}

// variance is the unbiased estimate of the variance, and its standard error sqrt((m4 - m2^2)/n) with the central
// moments m.
func (p *powers) variance() (variance, deviation float64) {
	m := p.s1 / p.n
	m2 := p.s2/p.n - m*m
	m4 := p.s4/p.n - 4*m*p.s3/p.n + 6*m*m*p.s2/p.n - 3*m*m*m*m
	return m2 * p.n / (p.n - 1), math.Sqrt(max(m4-m2*m2, 0) / p.n)
}

// stepsOf reads the steps of a trained density layer's units, which has the LDL energy.
func stepsOf(m *nets.Model, scope string, width int) ([]ResidualStep, error) {
	values := map[string][]float64{}
	var missing error
	for _, name := range []string{"weights", "gamma_log_variance", "energy/lower", "energy/log_variance"} {
		v, _, err := params.Values(m.Store, scope+"/"+name)
		values[name], missing = v, errors.Join(missing, err)
	}
	if missing != nil {
		return nil, fmt.Errorf("toy: bounds need density layers with the LDL energy: %w", missing)
	}
	lambda, err := leastPrecision(values["energy/lower"], values["energy/log_variance"])
	if err != nil {
		return nil, fmt.Errorf("toy: layer %s: %w", scope, err)
	}
	steps := make([]ResidualStep, width)
	for j := range steps {
		steps[j] = ResidualStep{Alpha: math.Exp(values["gamma_log_variance"][j]), Lambda: lambda}
		for k := j; k < len(values["weights"]); k += width {
			steps[j].Weight += values["weights"][k] * values["weights"][k]
		}
	}
	return steps, nil
}

// leastPrecision is the smallest eigenvalue of the precision L D L^T of an energy.LDL with these parameters.
func leastPrecision(lower, logVariance []float64) (float64, error) {
	d := len(logVariance)
	scaled := mat.NewDense(d, d, nil) // L D^{1/2}
	for i := range d {
		for j := range i + 1 {
			l := 1.0
			if j < i {
				l = lower[i*d+j]
			}
			scaled.Set(i, j, l*math.Exp(-logVariance[j]/2))
		}
	}
	var factor mat.SVD
	if !factor.Factorize(scaled, mat.SVDNone) {
		return 0, errors.New("the singular values of its precision were not found")
	}
	least := slices.Min(factor.Values(nil))
	return least * least, nil
}
