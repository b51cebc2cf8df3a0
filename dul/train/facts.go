package train

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
)

// apply applies the model in a graph that trains, and tells its layers about the training.
func (r *run) apply(s *model.Scope, x *graph.Node) *graph.Node {
	facts := params.FactsOf(x.Graph())
	facts.Features, facts.Examples = r.features, r.data[0].Len()
	if slices.ContainsFunc(r.data, func(d Dataset) bool { return d.Len() != facts.Examples }) {
		facts.Examples = 0
	}
	r.facts = facts
	y := r.model.Apply(s, x)
	if facts.OnlyFinished && r.KeepBest.Score != nil {
		panic(fmt.Errorf("KeepBest scores the model during training, and the network of type %T predicts only after it, as baselines.SNGP does; leave KeepBest out", r.model.Network))
	}
	return y
}

// finish does what layers ask for after training.
func (r *run) finish() error {
	if r.facts == nil { // a run that resumes may have no step left
		if err := r.build(); err != nil {
			return err
		}
	}
	switch {
	case r.facts.Finish == nil:
		return nil
	case r.facts.Classes:
		return r.facts.Finish()
	}
	noise, err := r.model.NoiseVariances()
	if err != nil {
		return err
	}
	return r.facts.Finish(noise...)
}

// build builds the model in a graph that trains.
func (r *run) build() error {
	m := r.model
	return nets.Build(m.Backend, m.Store, func(root *model.Scope, in []*graph.Node) {
		x := in[0]
		root.Store().SetTraining(x.Graph(), true)
		if pixels, is := r.data[0].Inputs.(nets.Pixels); is {
			x = pixels.Standardization.Images(x, m.DType)
		}
		r.apply(m.Scope(root), x)
	}, m.BatchShape(r.data[0].Inputs, r.rows()))
}

// Of images, the first startImages give features, in batches of startBatch.
const startImages, startBatch = 1000, 100

// untrainedFeatures computes params.Facts.Features. If the network takes replicas, it does so as in evaluation, so that a replica
// starts like a single model. Otherwise it does so as in a training step, since batch normalisation has no running statistics yet.
// It does the same for classifiers, as in the stored results.
func (r *run) untrainedFeatures(ctx context.Context) (features [][]float64, err error) {
	network, like := nets.Headless{Network: r.model.Network}, r.model
	m, err := nets.New(like.Backend, network, nil, like.Seeds()[0])
	if like.Replicas > 0 {
		m, err = nets.NewReplicas(like.Backend, network, nil, like.Seeds()...)
	}
	if err != nil {
		return nil, err
	}
	m.DType = like.DType
	_, classes := like.Likelihood.(likelihood.Classification)
	options := predict.Options{Samples: 1, BatchSize: math.MaxInt, Training: classes || !nets.TakesReplicas(network)}
	var x []nets.Inputs
	for _, set := range r.data {
		x = append(x, set.Inputs)
	}
	if _, images := x[0].(nets.Pixels); images {
		options.BatchSize, x[0] = startBatch, nets.First(x[0], startImages)
	}
	found, err := predict.SampleReplicas(ctx, m, x, options)
	if err != nil {
		return nil, fmt.Errorf("features of the untrained network: %w", err)
	}
	for _, p := range found {
		features = append(features, p.Outputs[0])
	}
	return features, nil
}
