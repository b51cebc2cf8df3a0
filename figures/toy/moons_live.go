package inspect

import (
	"context"
	"fmt"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/run"
	"densityuncertainty/figures/runner"
)

// Moons trains the classifiers of two moons that render.DistanceMoons shows, at full
// length from the given seeds, on the backend that the environment chooses, and
// returns their results. It calls progress with the part that is done.
func Moons(ctx context.Context, progress func(done float64, note string), seeds ...uint64) ([]results.Result, error) {
	set, ok := experiment.SetByName(distanceSet)
	if !ok {
		return nil, fmt.Errorf("inspect: the catalogue has no set %s", distanceSet)
	}
	r, err := runner.New()
	if err != nil {
		return nil, err
	}
	wanted := experiment.Filter{Datasets: []string{experiment.TwoMoons}, Seeds: seeds, Scale: experiment.Full}
	return run.Live(ctx, r, wanted.Apply(set.Experiments), progress)
}

// distanceSet is the catalogue's name of the runs on two moons and the cubic.
const distanceSet = "distance"
