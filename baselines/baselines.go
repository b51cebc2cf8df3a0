// Package baselines implements the methods that the paper compares density
// uncertainty layers with, one file a method, and their image layers in conv.go.
// Each is a family of layers with the same properties as dul.Density: a zero
// value with the paper's settings, Dense(scope, x, units) for vectors, and
// Conv(scope, x, spec) for images.
package baselines

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
)

// orDefault returns value, or the default where value is zero.
func orDefault(value, standard float64) float64 {
	if value == 0 {
		return standard
	}
	return value
}

// logVariance creates the log-variance of a Gaussian posterior that starts at
// the given standard deviation.
func logVariance(s *model.Scope, like *graph.Node, name string, std float64, rows, columns int) *graph.Node {
	return params.New(s, like, name, params.Variational, params.Constant(2*math.Log(std)), rows, columns)
}

// std is the standard deviation exp(logVariance / 2).
func std(logVariance *graph.Node) *graph.Node {
	return graph.Exp(graph.MulScalar(logVariance, 0.5))
}
