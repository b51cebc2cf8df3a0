package report

import "densityuncertainty/environment/notebook"

// ShowFigure shows a figure and its caption in a notebook. It stops the cell where
// there is an error, so that it can stand around the call that makes the figure.
func ShowFigure(f Figure, err error) {
	notebook.Check(err)
	notebook.SVG(notebook.Must(f.Bytes(SVG)), f.Caption)
	notebook.Markdown("*" + f.Caption + "*")
}

// ShowTable is ShowFigure for a table.
func ShowTable(t Table, err error) {
	notebook.Check(err)
	notebook.Markdown(notebook.Must(t.Render(Markdown)))
}
