package live

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"

	"densityuncertainty/dul"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
)

// A layer asks what one density uncertainty layer (dul.Density with energy.LDL) with two inputs does after its Gaussian
// was fitted to a cloud of points (X[i], Y[i]):
//
//	E(h) = 1/2 h^T Sigma^-1 h,   sd(h) = sqrt(gamma E(h) + beta).
type layer struct {
	X     []float64 `json:"x"`
	Y     []float64 `json:"y"`
	Gamma float64   `json:"gamma"` // variance of the noise that the energy scales, not negative
	Beta  float64   `json:"beta"`  // variance of the noise that it does not, not negative
	// Side is how many inputs the map has along each axis, at least 2. They go from -Extent to Extent.
	Side   int     `json:"side"`
	Extent float64 `json:"extent"`
}

// A layerMap is a fitted layer.
type layerMap struct {
	// Precision is Sigma^-1 = L D L^T, as its entries (1, 1), (1, 2) and (2, 2).
	Precision [3]float64 `json:"precision"`
	// Std is the standard deviation of a unit's output, [Side*Side], row by row from the lowest second input on.
	Std []float64 `json:"std"`
}

// The fit: generative training alone, full-batch.
const fitSteps, fitRate = 300, 0.1

// Fit fits the layer's Gaussian to the points by maximum likelihood, with the steps that Trainer takes in any network,
// and asks the layer for the energies of the map.
func (l layer) Fit(ctx context.Context) (*layerMap, error) {
	if len(l.X) != len(l.Y) || len(l.X) < 1 {
		return nil, fmt.Errorf("live: %d first and %d second inputs; want as many of one as of the other, and at least 1", len(l.X), len(l.Y))
	}
	backend, err := gobackend.New("ops_sequential")
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	defer backend.Finalize()
	m, err := l.fit(ctx, backend)
	if err != nil {
		return nil, err
	}
	return l.maps(ctx, m)
}

// fit is the layer with a single unit, its Gaussian fitted to the points.
func (l layer) fit(ctx context.Context, backend compute.Backend) (*nets.Model, error) {
	m, err := nets.New(backend, nets.MLP{Layers: dul.Density{}}, likelihood.Gaussian{}, 0)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	trainer := train.Trainer{Settings: train.Settings{
		Epochs: fitSteps, BatchSize: len(l.X), Schedule: train.Cosine{Start: fitRate}, LogLikelihoodScale: 1,
		Groups: []train.Group{{Roles: []params.Role{params.Generative}, Optimizer: train.Adam{}}},
	}}
	cloud := train.Dataset{Inputs: pairs(l.X, l.Y), Targets: make([]float64, len(l.X))}
	if err := trainer.Fit(ctx, m, cloud); err != nil {
		return nil, fmt.Errorf("live: fitting the Gaussian: %w", err)
	}
	return m, nil
}

// maps reads the precision of a fitted layer and makes the map from its energies.
func (l layer) maps(ctx context.Context, m *nets.Model) (*layerMap, error) {
	const scope = "/model/network/output/energy/"
	lower, _, err := params.Values(m.Store, scope+"lower")
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	logVariance, _, err := params.Values(m.Store, scope+"log_variance")
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	// L = [1 0; c 1] and D = diag(d1, d2).
	c, d1, d2 := lower[2], math.Exp(-logVariance[0]), math.Exp(-logVariance[1])
	found := &layerMap{Precision: [3]float64{d1, c * d1, c*c*d1 + d2}}
	drawn, err := predict.Sample(ctx, m, l.inputs(), predict.Options{Samples: 1, Energies: true})
	if err != nil {
		return nil, fmt.Errorf("live: the energies of the map: %w", err)
	}
	for _, e := range drawn.Energies[0].Mean {
		found.Std = append(found.Std, math.Sqrt(l.Gamma*e+l.Beta))
	}
	return found, nil
}

// inputs are those of the map.
func (l layer) inputs() nets.Floats {
	var x, y []float64
	for row := range l.Side {
		for column := range l.Side {
			x, y = append(x, l.at(column)), append(y, l.at(row))
		}
	}
	return pairs(x, y)
}

// at is the input number i of the map along an axis.
func (l layer) at(i int) float64 { return l.Extent * (2*float64(i)/float64(l.Side-1) - 1) }

// pairs are inputs of two features.
func pairs(x, y []float64) nets.Floats {
	var both []float64
	for i := range x {
		both = append(both, x[i], y[i])
	}
	return nets.Rows(both, 2)
}
