package report

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// InRows arranges panels in rows of so many columns; the last row may have nil at its end. If adapt is not nil, it is called
// for each panel, with whether it is the lowest of its column and the first of its row.
func InRows(panels []*plot.Plot, columns int, adapt func(p *plot.Plot, lowest, first bool)) (rows [][]*plot.Plot) {
	columns = min(columns, len(panels))
	for n, p := range panels {
		if n%columns == 0 {
			rows = append(rows, make([]*plot.Plot, columns))
		}
		rows[n/columns][n%columns] = p
		if adapt != nil {
			adapt(p, n+columns >= len(panels), n%columns == 0)
		}
	}
	return rows
}

// ShareAxes, for InRows, removes the x labels of all rows but the lowest and the y labels of all columns but the
// first, with their space.
func ShareAxes(p *plot.Plot, lowest, first bool) {
	if !lowest {
		p.X.Label.Text = ""
		p.X.Tick.Marker = unlabelled{p.X.Tick.Marker}
	}
	if !first {
		p.Y.Label.Text = ""
		p.Y.Tick.Marker = unlabelled{p.Y.Tick.Marker}
	}
}

// unlabelled keeps the tick marks and drops their labels.
type unlabelled struct{ plot.Ticker }

// Ticks implements plot.Ticker.
func (u unlabelled) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for _, t := range u.Ticker.Ticks(low, high) {
		// A label of one blank keeps major marks long; without one a mark is drawn as a minor one.
		if t.Label != "" {
			t.Label = " "
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// roundTicks places ticks at multiples of 1, 2 or 5 times a power of ten, as near to four of them as
// that allows, with as many decimals as tell them apart.
type roundTicks struct{}

// Ticks implements plot.Ticker.
func (roundTicks) Ticks(low, high float64) []plot.Tick {
	const wanted = 4
	if !(high > low) {
		return nil
	}
	power := math.Pow(10, math.Floor(math.Log10((high-low)/wanted)))
	var best []plot.Tick
	for _, multiple := range []float64{10, 5, 2, 1} {
		ticks := ticksAt(multiple*power, low, high)
		if best == nil || distance(len(ticks), wanted) < distance(len(best), wanted) {
			best = ticks
		}
	}
	if len(best) == 0 { // low and high are neighbours among the floats
		for _, end := range []float64{low, high} {
			best = append(best, plot.Tick{Value: end, Label: strconv.FormatFloat(end, 'g', -1, 64)})
		}
	}
	return best
}

// drawable returns an error if no picture can have the axis.
func drawable(a plot.Axis) error {
	scale, log := a.Scale.(*logScale)
	switch {
	case log && (a.Min <= 0 || scale.below):
		return errors.New("is logarithmic, where 0 and less have no place; draw them where it begins (see LogAxis)")
	case math.IsNaN(a.Min) || math.IsNaN(a.Max) || (math.IsInf(a.Min, 0) || math.IsInf(a.Max, 0)) && a.Min < a.Max: // of nothing it is from +Inf to -Inf
		return errors.New("is not finite; look for NaN and infinities in what the plot shows")
	case math.IsInf(a.Max-a.Min, 1):
		return fmt.Errorf("would go from %v to %v, which are too far apart", a.Min, a.Max)
	case a.Min == a.Max && a.Min+1 == a.Min:
		return fmt.Errorf("shows %v alone, around which there is no room for numbers", a.Min)
	}
	return nil
}

// LogAxis makes an axis logarithmic, from the smallest positive value, or a thousandth of the largest if that is more, to the
// largest. Draw smaller values at axis.Min: they have no place on the axis.
func LogAxis(axis *plot.Axis, values []float64) {
	const powers = 1000
	low, high := math.Inf(1), 0.0
	for _, v := range values {
		high = max(high, v)
		if v > 0 {
			low = min(low, v)
		}
	}
	if high == 0 { // nothing has a place, and any axis will do
		low, high = 1, 1
	}
	if low == high {
		low, high = low/2, 2*high
	}
	axis.Scale, axis.Tick.Marker = &logScale{}, logTicks{}
	axis.Min, axis.Max = max(low, high/powers), high
}

// logScale is plot.LogScale, which panics at numbers of 0 and less, and remembers that it saw one.
type logScale struct{ below bool }

// Normalize implements plot.Normalizer.
func (s *logScale) Normalize(low, high, x float64) float64 {
	if !(x > 0) {
		s.below, x = true, low
	}
	return plot.LogScale{}.Normalize(low, high, x)
}

// logTicks are powerTicks for an axis that is logarithmic itself.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) []plot.Tick {
	ticks := powerTicks{}.Ticks(math.Log10(low), math.Log10(high))
	for i := range ticks {
		ticks[i].Value = math.Pow(10, ticks[i].Value)
	}
	return ticks
}

// SymmetricLogAxis makes an axis logarithmic on both sides of 0: a value v is drawn at asinh(v/linear), so that the axis is nearly even
// between -linear and linear. Ticks are 0 and the powers of ten times linear.
func SymmetricLogAxis(axis *plot.Axis, linear float64) {
	axis.Scale, axis.Tick.Marker = symmetricLog(linear), symmetricLog(linear)
}

type symmetricLog float64

// Normalize implements plot.Normalizer.
func (s symmetricLog) Normalize(low, high, v float64) float64 {
	at := func(v float64) float64 { return math.Asinh(v / float64(s)) }
	return (at(v) - at(low)) / (at(high) - at(low))
}

// Ticks implements plot.Ticker.
func (s symmetricLog) Ticks(low, high float64) []plot.Tick {
	ticks := []plot.Tick{{Value: 0, Label: "0"}}
	for v := float64(s); v <= max(high, -low); v *= 10 {
		for _, value := range []float64{v, -v} {
			if label := strconv.FormatFloat(value, 'g', 3, 64); low <= value && value <= high {
				ticks = append(ticks, plot.Tick{Value: value, Label: label})
			}
		}
	}
	return ticks
}

func distance(a, b int) int { return max(a-b, b-a) }

// nudge keeps rounding errors from moving a number over a whole one.
const nudge = 1e-9

// ticksAt places a tick at every multiple of step; none where multiples are too large to be told apart.
func ticksAt(step, low, high float64) []plot.Tick {
	const most, exact = 100, 1 << 52 // ticks, and the size of their numbers
	first, last := math.Ceil(low/step-nudge), math.Floor(high/step+nudge)
	if !(last-first < most) || math.Abs(first) > exact || math.Abs(last) > exact {
		return nil
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+nudge)))
	var ticks []plot.Tick
	// Multiples are counted rather than added up, so that rounding does not grow.
	for n := range int(last-first) + 1 {
		// Adding zero turns a negative zero into a plain one.
		value := (first+float64(n))*step + 0
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', decimals, 64)})
	}
	return ticks
}
