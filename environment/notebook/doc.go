// Package notebook shows results in a notebook cell. Must and Check stop the cell at an error. Keep and Kept pass
// values to later cells, which are separate programs. Explore shows a picture with sliders.
package notebook
