package nets

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/ops"
)

// ResidualSum is the residual network of the paper's section 2.4, of which its
// Proposition 1 speaks: every layer adds to the sum of those before it,
//
//	a_1 = dense(x),   a_{l+1} = a_l + dense(h_l),   h_l = relu(norm(a_l)),   l = 1, ..., Depth,
//
// and the outputs are the first units of a_{Depth+1}, so that what holds of a sum
// holds of a prediction. (The paper calls two layers f_1; here the first is the input
// layer, and f_l has the scope "block_" and l-1.)
type ResidualSum struct {
	Layers Layers
	Width  int
	Depth  int
	// BatchNorm has conv.BatchNorm for norm; else norm(a) = a. It is for models
	// without replicas.
	BatchNorm bool
}

// Apply maps [..., batch, features] to the first outputs units of the last sum. It
// panics on a width below outputs or a depth below 1, as GoMLX's graph-building
// functions do.
func (m ResidualSum) Apply(s *model.Scope, x *graph.Node, outputs int) *graph.Node {
	if outputs > m.Width {
		panic(fmt.Errorf("nets.ResidualSum: %d outputs of a sum of width %d; want at most as many", outputs, m.Width))
	}
	sums := m.sums(s, x)
	return graph.SliceAxis(sums[len(sums)-1], -1, graph.AxisRange(0, outputs))
}

// Sums is the same network with all its sums as outputs, side by side: a_1, ...,
// a_{Depth+1}, [..., batch, (Depth+1) Width]. See Model.With.
func (m ResidualSum) Sums() Network { return allSums{m} }

type allSums struct{ ResidualSum }

// Apply implements Network.
func (m allSums) Apply(s *model.Scope, x *graph.Node, _ int) *graph.Node {
	return graph.Concatenate(m.sums(s, x), -1)
}

func (m ResidualSum) sums(s *model.Scope, x *graph.Node) []*graph.Node {
	if m.Width < 1 || m.Depth < 1 {
		panic(fmt.Errorf("nets.ResidualSum: width %d and depth %d; both must be at least 1", m.Width, m.Depth))
	}
	sums := []*graph.Node{m.Layers.Dense(s.In("input"), x, m.Width)}
	for l := range m.Depth {
		a := sums[l]
		block := s.In("block_%d", l)
		sums = append(sums, graph.Add(a, m.Layers.Dense(block, ops.ReLU(m.norm(block, a)), m.Width)))
	}
	return sums
}

// norm takes the units of vectors [batch, units] for the channels of images of one pixel.
func (m ResidualSum) norm(s *model.Scope, a *graph.Node) *graph.Node {
	if !m.BatchNorm {
		return a
	}
	if a.Rank() != 2 {
		panic(fmt.Errorf("nets.ResidualSum: batch normalisation of sums of shape %s; want [batch, units], which models without replicas have", a.Shape()))
	}
	batch, units := a.Shape().Dim(0), a.Shape().Dim(1)
	image := graph.Reshape(graph.Transpose(a, 0, 1), units, batch, 1, 1)
	return graph.Transpose(graph.Reshape(conv.BatchNorm(s.In("norm"), image), units, batch), 0, 1)
}
