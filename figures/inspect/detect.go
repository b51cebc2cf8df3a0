package inspect

import (
	"fmt"
	"slices"

	"densityuncertainty/dul/metrics"
)

// An Interval is a number with the bounds between which it would lie, 95 times in
// a hundred, for other test images of the same kind. It does not hold the spread
// over training runs.
type Interval struct{ Value, Low, High float64 }

// String prints "0.893 [0.880, 0.906]".
func (i Interval) String() string { return fmt.Sprintf("%.3f [%.3f, %.3f]", i.Value, i.Low, i.High) }

const (
	replicates    = 1000
	level         = 0.95
	bootstrapSeed = 1
)

// Detect says how well a score, larger for stranger images, tells images out of
// distribution from those inside: metrics.AUROC and metrics.AUPRC, the images out
// of distribution being the positive ones, with intervals by
// metrics.BootstrapStrata.
func Detect(inside, outside []float64) (auroc, auprc Interval, err error) {
	strange := slices.Concat(make([]bool, len(inside)), slices.Repeat([]bool{true}, len(outside)))
	ranks, err := metrics.NewRanks(slices.Concat(inside, outside), strange)
	if err != nil {
		return auroc, auprc, fmt.Errorf("inspect: %w", err)
	}
	of := func(number func(metrics.Sweep) float64) Interval {
		at := func(indices []int) (float64, error) {
			s, err := ranks.Sweep(indices)
			if err != nil {
				return 0, err
			}
			return number(s), nil
		}
		var i Interval
		if err == nil {
			i.Value, err = at(nil)
		}
		if err == nil {
			i.Low, i.High, err = metrics.BootstrapStrata([]int{len(inside), len(outside)}, replicates, bootstrapSeed, level, at)
		}
		return i
	}
	auroc, auprc = of(metrics.Sweep.AUROC), of(metrics.Sweep.AUPRC)
	if err != nil {
		return auroc, auprc, fmt.Errorf("inspect: %w", err)
	}
	return auroc, auprc, nil
}
