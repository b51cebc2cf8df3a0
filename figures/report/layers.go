package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// LayerSample is what the layers' energies are on one set: Energies[layer][example].
type LayerSample struct {
	Name     string
	Energies [][]float64
}

// middle is the share of the examples that a bar of LayerEnergies spans.
const middle = 0.9

// LayerEnergies is a figure of the energies of every layer, from the input to the output, on several sets
// of images: the median over the images as a point, and a bar that spans the middle 90% of them. Energies
// are divided by the layer's median energy on the first set, the one in distribution, since layers differ
// in their numbers of channels: 1 is a typical image. layers names the layers; energies are positive.
func LayerEnergies(name string, layers []string, sets []LayerSample) (Figure, error) {
	if len(layers) == 0 || len(sets) == 0 {
		return Figure{}, fmt.Errorf("report: %s: %d layers and %d sets", name, len(layers), len(sets))
	}
	p := New("Energy of each layer's input", "layer", "energy / median on "+sets[0].Name)
	unit := make([]float64, len(layers))
	for k, set := range sets {
		if len(set.Energies) != len(layers) {
			return Figure{}, fmt.Errorf("report: %s: %d layers of %s, but %d names", name, len(set.Energies), set.Name, len(layers))
		}
		bars := struct {
			plotter.XYs
			plotter.YErrors
		}{}
		for l, energies := range set.Energies {
			if len(energies) == 0 || !(slices.Min(energies) > 0) || math.IsInf(slices.Max(energies), 1) {
				return Figure{}, fmt.Errorf("report: %s: layer %s has %d energies on %s, want some, all positive and finite", name, layers[l], len(energies), set.Name)
			}
			sorted := slices.Sorted(slices.Values(energies))
			median := stat.Quantile(0.5, stat.Empirical, sorted, nil)
			if k == 0 {
				unit[l] = median
			}
			low, high := stat.Quantile((1-middle)/2, stat.Empirical, sorted, nil), stat.Quantile((1+middle)/2, stat.Empirical, sorted, nil)
			// The axis is of logarithms; sets stand side by side.
			y := math.Log10(median / unit[l])
			bars.XYs = append(bars.XYs, plotter.XY{X: float64(l) + 0.5*(float64(k)+0.5-float64(len(sets))/2)/float64(len(sets)), Y: y})
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{y - math.Log10(low/unit[l]), math.Log10(high/unit[l]) - y})
		}
		if err := addBars(p, set.Name, bars, k); err != nil {
			return Figure{}, fmt.Errorf("report: %s: %w", name, err)
		}
	}
	if err := Dashes(p, "", []float64{-0.5, float64(len(layers)) - 0.5}, []float64{0, 0}, Grey); err != nil {
		return Figure{}, err
	}
	var ticks []plot.Tick
	for l, layer := range layers {
		ticks = append(ticks, plot.Tick{Value: float64(l), Label: layer})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/4, draw.XRight, draw.YTop
	p.X.Min, p.X.Max = -0.6, float64(len(layers))-0.4
	room := 0.06 * (p.Y.Max - p.Y.Min)
	p.Y.Min, p.Y.Max = p.Y.Min-room, p.Y.Max+room*(1+float64(len(sets)))
	p.Y.Tick.Marker = powerTicks{}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs = vg.Points(6)
	f := Single(name, p, vg.Points(max(260, float64(len(layers)*(10+7*len(sets)))+70)), vg.Points(230))
	f.Caption = words.Caption("layers", sets[0].Name)
	return f, nil
}

// addBars draws points with vertical bars, as mark k.
func addBars(p *plot.Plot, name string, bars interface {
	plotter.XYer
	plotter.YErrorer
}, k int) error {
	m := MarkOf("", k)
	lines, err := plotter.NewYErrorBars(bars)
	if err != nil {
		return err
	}
	lines.LineStyle, lines.CapWidth = draw.LineStyle{Color: m.Colour, Width: vg.Points(1)}, vg.Points(3)
	return glyphs(p, name, lines, bars, m.Colour, m.Shape)
}
