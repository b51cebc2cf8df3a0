// Package notebook shows results inside a notebook cell. Must and Check stop the cell at an error. Keep and Kept hand values
// on to later cells, each a program of its own. Explore shows a picture that follows sliders.
package notebook
