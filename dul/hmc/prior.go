package hmc

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/stochastic"
)

// Prior is a family of layers whose deterministic weights and biases (role params.Weight) have the prior
//
//	w ~ N(0, 1/in),   b ~ N(0, 1)
//
// for a layer with `in` inputs. It adds -log p(w, b), up to a constant, to the graph's stochastic.LayerLosses as KL. A
// network of baselines.Deterministic then has the posterior of hmc.Posterior, and training finds its mode. Variational
// parameters keep their own prior.
type Prior struct{ Layers nets.Layers }

// Dense implements nets.Layers.
func (l Prior) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	if l.Layers == nil {
		panic(fmt.Errorf("hmc.Prior has no Layers; give some, such as baselines.Deterministic{}"))
	}
	y := l.Layers.Dense(s, x, units)
	for _, of := range []struct {
		name      string
		precision float64
	}{{"weights", float64(x.Shape().Dim(-1))}, {"bias", 1}} {
		v := s.Store().GetVariable(model.JoinPath(s.Scope(), of.name))
		if v == nil || params.RoleOf(v, s.Store()) != params.Weight {
			continue
		}
		w := v.NodeValue(x)
		stochastic.LayerLossesOf(x.Graph()).AddKL(graph.MulScalar(ops.SumColumns(ops.SumRows(graph.Mul(w, w))), of.precision/2))
	}
	return y
}
