package predict

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
)

// AddLogLikelihood sets LogLikelihood from the answers, targets [N*columns] or else labels [N], by the model that made the
// prediction: with replicas by that one of them. It does nothing for likelihoods without LogLikelihood.
func (p *Prediction) AddLogLikelihood(m *nets.Model, replica int, targets []float64, labels []int) (err error) {
	_, quantiles := m.Likelihood.(likelihood.Quantiles)
	if targets == nil && labels == nil || p.Outputs == nil || p.Probabilities != nil || quantiles {
		return nil
	}
	if m.Replicas > 0 {
		if m, err = m.Replica(replica); err != nil {
			return err
		}
	}
	exec, err := model.NewExec(m.Backend, m.Store, func(root *model.Scope, outputs, answers *graph.Node) *graph.Node {
		defer nets.PanicWithError("NLL of the likelihood of type %T", m.Likelihood)
		return m.Likelihood.NLL(m.Scope(root), outputs, answers)
	})
	if err != nil {
		return err
	}
	defer exec.Finalize()
	n := len(p.Outputs[0]) / p.Width
	var answers *tensors.Tensor
	if labels != nil {
		numbers := make([]int32, n)
		for i, label := range labels {
			numbers[i] = int32(label)
		}
		answers = tensors.FromFlatDataAndDimensions(numbers, n, 1)
	} else {
		answers = params.FromFloat64(shapes.Make(m.DType, n, len(targets)/n), targets)
	}
	var logs [][]float64 // [M][N]
	for _, outputs := range p.Outputs {
		nll, err := exec.Call1(params.FromFloat64(shapes.Make(m.DType, n, p.Width), outputs), answers)
		if err != nil {
			return fmt.Errorf("log p(y | x) by the likelihood of type %T: %w", m.Likelihood, nets.Cause(err))
		}
		each, err := params.ToFloat64(nll)
		if err != nil {
			return err
		}
		floats.Scale(-1, each)
		logs = append(logs, each)
	}
	p.LogLikelihood = logMeanExp(logs)
	return nil
}

// logMeanExp is the logarithm of the mean of densities, whose logarithms are given, [M][N], at each of N inputs.
func logMeanExp(logs [][]float64) []float64 {
	found, draws := make([]float64, len(logs[0])), make([]float64, len(logs))
	for i := range found {
		for m := range logs {
			draws[m] = logs[m][i]
		}
		found[i] = floats.LogSumExp(draws) - math.Log(float64(len(draws)))
	}
	return found
}
