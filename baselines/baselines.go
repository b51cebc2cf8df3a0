// Package baselines implements the methods that the paper compares density uncertainty layers with, as families of
// layers. The zero values of Deterministic, MFVI, Rank1, VDropout and MCDropout have the settings of the paper's text.
// SNGP and DUE are Gaussian processes on the features of SpectralNormed layers. Laplace and SWAG are computed in float64
// from trained networks of Deterministic. An ensemble is a mixture of predictions: predict.Ensemble.
//
// Conv maps images [channels, batch, height, width] to [filters, batch, height', width']. Layers panic on invalid
// settings, as GoMLX's graph-building functions do.
package baselines

import (
	"cmp"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/ops"
	"densityuncertainty/dul/params"
)

// setting is the value of a field, or where that is 0 its usual value. It panics on
// any other that is not positive and finite, as GoMLX's graph-building functions do.
func setting(field string, value, usual float64) float64 {
	if !(value >= 0) || math.IsInf(value, 1) {
		panic(fmt.Errorf("%s is %g; it must be positive, or 0, which means %g", field, value, usual))
	}
	return cmp.Or(value, usual)
}

// number is setting for a field that counts.
func number(field string, value, usual int) int {
	if value < 0 {
		panic(fmt.Errorf("%s is %d; it must be at least 1, or 0, which means %d", field, value, usual))
	}
	return cmp.Or(value, usual)
}

// logVariance creates the log-variance of a Gaussian posterior that starts at
// the given standard deviation.
func logVariance(s *model.Scope, like *graph.Node, name string, std float64, rows, columns int) *graph.Node {
	return params.New(s, like, name, params.Variational, params.Constant(2*math.Log(std)), rows, columns)
}

// std is the standard deviation exp(logVariance / 2).
func std(logVariance *graph.Node) *graph.Node {
	return ops.Exp(graph.MulScalar(logVariance, 0.5))
}
