package train

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"densityuncertainty/dul/ops"
)

// ExpectedCrossEntropy is the mean of CrossEntropy over several draws of the
// logits, [samples, batch, classes], which baselines.DUE returns in training:
//
//	1/S sum_s -log softmax(logits_s)[label],   [batch, 1].
//
// mean is that of the logits, [batch, classes]. Logits of [batch, classes] are a
// single draw.
func ExpectedCrossEntropy(logits, labels *graph.Node) (nll, mean *graph.Node) {
	switch logits.Rank() {
	case 2:
		return CrossEntropy(logits, labels), logits
	case 3:
	default:
		panic(fmt.Errorf("train.ExpectedCrossEntropy: logits of shape %s; want [batch, classes] or [samples, batch, classes]", logits.Shape()))
	}
	samples, batch, classes := logits.Shape().Dim(0), logits.Shape().Dim(1), logits.Shape().Dim(2)
	repeated := graph.Reshape(graph.BroadcastToDims(graph.ExpandAxes(labels, 0), samples, batch), samples*batch)
	each := CrossEntropy(graph.Reshape(logits, samples*batch, classes), repeated)
	average := func(x *graph.Node, columns int) *graph.Node {
		sum := ops.SumRows(graph.Reshape(x, samples, batch*columns))
		return graph.MulScalar(graph.Reshape(sum, batch, columns), 1/float64(samples))
	}
	return average(each, 1), average(logits, classes)
}
