package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// The bins of the histograms and the quantiles of Normality.
const normalBins, normalQuantiles = 30, 99

// Normality is a figure of how nearly normal positive numbers are, a column for each of the samples: above, the
// histogram of the standardised values beside the normal density; below, quantiles of the standardised values and of
// their standardised logarithms over those of the normal distribution, which lie on the dashed line where a sample is
// normal. The titles have the skewness of the values, which is 0 for a normal distribution.
func Normality(name string, samples ...Sample) (Figure, error) {
	if len(samples) == 0 {
		return Figure{}, fmt.Errorf("report: %s: no samples", name)
	}
	const width = 150
	f := Figure{
		Name: name, Panels: make([][]*plot.Plot, 2), Width: vg.Points(float64(width*len(samples)) + 30), Height: vg.Points(280),
		Caption: words.Caption("normality", nil),
	}
	for k, s := range samples {
		above, below, err := normalityPlots(s)
		if err != nil {
			return Figure{}, fmt.Errorf("report: %s: %s: %w", name, s.Name, err)
		}
		ShareAxes(above, true, k == 0)
		ShareAxes(below, true, k == 0)
		f.Panels[0], f.Panels[1] = append(f.Panels[0], above), append(f.Panels[1], below)
	}
	return f, nil
}

// normalityPlots are the two panels of a sample, on axes that are the same for all.
func normalityPlots(s Sample) (above, below *plot.Plot, err error) {
	if len(s.Values) < 3 || !(slices.Min(s.Values) > 0) {
		return nil, nil, fmt.Errorf("%d values; want at least 3, all positive", len(s.Values))
	}
	logs := make([]float64, len(s.Values))
	for i, v := range s.Values {
		logs[i] = math.Log(v)
	}
	values, err := standardised(s.Values)
	if err != nil {
		return nil, nil, err
	}
	if logs, err = standardised(logs); err != nil {
		return nil, nil, err
	}
	skewness := math.Round(10*stat.Skew(values, nil))/10 + 0 // no negative zero
	above = New(fmt.Sprintf("%s\nskewness %.1f", s.Name, skewness), "standardised", "density")
	// A few values far out would make all bins wide.
	const end = 4.0
	var shown []float64
	for _, v := range values {
		shown = append(shown, min(max(v, -end), end))
	}
	if err := Histogram(above, "", shown, normalBins, Blue); err != nil {
		return nil, nil, err
	}
	var x, density []float64
	for at := -end; at <= end; at += 0.1 {
		x, density = append(x, at), append(density, distuv.UnitNormal.Prob(at))
	}
	if err := Dashes(above, "", x, density, Grey); err != nil {
		return nil, nil, err
	}
	above.X.Min, above.X.Max, above.Y.Min, above.Y.Max = -end, end, 0, 1

	below = New("", "normal quantile", "quantile")
	for i, list := range [][]float64{values, logs} {
		var normal, quantiles []float64
		for q := 1; q <= normalQuantiles; q++ {
			p := float64(q) / (normalQuantiles + 1)
			normal = append(normal, distuv.UnitNormal.Quantile(p))
			quantiles = append(quantiles, stat.Quantile(p, stat.Empirical, list, nil))
		}
		colour := []color.Color{Blue, Orange}[i]
		if err := Points(below, []string{"values", "logarithms"}[i], normal, quantiles, colour, DotRadius); err != nil {
			return nil, nil, err
		}
	}
	if err := Dashes(below, "", []float64{-end, end}, []float64{-end, end}, Grey); err != nil {
		return nil, nil, err
	}
	below.X.Min, below.X.Max, below.Y.Min, below.Y.Max = -2.5, 2.5, -end, end
	below.Legend.Top, below.Legend.Left = true, true
	return above, below, nil
}

// standardised are the values in ascending order, less their mean, in units of their standard deviation.
func standardised(values []float64) ([]float64, error) {
	if err := finite("normality", "value", values); err != nil {
		return nil, err
	}
	mean, std := stat.MeanStdDev(values, nil)
	if !(std > 0) {
		return nil, fmt.Errorf("all values are %v", mean)
	}
	sorted := slices.Sorted(slices.Values(values))
	for i := range sorted {
		sorted[i] = (sorted[i] - mean) / std
	}
	return sorted, nil
}
