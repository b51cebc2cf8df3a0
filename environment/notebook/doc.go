// Package notebook shows results inside a notebook cell. Functions that show something wait until the notebook has received
// it, and stop the cell with a panic if they cannot; Must and Check do so with the errors of other functions. Keep and Kept
// hand values on to later cells, each a program of its own. Explore shows a picture that follows sliders. Outside a notebook
// text goes to standard output, progress to standard error, and pictures are only named.
package notebook
