package inspect

import (
	"densityuncertainty/environment/notebook"
	"densityuncertainty/figures/render"
	"densityuncertainty/figures/tables"
)

// ShowFigure shows a figure and its caption in a notebook. It stops the cell where
// there is an error, so that it can stand around the call that makes the figure.
func ShowFigure(f render.Figure, err error) {
	notebook.Check(err)
	notebook.SVG(notebook.Must(f.Bytes(render.SVG)), f.Caption)
	notebook.Markdown("*" + f.Caption + "*")
}

// ShowTable is ShowFigure for a table.
func ShowTable(t tables.Table, err error) {
	notebook.Check(err)
	notebook.Markdown(notebook.Must(t.Render(tables.Markdown)))
}
