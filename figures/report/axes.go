package report

import "gonum.org/v1/plot"

// ShareAxes takes the labels off the axes that another panel shows: only the lowest row has x labels, only
// the first column y labels. The space is taken too, so that panels move together.
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
