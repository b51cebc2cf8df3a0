package live

import (
	"errors"
	"math"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/params"
	"densityuncertainty/dul/predict"
)

// The two moons of the project's pictures: so many points with this noise, and the map from (mapLeft, mapLow) on.
const (
	moonsExamples            = 500
	moonsNoise               = 0.1
	mapLeft, mapLow, mapSide = -2.5, -2.75, 6.0
	mapPoints                = 52 // along either axis
)

// A pointMap is where a classifier is uncertain: the entropy of the predicted class, in nats.
type pointMap struct {
	Entropy []float64 `json:"entropy"` // at the points of mapGrid
	AtData  float64   `json:"atData"`  // its mean at the training points
	Far     float64   `json:"far"`     // its mean at the points of mapGrid that are at least 1 away from all training points
}

// mapGrid are the points of the map, row by row from below.
func mapGrid() (grid []float64) {
	const step = mapSide / (mapPoints - 1)
	for row := range mapPoints {
		for column := range mapPoints {
			grid = append(grid, mapLeft+step*float64(column), mapLow+step*float64(row))
		}
	}
	return grid
}

// mapOf summarizes a prediction of classes at the points of the map and at the training points. Without points far away Far
// is 0.
func (r *run) mapOf(found *predict.Prediction) (*pointMap, error) {
	entropy := metrics.Entropy(found.Probabilities, classes)
	if params.NotFinite(entropy) >= 0 {
		return nil, errors.New("live: the training diverged: the probabilities are not finite; less starting noise or a smaller width may help")
	}
	m := &pointMap{Entropy: entropy[:mapPoints*mapPoints], AtData: average(entropy[mapPoints*mapPoints:])}
	var far []float64
	grid := mapGrid()
	for i, v := range m.Entropy {
		nearest := math.Inf(1)
		for k, x := range r.X {
			nearest = min(nearest, math.Hypot(grid[2*i]-x, grid[2*i+1]-r.Y[k]))
		}
		if nearest >= 1 {
			far = append(far, v)
		}
	}
	m.Far = average(far)
	return m, nil
}
