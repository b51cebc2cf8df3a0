package predict

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
)

// Marginals returns the posterior of the network's function at each input in closed form, for networks whose function is
// Gaussian. It is an error unless the model has likelihood.Gaussian and a network with the method Moments, such as a
// nets.ResidualMLP whose head is a Gaussian process. x has the inputs of each replica, and the result a prediction for
// each, whose Mixture has one component. NaN and infinite values are an error for a model without replicas; with
// replicas they are returned.
func Marginals(ctx context.Context, m *nets.Model, x ...nets.Inputs) ([]*Prediction, error) {
	if m == nil {
		return nil, errNoModel
	}
	network, is := m.Network.(gaussianNetwork)
	if !is {
		return nil, fmt.Errorf("a network of type %T has no moments; draw from it by predict.Sample", m.Network)
	}
	if _, is := m.Likelihood.(likelihood.Gaussian); !is {
		return nil, fmt.Errorf("marginals with a likelihood of type %T; likelihood.Gaussian is needed", m.Likelihood)
	}
	both := *m
	both.Network, both.Likelihood = moments{network}, withVariance{}
	o := Options{Samples: 1}
	for _, inputs := range x {
		if inputs != nil { // which is an error
			o.BatchSize = max(o.BatchSize, inputs.Len()) // all at once
		}
	}
	p, err := NewPredictor(&both, o)
	if err != nil {
		return nil, err
	}
	found, err := p.predict(ctx, x...)
	if err := errors.Join(err, p.Close()); err != nil {
		return nil, err
	}
	all := make([]*Prediction, len(found))
	for r, p := range found {
		mean, std := make([]float64, x[r].Len()), make([]float64, x[r].Len())
		for i := range mean {
			mean[i], std[i] = p.Mean[0][2*i], math.Sqrt(p.Mean[0][2*i+1])
		}
		all[r] = &Prediction{Likelihood: m.Likelihood, Mixture: Mixture{Mean: [][]float64{mean}, Std: [][]float64{std}, NoiseStd: p.NoiseStd}, Width: 1, LastConvolution: -1}
	}
	if m.Replicas == 0 {
		err = all[0].checkFinite(0)
	}
	return all, err
}

// A gaussianNetwork knows the moments of its outputs, see nets.ResidualMLP.
type gaussianNetwork interface {
	Moments(s *model.Scope, x *graph.Node, outputs int) (mean, variance *graph.Node)
}

// moments is the network of the moments, side by side.
type moments struct{ gaussianNetwork }

// Apply implements nets.Network.
func (m moments) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	mean, variance := m.Moments(s, x, outputs/2)
	return graph.Concatenate([]*graph.Node{mean, variance}, -1)
}

// withVariance is likelihood.Gaussian of a mean with its variance beside it.
type withVariance struct{ likelihood.Gaussian }

// Outputs is 2.
func (withVariance) Outputs() int { return 2 }
