// Package notebook shows results inside a notebook cell.
//
// Every function that shows something waits until the notebook has received
// it. Without that wait a picture sent just before the end of a cell can get
// lost, although the cell reports success.
//
// A cell has no caller to return an error to, so the functions here stop the
// cell with a panic when something cannot be shown, and [Must] and [Check] do
// the same with the errors of other functions.
//
// A cell is a program of its own: [Keep] and [Kept] hand values
// on to later cells, and past a restart of the kernel.
//
// [Explore] shows a picture that follows sliders, in exported pages and slides, too.
//
// Outside a notebook the same code runs as an ordinary program: text goes to
// standard output, progress to standard error, and pictures are only named.
package notebook
