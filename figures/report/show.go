package report

import (
	"errors"

	"densityuncertainty/environment/notebook"
)

// Live shows a progress bar, such as for Engine.Progress, and below it a picture that is drawn again during the work. As
// long as there is nothing to draw, draw must return an error that wraps ErrNotRun.
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
