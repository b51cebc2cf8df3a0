package cifar_test

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/conv"
	"densityuncertainty/dul/stochastic"
	"densityuncertainty/figures/cifar"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
)

// constantNoise is a family of layers of one's own: plain ones with Gaussian noise of one standard deviation on
// everything that they compute.
type constantNoise struct{ std float64 }

func (l constantNoise) Dense(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return l.noisy(s, baselines.Deterministic{}.Dense(s, x, units))
}

func (l constantNoise) Conv(s *model.Scope, x *graph.Node, c conv.Spec) *graph.Node {
	y := baselines.Deterministic{}.Conv(s, x, c)
	return conv.LikeImage(l.noisy(s, conv.Channels(y)), y)
}

func (l constantNoise) noisy(s *model.Scope, y *graph.Node) *graph.Node {
	noise := stochastic.Draw(s, y, stochastic.Gaussian(), y.Shape().Dim(-2), y.Shape().Dim(-1))
	return graph.Add(y, graph.MulScalar(noise, l.std))
}

// A family of one's own beside the paper's method, on a part of CIFAR-10.
func ExampleRun() {
	p := cifar.Paper(cifar.CIFAR10, cifar.ResNet14).Quick()
	mine := methods.New("constant-noise", constantNoise{std: 0.1})
	found, err := cifar.Run(context.Background(), p, mine, methods.Density)
	if err != nil {
		fmt.Println(err)
		return
	}
	report.ShowTable(cifar.Table(found))
}
