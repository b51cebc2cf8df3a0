package report

import (
	"cmp"
	"errors"

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

// Live is a progress bar, such as for Engine.Progress, with a picture below it that is drawn anew while the work goes on. As long
// as there is nothing to draw, draw returns an error that is ErrNotRun.
func Live(label string, draw func() (Figure, error)) *notebook.Progress {
	bar := notebook.NewProgress(label, 100)
	bar.Picture = func() ([]byte, string) {
		f, err := draw()
		if errors.Is(err, ErrNotRun) {
			return nil, ""
		}
		notebook.Check(err)
		return notebook.Must(f.Bytes(SVG)), f.Caption
	}
	return bar
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
