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
	if samples < 1 {
		return nil, fmt.Errorf("%d samples were asked for; at least 1 is needed", samples)
	}
	inputs, _, err := inputTensor(r, [][]float64{x}, d)
	if err != nil {
		return nil, err
	}
	var sheet *stochastic.Sheet
	if r.Host != nil {
		sheet = r.Host.NewSheet()
	}
	exec, err := model.NewExec(r.Backend, r.Store, func(root *model.Scope, x *graph.Node) []*graph.Node {
		if sheet != nil {
			stochastic.SetNoise(x.Graph(), sheet)
		}
		mean := r.Mean(r.Scope(root), x)
		energies := stochastic.TallyOf(x.Graph()).Energies
		if len(energies) == 0 {
			panic(errors.New("no layer of the network has an energy model"))
		}
		// The Go backend fails on graphs whose last node is not an output.
		return append(energies[:len(energies):len(energies)], mean)
	})
	if err != nil {
		return nil, fmt.Errorf("building the energies: %w", err)
	}
	defer exec.Finalize()

	var sums [][]float64
	for m := range samples {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("stopped after %d of %d samples: %w", m, samples, err)
		}
		if m > 0 && sheet != nil {
			if err := sheet.Refresh(); err != nil {
				return nil, err
			}
		}
		out, err := exec.Exec(inputs)
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", m, err)
		}
		layers := out[:len(out)-1]
		if sums == nil {
			sums = make([][]float64, len(layers))
		}
		for l, energy := range layers {
			values, err := float64s(energy)
			if err != nil {
				return nil, err
			}
			if sums[l] == nil {
				sums[l] = make([]float64, len(values))
			}
			for i, v := range values {
				sums[l][i] += v / float64(samples)
			}
		}
	}
	return sums, nil
}
