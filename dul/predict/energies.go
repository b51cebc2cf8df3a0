package predict

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/stochastic"
)

// Energies returns the energy E_l(h_l) that each layer l with an energy model
// sees at each of N inputs, [layers][N], in the order in which the layers are
// applied: x is row-major with d features, for a model without replicas. The
// input of a layer depends on the noise of the layers before it, so the energies
// are means over the given number of samples.
func Energies(ctx context.Context, r *nets.Regression, x []float64, d, samples int) ([][]float64, error) {
	if r.Replicas != 0 {
		return nil, fmt.Errorf("the model has %d replicas; energies are for models without", r.Replicas)
	}
	build := func(s *model.Scope, x *graph.Node) []*graph.Node {
		mean := r.Mean(s, x)
		energies := stochastic.LayerLossesOf(x.Graph()).Energies
		if len(energies) == 0 {
			panic(errors.New("no layer of the network has an energy model"))
		}
		// The Go backend fails on graphs whose last node is not an output.
		return append(energies[:len(energies):len(energies)], mean)
	}
	var sums [][]float64
	err := sample(ctx, r, [][]float64{x}, d, samples, build, func(out [][]float64) {
		layers := out[:len(out)-1]
		if sums == nil {
			sums = make([][]float64, len(layers))
			for l, energies := range layers {
				sums[l] = make([]float64, len(energies))
			}
		}
		for l, energies := range layers {
			for i, v := range energies {
				sums[l][i] += v / float64(samples)
			}
		}
	})
	return sums, err
}
