package conv

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

const normEpsilon = 1e-5

// BatchNorm normalises every channel of an image batch,
//
//	y = scale (x - mean) / sqrt(variance + 1e-5) + shift
//
// where scale and shift are trained (role Weight, initially 1 and 0). In training, mean and variance are the batch's,
// and the running statistics follow them (params.Follow), with the unbiased variance, which counts as 0 for a single
// value. Evaluation uses the running statistics.
func BatchNorm(s *model.Scope, x *graph.Node) *graph.Node {
	g, m := x.Graph(), Channels(x)
	n, count := m.Shape().Dim(0), float64(m.Shape().Dim(1))
	scale := params.New(s, m, "scale", params.Weight, params.Constant(1), n, 1)
	shift := params.New(s, m, "shift", params.Weight, params.Constant(0), n, 1)
	runningMean := params.Statistic(s, m, "running_mean", params.Constant(0), n, 1)
	runningVariance := params.Statistic(s, m, "running_variance", params.Constant(1), n, 1)
	if !s.Store().IsTraining(g) {
		factor := graph.Mul(scale, inverseStd(runningVariance.NodeValue(g)))
		offset := graph.Sub(shift, graph.Mul(runningMean.NodeValue(g), factor))
		return LikeImage(AddColumn(MulColumn(m, factor), offset), x)
	}

	mean := rowMeans(m)
	centred := AddColumn(m, graph.Neg(mean))
	variance := rowMeans(times(centred, centred))
	params.Follow(runningMean, mean)
	params.Follow(runningVariance, graph.MulScalar(variance, count/max(count-1, 1)))
	return LikeImage(normalise(m, scale, shift, centred, inverseStd(variance)), x)
}

// normalise is scale centred / std + shift, of the batch m that mean and deviation are
// taken of. Its gradient (Ioffe & Szegedy 2015), with z = centred / std and means over rows,
//
//	dL/dm = scale / std (dL/dy - mean(dL/dy) - z mean(z dL/dy)),
//
// saves XLA a seventh of the CPU time of a training step of the plain ResNet-14.
func normalise(m, scale, shift, centred, inverseStd *graph.Node) *graph.Node {
	factor := graph.Mul(scale, inverseStd)
	y := graph.StopGradient(AddColumn(MulColumn(centred, factor), shift))
	return ops.WithGradient([]*graph.Node{m, scale, shift},
		func(in []*graph.Node) *graph.Node { return ops.Tied(y, in) },
		func(_, dy *graph.Node) []*graph.Node {
			meanDy, meanZDy := rowMeans(dy), graph.Mul(inverseStd, rowMeans(times(dy, centred)))
			along := AddColumn(MulColumn(centred, graph.Mul(inverseStd, meanZDy)), meanDy)
			dm := MulColumn(Entrywise(func(in []*graph.Node) *graph.Node { return graph.Sub(in[0], in[1]) }, dy, along), factor)
			count := float64(m.Shape().Dim(1))
			return []*graph.Node{dm, graph.MulScalar(meanZDy, count), graph.MulScalar(meanDy, count)}
		})
}

// times is the product entry by entry.
func times(a, b *graph.Node) *graph.Node {
	return Entrywise(func(in []*graph.Node) *graph.Node { return graph.Mul(in[0], in[1]) }, a, b)
}

func inverseStd(variance *graph.Node) *graph.Node {
	return graph.Reciprocal(graph.Sqrt(graph.AddScalar(variance, normEpsilon)))
}
