package cifar

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/report"
)

// An Interval is a number with the bounds between which it would lie, 95 times in a hundred, for other test images of the
// same kind. It does not hold the spread over training runs.
type Interval struct{ Value, Low, High float64 }

// String prints "0.893 [0.880, 0.906]".
func (i Interval) String() string { return fmt.Sprintf("%.3f [%.3f, %.3f]", i.Value, i.Low, i.High) }

const (
	replicates    = 1000
	level         = 0.95
	bootstrapSeed = 1
)

// Detect says how well a score, larger for images out of distribution, tells these from images inside: metrics.AUROC and
// metrics.AUPRC, with the images out of distribution as the positive ones and intervals by metrics.Bootstrap.
func Detect(inside, outside []float64) (auroc, auprc Interval, err error) {
	ranks := ranksOf(inside, outside)
	of := func(number func(metrics.Sweep) float64) Interval {
		i := Interval{Value: number(ranks.Sweep())}
		if !math.IsNaN(i.Value) {
			i.Low, i.High = metrics.Bootstrap([]int{len(inside), len(outside)}, replicates, bootstrapSeed, level, ranks.At(number))
		}
		return i
	}
	if auroc, auprc = of(metrics.Sweep.AUROC), of(metrics.Sweep.AUPRC); math.IsNaN(auroc.Value) {
		err = fmt.Errorf("cifar: detection by %d scores of images inside and %d outside: there are none of one kind, or some are NaN", len(inside), len(outside))
	}
	return auroc, auprc, err
}

// ranksOf ranks images by a score, with those out of distribution as the positive ones.
func ranksOf(inside, outside []float64) *metrics.Ranks {
	positive := slices.Concat(make([]bool, len(inside)), slices.Repeat([]bool{true}, len(outside)))
	return metrics.NewRanks(slices.Concat(inside, outside), positive)
}

// DetectByLayer is a table of the AUROC of Detect for the paper's statistic (metrics.EnergyOOD), with a row for each layer
// and a column for each set of images out of distribution. The means are those of the held-out images at the layer. The
// largest number of each column is bold. All predictions are of one network with energies.
func DetectByLayer(heldOut, inside Predictions, outside ...Predictions) (report.Table, error) {
	t := prose.Table("ood-layers", inside.Images.Name)
	t.Columns = []string{"Input of the layer"}
	for _, layer := range heldOut.Energies {
		t.Rows = append(t.Rows, report.Row{Name: layer.Layer})
	}
	if len(heldOut.Energies) == 0 {
		return report.Table{}, errors.New("cifar: detection by layer: the predictions have no energies; they must be of density layers")
	}
	for _, out := range outside {
		best, largest := 0, 0.0
		for l, layer := range heldOut.Energies {
			auroc, err := detectAt(l, heldOut, inside, out)
			if err != nil {
				return report.Table{}, fmt.Errorf("cifar: layer %s, %s: %w", layer.Layer, out.Images.Name, err)
			}
			if auroc.Value > largest {
				best, largest = l, auroc.Value
			}
			t.Rows[l].Cells = append(t.Rows[l].Cells, report.Cell{Text: auroc.String()})
		}
		t.Rows[best].Cells[len(t.Columns)-1].Bold = true
		t.Columns = append(t.Columns, out.Images.Name)
	}
	return t, nil
}

// detectAt is the AUROC at layer l.
func detectAt(l int, heldOut, inside, outside Predictions) (Interval, error) {
	if l >= len(inside.Energies) || l >= len(outside.Energies) {
		return Interval{}, fmt.Errorf("energies of %d, %d and %d layers; the predictions must be of one model",
			len(heldOut.Energies), len(inside.Energies), len(outside.Energies))
	}
	reference := heldOut.Energies[l].Mean
	auroc, _, err := Detect(metrics.EnergyOOD(inside.Energies[l].Mean, reference), metrics.EnergyOOD(outside.Energies[l].Mean, reference))
	return auroc, err
}
