package toy

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/spec"
)

// Moons is two classes in the plane, interleaved half circles, as an experiment.Source. Each split has other data: those
// of the seed that is its number. The one set has the points of mapAxes, then the training points, then 2000 unseen ones.
type Moons struct {
	Seeds int // the number of splits
}

const (
	moonsExamples, moonsUnseen = 500, 2000
	moonsNoise                 = 0.1
	moonsClasses               = 2
	// The map is the square of this side with this corner, with so many points along either axis.
	mapLeft, mapLow, mapSide = -2.5, -2.75, 6.0
	mapPoints                = 52
	// Points at least this far from all training points count as far away.
	farAway = 1.0
)

// Identity implements spec.Identifier. How many splits there are changes none of them.
func (m Moons) Identity() spec.Identity {
	return spec.Identity{Value: struct {
		Examples, Unseen                int
		Noise, MapLeft, MapLow, MapSide float64
		MapPoints                       int
	}{moonsExamples, moonsUnseen, moonsNoise, mapLeft, mapLow, mapSide, mapPoints}}
}

// Check says what cannot be.
func (m Moons) Check() error { return checkSeeds("toy.Moons", m.Seeds) }

// Splits implements experiment.Source.
func (m Moons) Splits() int { return m.Seeds }

// mapAxes are the coordinates of the map along both axes, in the data's own units.
func mapAxes() (xs, ys []float64) {
	return floats.Span(make([]float64, mapPoints), mapLeft, mapLeft+mapSide), floats.Span(make([]float64, mapPoints), mapLow, mapLow+mapSide)
}

// pointsSet is the name of the set of all points. They are predicted in one go, as they always were: their noise comes
// from one stream.
const pointsSet = "points"

// moonsData are the training points of a split, in their own units, and their classes.
func moonsData(split int) (points []float64, labels []int) {
	return datasets.TwoMoons(moonsExamples, moonsNoise, uint64(split))
}

// Load implements experiment.Source.
func (m Moons) Load(_ context.Context, split int) (experiment.Data, error) {
	seen, labels := moonsData(split)
	unseen, answers := datasets.TwoMoons(moonsUnseen, moonsNoise, ^uint64(split))
	scale := datasets.FitScaler(seen, 2, datasets.Order(0, 0, moonsExamples))
	points := mapGrid()
	all := train.Dataset{
		Inputs: nets.Rows(scale.Transform(slices.Concat(points, seen, unseen)), 2),
		Labels: slices.Concat(make([]int, len(points)/2), labels, answers), // those of the map mean nothing
	}
	return experiment.Data{
		Train: train.Dataset{Inputs: nets.Rows(scale.Transform(seen), 2), Labels: labels},
		Sets:  []experiment.Set{{Name: pointsSet, Dataset: all}},
	}, nil
}

// mapGrid are the points of the map, row by row from below.
func mapGrid() []float64 {
	var grid []float64
	xs, ys := mapAxes()
	for _, y := range ys {
		for _, x := range xs {
			grid = append(grid, x, y)
		}
	}
	return grid
}

// The numbers of points of the map, and of those with the training points behind them.
const mapCells, knownPoints = mapPoints * mapPoints, mapPoints*mapPoints + moonsExamples

// entropies are the entropies of the predicted classes in nats, point by point, and the prediction.
func entropies(p *experiment.Predictions) ([]float64, *experiment.Prediction, error) {
	s, err := p.Set(pointsSet)
	if err != nil {
		return nil, nil, err
	}
	return metrics.Entropy(s.Probabilities, moonsClasses), s, nil
}

// The metrics of distanceMetrics beside the accuracy.
const metricEntropyData, metricEntropyFar = "entropy_data", "entropy_far"

// distanceMetrics measures distance awareness: "accuracy" on unseen points, and the mean entropy of the predicted classes, in
// nats, at the training points ("entropy_data") and at points of the map at least 1 away from all of them
// ("entropy_far").
func distanceMetrics(p *experiment.Predictions) (map[string]float64, error) {
	entropy, s, err := entropies(p)
	if err != nil {
		return nil, err
	}
	accuracy := metrics.Accuracy(s.Probabilities[knownPoints*moonsClasses:], moonsClasses, s.Labels[knownPoints:])
	points, _ := moonsData(p.Split)
	return map[string]float64{
		experiment.MetricAccuracy: accuracy,
		metricEntropyData:         stat.Mean(entropy[mapCells:knownPoints], nil),
		metricEntropyFar:          stat.Mean(onMap(points, entropy, func(_, _, nearest float64) bool { return nearest >= farAway }), nil),
	}, nil
}

// EntropyBetween is the mean entropy of the predicted classes, in nats, between the moons: at the points of the map with x from
// -1.2 to 2.2 and y from -0.7 to 1.2 that are at least 0.3, three standard deviations of the noise, from both half circles.
func EntropyBetween(p *experiment.Predictions) (float64, error) {
	entropy, _, err := entropies(p)
	if err != nil {
		return 0, err
	}
	circles, _ := datasets.TwoMoons(1000, 0, 0)
	return stat.Mean(onMap(circles, entropy, func(x, y, nearest float64) bool {
		return nearest >= 3*moonsNoise && x > -1.2 && x < 2.2 && y > -0.7 && y < 1.2
	}), nil), nil
}

// onMap are the values at the chosen points (x, y) of the map; nearest is the distance to the nearest of the given points.
func onMap(points, values []float64, chosen func(x, y, nearest float64) bool) (found []float64) {
	grid := mapGrid()
	for i := range mapCells {
		x, y, nearest := grid[2*i], grid[2*i+1], math.Inf(1)
		for k := 0; k < len(points); k += 2 {
			nearest = min(nearest, math.Hypot(x-points[k], y-points[k+1]))
		}
		if chosen(x, y, nearest) {
			found = append(found, values[i])
		}
	}
	return found
}
