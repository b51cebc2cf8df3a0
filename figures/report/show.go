package report

import "densityuncertainty/environment/notebook"

// ShowFigure shows a figure and its caption in a notebook. It stops the cell where
// there is an error, so that it can stand around the call that makes the figure.
func ShowFigure(f Figure, err error) {
	notebook.Check(err)
	notebook.SVG(notebook.Must(f.Bytes(SVG)), f.Caption)
	notebook.Markdown("*" + f.Caption + "*")
}

// Explore is [notebook.Explore] with figures: draw makes the one for where the sliders are. The description says what they show.
func Explore(description string, draw func(at []float64) (Figure, error), sliders ...notebook.Slider) {
	notebook.Explore(description, func(at []float64) ([]byte, error) {
		f, err := draw(at)
		if err != nil {
			return nil, err
		}
		return f.Bytes(SVG)
	}, sliders...)
}

// ShowTable is ShowFigure for a table.
func ShowTable(t Table, err error) {
	notebook.Check(err)
	notebook.Markdown(notebook.Must(t.Render(Markdown)))
}
