package report

import (
	"cmp"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"densityuncertainty/environment/notebook"
)

// The size of the picture that Show makes, in points.
const (
	shownWidth  = 420
	shownHeight = 260
)

// Show shows a plot in a notebook, such as one of [New] or of gonum's plot.New. For readers who cannot see it, its
// title and the labels of its axes describe it; if it has none of them, it is described as "a plot". A nil plot and a
// plot with an axis that is not finite stop the cell.
func Show(p *plot.Plot) {
	notebook.SVG(notebook.Must(showable(p).Bytes(SVG)), describe(p))
}

// showable is a figure of the plot.
func showable(p *plot.Plot) Figure {
	if p == nil {
		panic("report.Show: the plot is nil")
	}
	return Single("plot", p, vg.Points(shownWidth), vg.Points(shownHeight))
}

// describe says in words what a plot shows.
func describe(p *plot.Plot) string {
	words := p.Title.Text
	if p.X.Label.Text != "" || p.Y.Label.Text != "" {
		if words != "" {
			words += ": "
		}
		words += cmp.Or(p.Y.Label.Text, "values") + " over " + cmp.Or(p.X.Label.Text, "x")
	}
	return cmp.Or(words, "a plot")
}
