package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"densityuncertainty/dul/metrics"
)

// LayerSample is what the layers' energies are on one set: Energies[layer][example].
type LayerSample struct {
	Name     string
	Energies [][]float64
}

// middle is the share of the examples that a bar of LayerEnergies spans.
const middle = 0.9

// LayerEnergies draws, as a Forest, the energies of every layer on several sets of images: a mark at the median over the
// images, and a bar over the middle 90%. Layers differ in their numbers of channels, so their energies, which are
// positive, are divided by the layer's median on the first set, the one in distribution: 1 is a typical image. layers
// names the layers, from the input to the output.
func LayerEnergies(name string, layers []string, sets []LayerSample) (Figure, error) {
	if len(layers) == 0 || len(sets) == 0 {
		return Figure{}, fmt.Errorf("report: %s: %d layers and %d sets", name, len(layers), len(sets))
	}
	t, unit := Table{Name: name, Columns: []string{"Input of the layer"}}, make([]float64, len(layers))
	for _, layer := range layers {
		t.Rows = append(t.Rows, Row{Name: layer})
	}
	for k, set := range sets {
		if len(set.Energies) != len(layers) {
			return Figure{}, fmt.Errorf("report: %s: %d layers of %s, but %d names", name, len(set.Energies), set.Name, len(layers))
		}
		t.Columns = append(t.Columns, set.Name)
		for l, energies := range set.Energies {
			if len(energies) == 0 || !(slices.Min(energies) > 0) || math.IsInf(slices.Max(energies), 1) {
				return Figure{}, fmt.Errorf("report: %s: layer %s has %d energies on %s, want some, all positive and finite", name, layers[l], len(energies), set.Name)
			}
			sorted := slices.Sorted(slices.Values(energies))
			at := func(q float64) float64 { return math.Log10(stat.Quantile(q, stat.Empirical, sorted, nil)) - unit[l] }
			if k == 0 {
				unit[l] = at(0.5)
			}
			t.Rows[l].Cells = append(t.Rows[l].Cells, Cell{
				Difference: &metrics.Difference{Mean: at(0.5), Low: at((1 - middle) / 2), High: at((1 + middle) / 2)},
				Verdict:    Better, // nothing is tested; it fills the mark
			})
		}
	}
	f, err := Forest{Axis: "energy / median on " + sets[0].Name}.Of(t)
	if err != nil {
		return f, err
	}
	f.Panels[0][0].X.Tick.Marker = powerTicks{} // of logarithms
	f.Caption = words.Caption("layers", sets[0].Name)
	return f, nil
}
