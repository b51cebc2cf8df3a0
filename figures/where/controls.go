package where

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/params"
	"densityuncertainty/figures/experiment"
)

// An evenEnergy is the energy of a density layer with evenly spread noise. In training it is the mean of the energies of
// energy.LDL over the batch, as with dul.Density.MeanEnergy. In prediction it is Times their mean over the training
// examples, or if Predicted is true, over the inputs that are predicted: as much noise as density layers have there.
type evenEnergy struct {
	Times     float64
	Predicted bool
}

// Dense implements dul.EnergyModel.
func (e evenEnergy) Dense(s *model.Scope, h *graph.Node) energy.Terms {
	terms := energy.LDL{}.Dense(s, h)
	of := terms.Energy
	running := params.Statistic(s, of, "mean_energy", params.Constant(float64(h.Shape().Dim(-1))/2), 1, 1)
	mean, inBatch := graph.MulScalar(running.NodeValue(h.Graph()), e.Times), graph.ReduceAndKeep(of, graph.ReduceMean, -2)
	training := s.Store().IsTraining(h.Graph())
	if training {
		params.Follow(running, inBatch)
	}
	if training || e.Predicted {
		mean = inBatch
	}
	terms.Energy = graph.BroadcastToDims(mean, of.Shape().Dimensions...)
	terms.Root = func() *graph.Node { return graph.Sqrt(terms.Energy) }
	return terms
}

// Conv implements dul.EnergyModel. No question has images with this control: it panics.
func (evenEnergy) Conv(*model.Scope, *graph.Node, conv.Window) energy.ConvTerms {
	panic("where: evenEnergy is for dense layers")
}

// times is the mean-energy control with so many times the noise's energy in prediction.
func times(k float64) experiment.Method {
	return experiment.Method{Key: fmt.Sprintf("density-mean-x%g", k), Name: fmt.Sprintf("Density, mean energy x %g", k), Layers: dul.Density{Energy: evenEnergy{Times: k}}}
}
