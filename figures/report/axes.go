package report

import "gonum.org/v1/plot"

// InRows arranges panels in rows of so many; places of the last that are left over stay empty. Each panel is handed to
// adapt, if that is not nil, which is told whether it is the lowest of its column and the first of its row.
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
