package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"

	"densityuncertainty/dul/metrics"
)

// Sample is a named list of numbers, such as one for each example of a set.
type Sample struct {
	Name   string
	Values []float64
}

// A Separation is one panel of OODThreshold: a score of the examples of the test set, and of sets out of distribution,
// which should have larger scores.
type Separation struct {
	Title   string   // for example "Density Uncertainty"
	Label   string   // of the axis, for example "energy statistic" or "1 - largest probability"
	Inside  Sample   // the test set
	Outside []Sample // the sets out of distribution
	Log     bool     // a logarithmic axis, for numbers of many sizes, which 0 may be among: it is drawn at the smallest other
}

// Histograms have so many bins over the middle of all values; at most the fraction outsideAxis of them is
// cut off at each end, where single values would make the rest narrow.
const (
	oodBins     = 60
	outsideAxis = 0.002
)

// OODThreshold draws histograms of scores, each scaled to an area of 1, in a panel for each separation, up to four in a
// row. On a logarithmic axis they are densities of the base-10 logarithm. A line marks the threshold that a fraction
// falsePositives of the test set exceeds. The legends have the fractions beyond it: of the test set (FPR) and of each set
// out of distribution (TPR).
func OODThreshold(name string, separations []Separation, falsePositives float64) (Figure, error) {
	if !(falsePositives >= 0 && falsePositives <= 1) {
		return Figure{}, fmt.Errorf("report: %s: %g is no rate of false positives, want 0 to 1", name, falsePositives)
	}
	if len(separations) == 0 {
		return Figure{}, fmt.Errorf("report: %s: no separations", name)
	}
	var panels []*plot.Plot
	for _, s := range separations {
		p, err := separationPlot(s, falsePositives)
		if err != nil {
			return Figure{}, fmt.Errorf("report: %s: %s: %w", name, s.Title, err)
		}
		panels = append(panels, p)
	}
	// Every panel has its own numbers, and so both axes.
	f := inRows(name, panels, 250, 175, func(p *plot.Plot, _, first bool) {
		if !first {
			p.Y.Label.Text = ""
		}
	})
	f.Caption = words.Caption("threshold", nil)
	return f, nil
}

func separationPlot(s Separation, falsePositives float64) (*plot.Plot, error) {
	p := New(s.Title, s.Label, "density")
	colours := Palette()
	all := append([]Sample{s.Inside}, s.Outside...)
	for _, set := range all {
		if len(set.Values) == 0 {
			return nil, fmt.Errorf("the set %q has no scores", set.Name)
		}
		if err := finite(set.Name, "score", set.Values); err != nil {
			return nil, err
		}
	}
	threshold := s.threshold(falsePositives)
	for i, set := range all {
		rate := "TPR"
		if i == 0 {
			rate = "FPR"
		}
		beyond := floats.Count(func(v float64) bool { return v > threshold }, set.Values)
		all[i].Name = fmt.Sprintf("%s, %s %.0f%%", set.Name, rate, 100*(float64(beyond)/float64(len(set.Values))))
	}
	place := func(v float64) float64 { return v } // on the axis
	if s.Log {
		least, err := leastPositive(all)
		if err != nil {
			return nil, err
		}
		place = func(v float64) float64 { return math.Log10(max(v, least)) }
		p.X.Tick.Marker = powerTicks{}
	}
	var pooled []float64
	for k, sample := range all {
		all[k].Values = make([]float64, len(sample.Values))
		for i, v := range sample.Values {
			all[k].Values[i] = place(v)
		}
		pooled = append(pooled, all[k].Values...)
	}
	slices.Sort(pooled)
	low, high := stat.Quantile(outsideAxis, stat.Empirical, pooled, nil), stat.Quantile(1-outsideAxis, stat.Empirical, pooled, nil)
	if !(high > low) {
		low, high = low-0.5, high+0.5
	}
	for i, sample := range all {
		if err := outline(p, sample.Name, sample.Values, low, high, oodBins, colours[i%len(colours)]); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max, p.Y.Min = low, high, 0
	at := min(max(place(threshold), low), high)
	if err := Dashes(p, "", []float64{at, at}, []float64{0, p.Y.Max}, Red); err != nil {
		return nil, err
	}
	p.Y.Max *= 1 + 0.13*float64(len(all)) // room for the legend
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

// threshold is the value that the fraction of the test set is beyond, as nearly as its size and ties allow.
func (s Separation) threshold(falsePositives float64) float64 {
	values := slices.Sorted(slices.Values(s.Inside.Values))
	n := int(math.Round(falsePositives * float64(len(values))))
	return values[max(len(values)-1-n, 0)]
}

// leastPositive is the smallest of the samples' values above 0, where a logarithmic axis begins.
func leastPositive(samples []Sample) (float64, error) {
	least := math.Inf(1)
	for _, sample := range samples {
		for i, v := range sample.Values {
			if v < 0 {
				return 0, fmt.Errorf("value %d of %s is %v, which has no place on a logarithmic axis", i, sample.Name, v)
			}
			if v > 0 {
				least = min(least, v)
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0, fmt.Errorf("no value is above 0, as a logarithmic axis wants")
	}
	return least, nil
}

// powerTicks labels an axis of logarithms to base 10 by the powers themselves.
type powerTicks struct{}

// Ticks implements plot.Ticker.
func (powerTicks) Ticks(low, high float64) []plot.Tick {
	const most = 6
	step := math.Max(1, math.Ceil((high-low)/most))
	var ticks []plot.Tick
	for _, t := range ticksAt(step, low, high) {
		ticks = append(ticks, plot.Tick{Value: t.Value, Label: power(int(t.Value))})
	}
	if len(ticks) >= 2 {
		return ticks
	}
	// Less than two powers: 1, 2 and 5 times a power.
	ticks = nil
	for e := int(math.Floor(low)); e <= int(math.Floor(high)); e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := math.Log10(m) + float64(e); v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(m*math.Pow10(e), 'g', 4, 64)})
			}
		}
	}
	if len(ticks) >= 2 {
		return ticks
	}
	// Less than two of these: round numbers.
	ticks = roundTicks{}.Ticks(math.Pow(10, low), math.Pow(10, high))
	for i := range ticks {
		ticks[i].Value = math.Log10(ticks[i].Value)
	}
	return ticks
}

// power is 10 to the power e as text, in digits where they are few.
func power(e int) string {
	if e >= -3 && e <= 4 {
		return strconv.FormatFloat(math.Pow10(e), 'f', max(0, -e), 64)
	}
	return "1e" + strconv.Itoa(e)
}

// LayerSample has the layers' energies on one set: Energies[layer][example].
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
