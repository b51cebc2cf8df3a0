// Package baselines implements the methods that the paper compares density
// uncertainty layers with, one file a method; SNGP and DUE share gp.go and
// spectral.go.
//
// Each is a family of layers with Dense(scope, x, units) for vectors and
// Conv(scope, x, spec) for images, as dul.Density is. The zero values of
// Deterministic, MFVI, Rank1, VDropout and MCDropout have the paper's settings.
// SNGP and DUE are Gaussian processes on the features of a network of
// SpectralNormed layers, whose Dense is the head; they must be told of the data
// first: SNGP.Examples, DUE.Start. An ensemble is no family but a mixture of
// predictions: predict.Mix, predict.MixClasses.
package baselines

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"densityuncertainty/dul/params"
)

// logVariance creates the log-variance of a Gaussian posterior that starts at
// the given standard deviation.
func logVariance(s *model.Scope, like *graph.Node, name string, std float64, rows, columns int) *graph.Node {
	return params.New(s, like, name, params.Variational, params.Constant(2*math.Log(std)), rows, columns)
}

// std is the standard deviation exp(logVariance / 2).
func std(logVariance *graph.Node) *graph.Node {
	return graph.Exp(graph.MulScalar(logVariance, 0.5))
}
