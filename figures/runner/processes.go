package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/baselines"
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

// fit trains the tasks as replicas of one graph and predicts.
func (r *Runner) fit(ctx context.Context, run train.Regression, tasks []task) ([]prediction, error) {
	members := membersOf(tasks[0].experiment)
	var sets []train.Set
	var inputs [][]float64
	for _, t := range tasks {
		for m := range members {
			sets, inputs = append(sets, t.train), append(inputs, t.inputs)
			run.Seeds = append(run.Seeds, memberSeed(t.experiment, m))
		}
	}
	switch tasks[0].experiment.Method {
	case experiment.SNGP:
		return r.fitSNGP(ctx, run, sets, inputs)
	case experiment.DUE:
		points := inducingPoints
		if tasks[0].experiment.Study == experiment.Toy {
			points = toyInducingPoints
		}
		return r.fitDUE(ctx, run, sets, inputs, points)
	}
	fitted, err := run.FitReplicas(ctx, r.backend, sets)
	if err != nil {
		return nil, err
	}
	draws, err := predict.Replicas(ctx, fitted, inputs, sets[0].D, drawsOf(tasks[0].experiment))
	if err != nil {
		return nil, fmt.Errorf("predicting: %w", err)
	}
	var all []prediction
	for of := range slices.Chunk(draws, members) {
		all = append(all, ofDraws(of...))
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
func (r *Runner) fitSNGP(ctx context.Context, run train.Regression, sets []train.Set, inputs [][]float64) ([]prediction, error) {
	head := baselines.RegressionSNGP(sets[0].N(), randomFeatures)
	head.LengthScale = math.Sqrt(float64(sets[0].D))
	run.Network = withHead(run.Network, head)
	fitted, err := run.FitReplicas(ctx, r.backend, sets)
	if err != nil {
		return nil, err
	}
	variances, err := fitted.NoiseVariances()
	if err != nil {
		return nil, err
	}
	checked := head.Posterior(fitted.Store, processHead, variances...)
	return marginals(ctx, fitted, inputs, sets[0].D, checked)
}

// fitDUE trains with a sparse Gaussian process, which starts from the features of
// the untrained network.
func (r *Runner) fitDUE(ctx context.Context, run train.Regression, sets []train.Set, inputs [][]float64, points int) ([]prediction, error) {
	untrained, err := nets.NewRegression(r.backend, withHead(run.Network, baselines.Headless{}), run.Seeds, true, dtypes.Float32)
	if err != nil {
		return nil, err
	}
	x := make([][]float64, len(sets))
	for i, set := range sets {
		x[i] = set.X
	}
	features, width, err := predict.Features(ctx, untrained, untrained.Network, x, sets[0].D)
	if err != nil {
		return nil, fmt.Errorf("features of the untrained network: %w", err)
	}
	head := baselines.DUE{Likelihood: baselines.Gaussian}
	for i, f := range features {
		start, err := baselines.StartFrom(f, width, min(points, sets[i].N()), run.Seeds[i])
		if err != nil {
			return nil, err
		}
		head.Start = append(head.Start, start)
	}
	run.Network = withHead(run.Network, head)
	fitted, err := run.FitReplicas(ctx, r.backend, sets)
	if err != nil {
		return nil, err
	}
	return marginals(ctx, fitted, inputs, sets[0].D, checkDUE(head, fitted.Store, processHead))
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
func marginals(ctx context.Context, fitted *nets.Regression, inputs [][]float64, d int, checked error) ([]prediction, error) {
	var failed baselines.FailedReplicas
	if checked != nil && !errors.As(checked, &failed) {
		return nil, checked
	}
	each, err := predict.Gaussian(ctx, fitted, inputs, d)
	if err != nil {
		return nil, fmt.Errorf("predicting: %w", err)
	}
	all := make([]prediction, len(each))
	for i, m := range each {
		all[i] = ofMarginals(m)
		all[i].failed = failed[i]
	}
	return all, nil
}
