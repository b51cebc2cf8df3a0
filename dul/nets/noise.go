package nets

import (
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/tensors"
)

// NoiseVariances are the trained variances sigma^2 of the observation noise, one
// for each replica, or a single one.
func (r *Regression) NoiseVariances() ([]float64, error) {
	v := r.Store.GetVariable("/model/observation_log_variance")
	if v == nil {
		return nil, errors.New("the model has no observation noise yet: train it first")
	}
	value, err := v.Value()
	if err != nil {
		return nil, fmt.Errorf("reading the observation noise: %w", err)
	}
	wide, err := tensors.CopyFlatData[float64](value)
	if err != nil {
		narrow, err := tensors.CopyFlatData[float32](value)
		if err != nil {
			return nil, fmt.Errorf("reading the observation noise: %w", err)
		}
		for _, x := range narrow {
			wide = append(wide, float64(x))
		}
	}
	for i, logVariance := range wide {
		wide[i] = math.Exp(logVariance)
	}
	return wide, nil
}
