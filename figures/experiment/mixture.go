package experiment

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
)

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
