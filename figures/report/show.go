package report

import (
	"errors"

	"densityuncertainty/environment/notebook"
)

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
