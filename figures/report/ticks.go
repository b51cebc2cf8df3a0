package report

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// roundTicks places ticks at multiples of 1, 2 or 5 times a power of ten, as near to wanted in number as
// that allows, with as many decimals as tell them apart.
type roundTicks struct{ wanted int }

// Ticks implements plot.Ticker.
func (r roundTicks) Ticks(low, high float64) []plot.Tick {
	if !(high > low) {
		return nil
	}
	power := math.Pow(10, math.Floor(math.Log10((high-low)/float64(r.wanted))))
	var best []plot.Tick
	for _, multiple := range []float64{10, 5, 2, 1} {
		ticks := ticksAt(multiple*power, low, high)
		if best == nil || distance(len(ticks), r.wanted) < distance(len(best), r.wanted) {
			best = ticks
		}
	}
	return best
}

func distance(a, b int) int { return max(a-b, b-a) }

// nudge keeps rounding errors from moving a number over a whole one.
const nudge = 1e-9

// ticksAt places a tick at every multiple of step.
func ticksAt(step, low, high float64) []plot.Tick {
	decimals := max(0, -int(math.Floor(math.Log10(step)+nudge)))
	var ticks []plot.Tick
	// Multiples are counted rather than added up, so that rounding does not grow.
	for k := math.Ceil(low/step - nudge); k <= high/step+nudge; k++ {
		// Adding zero turns a negative zero into a plain one.
		value := k*step + 0
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', decimals, 64)})
	}
	return ticks
}
