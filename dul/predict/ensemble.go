package predict

import (
	"context"
	"errors"
	"slices"

	"densityuncertainty/dul/nets"
)

// Ensemble predicts the targets of inputs x, row-major with d features, by all
// members of an ensemble, the replicas of a model, with so many samples of each:
// means and variances of Gaussians, [members*samples][N], whose mixture with
// equal weights is the predictive distribution. Deterministic members need one sample.
func Ensemble(ctx context.Context, r *nets.Regression, x []float64, d, samples int) (mean, variance [][]float64, err error) {
	if r.Replicas == 0 {
		return nil, nil, errors.New("the model has no replicas, which are an ensemble's members; train it by FitEnsemble")
	}
	members, err := Replicas(ctx, r, slices.Repeat([][]float64{x}, r.Replicas), d, samples)
	if err != nil {
		return nil, nil, err
	}
	for _, draws := range members {
		for _, m := range draws.Mean {
			mean = append(mean, m)
			variance = append(variance, slices.Repeat([]float64{draws.NoiseStd * draws.NoiseStd}, len(m)))
		}
	}
	return mean, variance, nil
}
