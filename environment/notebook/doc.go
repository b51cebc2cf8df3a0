// Package notebook shows results in a notebook cell. Must and Check stop the cell at an error. Keep and Kept hand values on
// to later cells, which are programs of their own. Explore shows a picture that follows sliders.
package notebook
