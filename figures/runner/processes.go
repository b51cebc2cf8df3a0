package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
)

// The settings of the methods that the paper does not run on regression.
const (
	// sngpBound and dueBound are how far the layers below a Gaussian process may
	// stretch distances: the former is that of regression in the DUE authors' code,
	// the latter that of their classifiers, which trained better with a length
	// scale that is trained too.
	sngpBound, dueBound = 0.95, 3
	// randomFeatures and inducingPoints are the sizes of SNGP's and DUE's heads.
	randomFeatures, inducingPoints = 256, 50
	// toyInducingPoints is their number for one or two inputs, as in that code.
	toyInducingPoints = 20
	// processHead is where a Gaussian process keeps its variables.
	processHead = "/model/network/output"
)

// A fitting is a training run of the replicas of one graph, and what they predict at.
type fitting struct {
	train.Trainer
	network nets.Network
	sets    []train.Dataset
	inputs  []nets.Floats
	seeds   []uint64
}

// train fits a model for each seed, and tells which of them diverged.
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

// fit trains the tasks as replicas of one graph and predicts.
func (r *Runner) fit(ctx context.Context, network nets.Network, run train.Trainer, tasks []task) ([]prediction, error) {
	members := membersOf(tasks[0].experiment)
	f := fitting{Trainer: run, network: network}
	for _, t := range tasks {
		for m := range members {
			f.sets, f.inputs = append(f.sets, t.train), append(f.inputs, nets.Rows(t.inputs, features(t.train)))
			f.seeds = append(f.seeds, memberSeed(t.experiment, m))
		}
	}
	switch tasks[0].experiment.Method {
	case experiment.SNGP:
		return r.fitSNGP(ctx, f)
	case experiment.DUE:
		points := inducingPoints
		if tasks[0].experiment.Study == experiment.Toy {
			points = toyInducingPoints
		}
		return r.fitDUE(ctx, f, points)
	}
	fitted, diverged, err := f.train(ctx, r.backend)
	if err != nil {
		return nil, err
	}
	draws, err := predict.SampleReplicas(ctx, fitted, f.inputs, predict.Options{Samples: drawsOf(tasks[0].experiment)})
	if err != nil {
		return nil, fmt.Errorf("predicting: %w", err)
	}
	var all []prediction
	for of := range slices.Chunk(draws, members) {
		var mixtures []predict.Mixture
		for _, p := range of {
			mixtures = append(mixtures, p.Mixture)
		}
		p := ofDraws(mixtures...)
		p.diverged, diverged = slices.Contains(diverged[:members], true), diverged[members:]
		all = append(all, p)
	}
	return all, nil
}

// membersOf is how many networks an experiment trains.
func membersOf(e experiment.Experiment) int {
	if e.Method == experiment.Ensemble {
		return experiment.EnsembleMembers
	}
	return 1
}

// drawsOf is how many samples are drawn of each network.
func drawsOf(e experiment.Experiment) int {
	switch e.Method {
	case experiment.Deterministic, experiment.Ensemble, experiment.SNGP: // have no noise, so that all would be equal
		return 1
	}
	return e.Samples
}

// memberSeed is the seed of an ensemble's member; the first is a single network's.
func memberSeed(e experiment.Experiment, member int) uint64 {
	const apart = 0xd1342543de82ef95 // spreads neighbouring numbers, as that of trainingSeed does
	return trainingSeed(e) + uint64(member)*apart
}

// fitSNGP trains with a Gaussian process of random features. The length scale is
// the root of the number of inputs: distances of standardised inputs grow with
// it, and the layers below stretch them little.
func (r *Runner) fitSNGP(ctx context.Context, f fitting) ([]prediction, error) {
	head := baselines.RegressionSNGP(f.sets[0].Len(), randomFeatures)
	head.LengthScale = math.Sqrt(float64(features(f.sets[0])))
	f.network = withHead(f.network, head)
	fitted, diverged, err := f.train(ctx, r.backend)
	if err != nil {
		return nil, err
	}
	variances, err := fitted.NoiseVariances()
	if err != nil {
		return nil, err
	}
	checked := head.Posterior(fitted.Store, processHead, variances...)
	return marginals(ctx, fitted, f.inputs, diverged, checked)
}

// fitDUE trains with a sparse Gaussian process, which starts from the features of
// the untrained network.
func (r *Runner) fitDUE(ctx context.Context, f fitting, points int) ([]prediction, error) {
	untrained, err := nets.NewReplicas(r.backend, withHead(f.network, baselines.Headless{}), nil, f.seeds...)
	if err != nil {
		return nil, err
	}
	x := make([]nets.Floats, len(f.sets))
	for i, set := range f.sets {
		x[i] = set.Inputs.(nets.Floats)
	}
	found, err := predict.SampleReplicas(ctx, untrained, x, predict.Options{Samples: 1})
	if err != nil {
		return nil, fmt.Errorf("features of the untrained network: %w", err)
	}
	head := baselines.DUE{Likelihood: baselines.Gaussian}
	for i, p := range found {
		start, err := baselines.StartFrom(p.Outputs[0], p.Width, min(points, f.sets[i].Len()), f.seeds[i])
		if err != nil {
			return nil, err
		}
		head.Start = append(head.Start, start)
	}
	f.network = withHead(f.network, head)
	fitted, diverged, err := f.train(ctx, r.backend)
	if err != nil {
		return nil, err
	}
	return marginals(ctx, fitted, f.inputs, diverged, checkDUE(head, fitted.Store, processHead))
}

// checkDUE is a variable so that a test can have a failure.
var checkDUE = baselines.DUE.Check

// withHead is the residual network of Recipe.regression with a head.
func withHead(network nets.Network, head nets.Layers) nets.Network {
	n := network.(nets.ResidualMLP)
	n.Head = head
	return n
}

// marginals are the predictions of replicas that were checked, with that outcome:
// those that failed the check say so, and do not keep the others from theirs.
func marginals(ctx context.Context, fitted *nets.Model, inputs []nets.Floats, diverged []bool, checked error) ([]prediction, error) {
	var failed baselines.FailedReplicas
	if checked != nil && !errors.As(checked, &failed) {
		return nil, checked
	}
	each, err := predict.Marginals(ctx, fitted, inputs...)
	if err != nil {
		return nil, fmt.Errorf("predicting: %w", err)
	}
	all := make([]prediction, len(each))
	for i, m := range each {
		all[i] = ofMarginals(m)
		all[i].failed, all[i].diverged = failed[i], diverged[i]
	}
	return all, nil
}
