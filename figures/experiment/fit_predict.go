package experiment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/dul/train"
)

// predictions predicts all sets of all experiments.
func (f *fit) predictions(ctx context.Context) ([]*Predictions, error) {
	all := make([]*Predictions, len(f.list))
	for i, e := range f.list {
		all[i] = &Predictions{Experiment: e.id, Split: e.Split, Diverged: f.diverged[i] != "", Reason: f.diverged[i], Unit: f.data[i].Unit, Zero: f.data[i].Zero}
	}
	if !slices.Contains(f.diverged, "") {
		return all, nil
	}
	if sampler := f.first().Method.Sampler; sampler != nil {
		return all, f.sample(ctx, sampler, all[0])
	}
	each, err := f.after(ctx, all[0])
	if errors.Is(err, metrics.ErrValue) {
		all[0].diverge("Task.After: " + err.Error())
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("Task.After: %w", err)
	}
	for k, set := range f.data[0].Sets {
		f.report(f.unit, 1, fmt.Sprintf("predicting the set %q", set.Name))
		found, err := f.predictSet(ctx, k)
		if errors.Is(err, metrics.ErrValue) && len(all) == 1 {
			all[0].diverge(fmt.Sprintf("predicting the set %q: %v", set.Name, err))
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the set %q: %w", set.Name, err)
		}
		for i := range found {
			found[i].Extra = each[set.Name]
			all[i].Sets = append(all[i].Sets, found[i])
			if text := found[i].notFinite(); text != "" {
				all[i].diverge(text)
			}
		}
	}
	return all, nil
}

// diverge notes the first reason why the predictions are none.
func (p *Predictions) diverge(reason string) {
	p.Diverged, p.Reason = true, cmp.Or(p.Reason, reason)
}

// sample predicts all sets of an experiment by a sampler that begins at its trained networks.
func (f *fit) sample(ctx context.Context, sampler Sampler, p *Predictions) error {
	drawn, inspected, err := sampler.Sample(ctx, f.models, f.data[0], f.first().networkSeed(f.members()), func(done float64, note string) {
		f.report(f.unit, done, note)
	})
	if err != nil {
		return fmt.Errorf("sampling: %w", err)
	}
	p.Inspected = inspected
	for i, set := range drawn {
		set.Set, set.Targets, set.Labels, set.likelihood = f.data[0].Sets[i].Name, f.data[0].Sets[i].Targets, f.data[0].Sets[i].Labels, f.first().Task.Likelihood
		p.Sets = append(p.Sets, *set)
	}
	return nil
}

// after asks the task's After, if there is one, about the networks of the only experiment.
func (f *fit) after(ctx context.Context, p *Predictions) (each map[string]map[string][]float64, err error) {
	after := f.first().Task.After
	if after == nil {
		return nil, nil
	}
	if p.Inspected, each, err = after(ctx, f.models, f.data[0]); err != nil {
		return nil, err
	}
	if p.Inspected == nil { // says that they were asked
		p.Inspected = map[string]float64{}
	}
	return each, finiteNumbers("Task.After", p.Inspected)
}

// predictSet predicts set number k of all experiments.
func (f *fit) predictSet(ctx context.Context, k int) ([]Prediction, error) {
	sets := forEachNetwork(f, func(d Data) train.Dataset { return d.Sets[k].Dataset })
	seeds := f.seeds()
	var drawn []*Prediction
	for i, m := range f.models {
		first, end := i*f.together(), (i+1)*f.together()
		if !f.first().Recipe.SharedNoise {
			if err := startNoise(m, seeds[first:end], f.data[0].Sets[k].Name); err != nil {
				return nil, err
			}
		}
		found, err := f.draw(ctx, m, sets[first:end])
		if err != nil {
			return nil, err
		}
		drawn = append(drawn, found...)
	}
	all := make([]Prediction, len(f.list))
	for i := range all {
		p, err := mixture(drawn[i*f.members() : (i+1)*f.members()])
		if err != nil {
			return nil, err
		}
		p.Set = f.data[i].Sets[k].Name
		all[i] = *p
	}
	return all, nil
}

// startNoise lets the noise of a model begin anew, with draws that depend on its seeds and a name alone.
func startNoise(m *nets.Model, seeds []uint64, name string) error {
	own := make([]uint64, len(seeds))
	for i, seed := range seeds {
		sum := sha256.Sum256(fmt.Appendf(nil, "noise of %q by %d", name, seed))
		own[i] = binary.LittleEndian.Uint64(sum[:])
	}
	if m.Host == nil {
		return m.Store.SetRNGStateFromSeed(int64(own[0]))
	}
	state, err := stochastic.NewReplicatedHostSampler(own).State()
	if err != nil {
		return err
	}
	return m.Host.SetState(state)
}

// ImageBatch is how many images a model predicts at once: 128 on the pure Go backend, and 500 on any other.
func ImageBatch(m *nets.Model) int {
	if m.Host != nil {
		return 128
	}
	return 500
}

// draw predicts sets by a model: of replicas each its own, and else one.
func (f *fit) draw(ctx context.Context, m *nets.Model, sets []train.Dataset) ([]*Prediction, error) {
	e := f.first()
	options := predict.Options{Samples: e.Recipe.Samples, BatchSize: e.Recipe.PredictBatch, Energies: f.traits.Energies, KeepOutputs: f.keepOutputs}
	if f.images && options.BatchSize == 0 {
		options.BatchSize = min(ImageBatch(m), sets[0].Len())
	}
	if options.Coherent = e.Recipe.Coherent; options.Coherent {
		options.Seed = new(uint64) // the networks' own seeds tell their draws apart
	}
	var drawn []*predict.Prediction
	var err error
	switch {
	case closedForm(e):
		drawn, err = marginals(ctx, m, floatsOf(sets))
	case f.replicas:
		drawn, err = predict.SampleReplicas(ctx, m, floatsOf(sets), options)
	default:
		drawn = make([]*predict.Prediction, 1)
		drawn[0], err = predict.Sample(ctx, m, sets[0].Inputs, options)
	}
	if err != nil {
		return nil, err
	}
	all := make([]*Prediction, len(drawn))
	for i, p := range drawn {
		all[i] = &Prediction{Targets: sets[i].Targets, Labels: sets[i].Labels, Prediction: *p, likelihood: m.Likelihood}
	}
	return all, f.addDensities(m, sets, all)
}

// marginals are the predictions of a Gaussian process in closed form.
func marginals(ctx context.Context, m *nets.Model, x []nets.Floats) ([]*predict.Prediction, error) {
	found, err := predict.Marginals(ctx, m, x...)
	if err != nil {
		return nil, err
	}
	var all []*predict.Prediction
	for _, mixture := range found {
		all = append(all, &predict.Prediction{Mixture: mixture, Width: 1, LastConvolution: -1})
	}
	return all, nil
}

// mixture is the prediction of an ensemble: the mixture of its members' predictions. Energies, and outputs that are kept
// with probabilities, are taken from the first member. The mutual information of label and network is
//
//	I = H(mean_m p_m) - mean_m H(p_m) + mean_m I_m,
//
// with the mutual information I_m of label and draw of each member.
func mixture(members []*Prediction) (*Prediction, error) {
	all := *members[0]
	if len(members) == 1 {
		return &all, nil
	}
	var mixtures []predict.Mixture
	var probabilities, densities [][]float64
	var outputs, parameters [][]float64
	for _, p := range members {
		mixtures, probabilities = append(mixtures, p.Mixture), append(probabilities, p.Probabilities)
		densities, outputs = append(densities, p.LogLikelihood), append(outputs, p.Outputs...)
		parameters = append(parameters, p.Parameters...)
	}
	var err error
	switch {
	case all.Mean != nil:
		all.Mixture, err = predict.Mix(mixtures...)
	case all.Probabilities != nil:
		if all.Probabilities, all.MutualInformation, err = predict.MixClasses(probabilities, all.Width); err != nil {
			return nil, err
		}
		for _, p := range members {
			if p.MutualInformation != nil {
				floats.AddScaled(all.MutualInformation, 1/float64(len(members)), p.MutualInformation)
			}
		}
	default:
		all.Outputs, all.Parameters = outputs, parameters
	}
	if all.LogLikelihood != nil {
		all.LogLikelihood = meanDensity(densities)
	}
	return &all, err
}

// meanDensity is the logarithm of the mean of densities, whose logarithms are given, [M][N], at each of N examples.
func meanDensity(logs [][]float64) []float64 {
	found, draws := make([]float64, len(logs[0])), make([]float64, len(logs))
	for i := range found {
		for m := range logs {
			draws[m] = logs[m][i]
		}
		found[i] = floats.LogSumExp(draws) - math.Log(float64(len(draws)))
	}
	return found
}

// addDensities adds log p(y | x) to predictions that have outputs alone, by the likelihood itself. Predictions of a
// distribution or of classes say it themselves.
func (f *fit) addDensities(m *nets.Model, sets []train.Dataset, all []*Prediction) error {
	_, quantiles := m.Likelihood.(likelihood.Quantiles) // which have no density
	if sets[0].Targets == nil && sets[0].Labels == nil || all[0].Outputs == nil || all[0].Probabilities != nil || quantiles {
		return nil
	}
	exec, err := model.NewExec(m.Backend, m.Store, func(root *model.Scope, outputs, answers *graph.Node) *graph.Node {
		defer nets.PanicWithError("NLL of the likelihood of type %T", m.Likelihood)
		params.SetReplicas(outputs.Graph(), m.Lead())
		return m.Likelihood.NLL(m.Scope(root), outputs, answers)
	})
	if err != nil {
		return err
	}
	defer exec.Finalize()
	rows, width := 0, all[0].Width
	for _, set := range sets {
		rows = max(rows, set.Len())
	}
	answers := answersOf(m, sets, rows)
	logs := make([][][]float64, len(all)) // of each replica, [draws][N]
	for draw := range all[0].Outputs {
		values := make([]float64, len(all)*rows*width)
		for r, p := range all {
			copy(values[r*rows*width:], p.Outputs[draw])
		}
		nll, err := exec.Call1(floatTensor(m, values, rows, width), answers)
		if err != nil {
			return fmt.Errorf("log p(y | x) by the likelihood of type %T: %w", m.Likelihood, nets.Cause(err))
		}
		each, err := params.ToFloat64(nll)
		if err != nil {
			return err
		}
		for r, set := range sets {
			density := slices.Clone(each[r*rows : r*rows+set.Len()])
			floats.Scale(-1, density)
			logs[r] = append(logs[r], density)
		}
	}
	for r, p := range all {
		p.LogLikelihood = meanDensity(logs[r])
	}
	return nil
}

// answersOf are the labels or targets of sets as a tensor, [replicas..., rows, T], with zeros for a replica with fewer.
func answersOf(m *nets.Model, sets []train.Dataset, rows int) *tensors.Tensor {
	if sets[0].Labels != nil {
		labels := make([]int32, len(sets)*rows)
		for r, set := range sets {
			for i, label := range set.Labels {
				labels[r*rows+i] = int32(label)
			}
		}
		return tensors.FromFlatDataAndDimensions(labels, append(m.Lead(), rows, 1)...)
	}
	columns := len(sets[0].Targets) / sets[0].Len()
	values := make([]float64, len(sets)*rows*columns)
	for r, set := range sets {
		copy(values[r*rows*columns:], set.Targets)
	}
	return floatTensor(m, values, rows, columns)
}

// floatTensor is a tensor of the model's type, [replicas..., rows, columns].
func floatTensor(m *nets.Model, values []float64, rows, columns int) *tensors.Tensor {
	return params.FromFloat64(shapes.Make(m.DType, append(m.Lead(), rows, columns)...), values)
}
