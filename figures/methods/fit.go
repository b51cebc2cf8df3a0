package methods

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/results"
)

// Network is the network of dense layers of a method: a multilayer perceptron, or for a Gaussian process a
// residual one of as many layers, whose head is still to come. All widths are equal.
func (m Method) Network(o Options, width, hiddenLayers int) nets.Network {
	if m.Process != nil {
		return nets.ResidualMLP{Layers: m.Process.Hidden(), Width: width, Depth: hiddenLayers}
	}
	return nets.MLP{Layers: m.Layers(o), Widths: slices.Repeat([]int{width}, hiddenLayers)}
}

// WithHead is the residual network of Network with a head.
func WithHead(network nets.Network, head nets.Layers) nets.Network {
	n := network.(nets.ResidualMLP)
	n.Head = head
	return n
}

// Describe is the part of a training run that is done, from 0 to 1, and how it goes in words.
func Describe(at train.Progress) (done float64, note string) {
	what := "training"
	if at.Pretraining {
		what = "generative pretraining"
	}
	note = fmt.Sprintf("%s, epoch %d of %d, loss %.3g", what, min(at.Epoch+1, at.Epochs), at.Epochs, at.Losses.Total)
	return float64(at.Step) / float64(at.Steps), note
}

// Regressions are what Fit trains: one model, or one ensemble, for each experiment.
type Regressions struct {
	Method  Method
	Trainer train.Trainer
	// Network is that of Method.Network.
	Network nets.Network
	// Experiments have equal groups; each has its own training data and the inputs at which to predict.
	Experiments []results.Experiment
	Sets        []train.Dataset
	Inputs      []nets.Floats
	// HeldOut, if not nil, are examples of each by whose negative log-likelihood the best of at most a hundred epochs is
	// kept (train.EarlyStopping). Methods with a Process have none.
	HeldOut []train.Dataset
}

// Fit trains all models as replicas of one graph and predicts. A prediction of a model that diverged, or whose
// Gaussian process has no Cholesky factor, says so, and does not keep the others from theirs.
func (r Regressions) Fit(ctx context.Context, backend compute.Backend) ([]Prediction, error) {
	members := r.Method.Networks()
	if r.HeldOut != nil && (r.Method.Process != nil || len(r.HeldOut) != len(r.Experiments)) {
		return nil, fmt.Errorf("methods: %d sets of held-out examples for %d experiments with %s; want one for each, and none for a Gaussian process", len(r.HeldOut), len(r.Experiments), r.Method.Name)
	}
	samples := r.Method.SamplesOf(r.Experiments[0].Samples)
	f := fitting{Trainer: r.Trainer, network: r.Network}
	var heldOut []train.Dataset
	for i, e := range r.Experiments {
		for m := range members {
			f.sets, f.inputs = append(f.sets, r.Sets[i]), append(f.inputs, r.Inputs[i])
			f.seeds = append(f.seeds, Seed(e, m))
			if r.HeldOut != nil {
				heldOut = append(heldOut, r.HeldOut[i])
			}
		}
	}
	if r.Method.Process != nil {
		return f.process(ctx, backend, r.Method.Process)
	}
	if r.HeldOut != nil {
		f.EarlyStopping = train.EarlyStopping{Every: (r.Trainer.Epochs + scoredEpochs - 1) / scoredEpochs, Score: func(ctx context.Context, m *nets.Model) ([]float64, error) {
			return heldOutNLL(ctx, m, heldOut, samples)
		}}
	}
	fitted, diverged, err := f.train(ctx, backend)
	if err != nil {
		return nil, err
	}
	drawn, err := predict.SampleReplicas(ctx, fitted, f.inputs, predict.Options{Samples: samples})
	if err != nil {
		return nil, fmt.Errorf("predicting: %w", err)
	}
	all := make([]Prediction, len(r.Experiments))
	for i := range all {
		var mixtures []predict.Mixture
		for _, p := range drawn[i*members : (i+1)*members] {
			mixtures = append(mixtures, p.Mixture)
		}
		if all[i].Mixture, err = predict.Mix(mixtures...); err != nil {
			return nil, err
		}
		all[i].Diverged = slices.Contains(diverged[i*members:(i+1)*members], true)
	}
	return all, nil
}

// scoredEpochs is how many epochs early stopping has the choice of at most.
const scoredEpochs = 100

// heldOutNLL is the negative log-likelihood of examples of each replica, in units of their scale; NaN for one whose
// prediction is not finite.
func heldOutNLL(ctx context.Context, m *nets.Model, examples []train.Dataset, samples int) ([]float64, error) {
	var inputs []nets.Floats
	for _, set := range examples {
		inputs = append(inputs, set.Inputs.(nets.Floats))
	}
	drawn, err := predict.SampleReplicas(ctx, m, inputs, predict.Options{Samples: samples})
	if err != nil {
		return nil, fmt.Errorf("predicting held-out examples: %w", err)
	}
	scores := make([]float64, len(drawn))
	for i, p := range drawn {
		if scores[i] = math.NaN(); !(Prediction{Mixture: p.Mixture}).Finite() {
			continue
		}
		if scores[i], err = metrics.MonteCarloNLL(examples[i].Targets, p.Mean, p.Variances(), 1); err != nil {
			return nil, err
		}
	}
	return scores, nil
}

// fitting is the training of a model for each seed.
type fitting struct {
	train.Trainer
	network nets.Network
	sets    []train.Dataset
	inputs  []nets.Floats
	seeds   []uint64
}

// train fits the models, and tells which of them diverged.
func (f fitting) train(ctx context.Context, backend compute.Backend) (m *nets.Model, diverged []bool, err error) {
	if m, err = nets.NewReplicas(backend, f.network, likelihood.Gaussian{}, f.seeds...); err != nil {
		return nil, nil, err
	}
	diverged = make([]bool, len(f.seeds))
	err = f.Fit(ctx, m, f.sets...)
	var some *train.DivergedError
	if !errors.As(err, &some) {
		return m, diverged, err
	}
	for _, d := range some.Diverged {
		diverged[d.Replica] = true
	}
	return m, diverged, nil
}

// process trains a Gaussian process on the features of a network together with it.
func (f fitting) process(ctx context.Context, backend compute.Backend, p Process) ([]Prediction, error) {
	inputs := make([]nets.Floats, len(f.sets))
	for i, set := range f.sets {
		inputs[i] = set.Inputs.(nets.Floats)
	}
	task := Task{Kind: Regression, Inputs: inputs[0].Size(), Examples: f.sets[0].Len(), Seeds: f.seeds}
	if task.Inputs == 1 {
		task.Kind = FewInputs
	}
	task.Features = func() ([][]float64, int, error) {
		untrained, err := nets.NewReplicas(backend, WithHead(f.network, baselines.Headless{}), nil, f.seeds...)
		if err != nil {
			return nil, 0, err
		}
		found, err := predict.SampleReplicas(ctx, untrained, inputs, predict.Options{Samples: 1})
		if err != nil {
			return nil, 0, fmt.Errorf("features of the untrained network: %w", err)
		}
		var features [][]float64
		for _, of := range found {
			features = append(features, of.Outputs[0])
		}
		return features, found[0].Width, nil
	}
	head, err := p.Head(task)
	if err != nil {
		return nil, err
	}
	f.network = WithHead(f.network, head.Layers)
	fitted, diverged, err := f.train(ctx, backend)
	if err != nil {
		return nil, err
	}
	noise, err := fitted.NoiseVariances()
	if err != nil {
		return nil, err
	}
	var failed baselines.FailedReplicas
	if err := head.Finish(fitted.Store, noise...); err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	each, err := predict.Marginals(ctx, fitted, f.inputs...)
	if err != nil {
		return nil, fmt.Errorf("predicting: %w", err)
	}
	all := make([]Prediction, len(each))
	for i, m := range each {
		all[i] = Prediction{Mixture: m, Diverged: diverged[i], Failed: failed[i]}
	}
	return all, nil
}

// A Prediction is the predictive distribution of a regression at N inputs, of a model or an ensemble.
type Prediction struct {
	predict.Mixture
	// Diverged says whether training did.
	Diverged bool
	// Failed is why the prediction is of no use, of a Gaussian process without a Cholesky factor.
	Failed error
}

// NoiseDeviation is the root of the components' mean noise variance, at the first input: the noise is the same at all.
func (p Prediction) NoiseDeviation() float64 {
	var noise []float64
	for _, component := range p.NoiseStd {
		noise = append(noise, component[0])
	}
	return floats.Norm(noise, 2) / math.Sqrt(float64(len(noise)))
}

// Quantiles are those of the function at each input, by name: of the Gaussian where
// there is only one, otherwise of the M functions.
func (p Prediction) Quantiles(wanted map[string]float64) map[string][]float64 {
	curves := make(map[string][]float64, len(wanted))
	column := make([]float64, len(p.Mean))
	for i := range p.Mean[0] {
		for m := range p.Mean {
			column[m] = p.Mean[m][i]
		}
		slices.Sort(column)
		for name, q := range wanted {
			var value float64
			if p.Std != nil {
				value = distuv.Normal{Mu: p.Mean[0][i], Sigma: p.Std[0][i]}.Quantile(q)
			} else {
				value = stat.Quantile(q, stat.LinInterp, column, nil)
			}
			curves[name] = append(curves[name], value)
		}
	}
	return curves
}

// Finite says whether training converged, no mean or variance of the prediction is a NaN or an infinity, and no variance
// so small that the log density of a target of order 1 is an infinity.
func (p Prediction) Finite() bool {
	infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v*v, 0) }
	for _, values := range slices.Concat(p.Mean, p.Std, p.NoiseStd) {
		if slices.ContainsFunc(values, infinite) {
			return false
		}
	}
	for m, variances := range p.Variances() {
		for i, v := range variances {
			if far := 1 + math.Abs(p.Mean[m][i]); infinite(far / math.Sqrt(v)) {
				return false
			}
		}
	}
	return !p.Diverged
}
