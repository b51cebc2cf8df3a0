package report

import (
	"fmt"
	"math"
	"slices"
)

// A Value is a mean with its spread: one of ours with the decimals that are asked for, or a published one with those that
// it was printed with. Without a number Mean is NaN.
type Value struct {
	Mean, Std float64 // Std, a standard deviation, is NaN for a single run and where none is known
	Decimals  int
}

// String is "2.593 ± 0.067", the mean alone where there is no standard deviation, and a dash where there is no mean.
func (n Value) String() string {
	if math.IsNaN(n.Mean) {
		return "–"
	}
	if math.IsNaN(n.Std) {
		return fmt.Sprintf("%.*f", n.Decimals, n.Mean)
	}
	return fmt.Sprintf("%.*f ± %.*f", n.Decimals, n.Mean, n.Decimals, n.Std)
}

// Printed is a published number as a cell of its own, with the decimals that it was printed with.
func (n Value) Printed() Cell { return Cell{Text: n.String(), Theirs: true} }

// NumberCell is a cell with a mean and its spread, which Align gives the decimals of the numbers beside it.
func NumberCell(mean, std float64, decimals int) Cell {
	n := Value{mean, std, decimals}
	if math.IsNaN(mean) {
		return Cell{Text: n.String()}
	}
	return Cell{Text: n.String(), Value: &n}
}

// The verdicts on a cell. NLL, RMSE and ECE are better when lower, accuracy and the areas under curves
// when higher.
const (
	Agrees    = "agrees" // at most one standard deviation away
	Better    = "better" // by more than that
	Worse     = "worse"  // by more than that
	Unsettled = ""       // fewer than two runs, one that diverged, or nothing to compare with
)

// mostDecimals is the number of decimals beyond which numbers differ by rounding alone.
const mostDecimals = 6

// Decimals returns the number of decimals, from 0 to 6, that show x with so many significant digits; 0 if x is 0, NaN or
// infinite.
func Decimals(x float64, digits int) int {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return min(max(0, digits-1-int(math.Floor(math.Log10(math.Abs(x))))), mostDecimals)
}

// Align prints all cells with the decimals that show two significant digits of their median standard deviation. They are at
// most the largest Decimals of the cells or, if that is above 2, as many as show three digits of the largest number. A cell
// gets more to show a digit of its own deviation, and fewer if two digits of it need at least two decimals fewer. A cell of
// Theirs never gets more than its own Decimals.
func Align(cells ...*Cell) {
	var own []int
	most := 0
	largest := 0.0
	for _, c := range cells {
		if c.Value != nil {
			largest, most = max(largest, math.Abs(c.Value.Mean)), max(most, c.Value.Decimals)
			if c.Value.Std > 0 {
				own = append(own, Decimals(c.Value.Std, 2))
			}
		}
	}
	if most > 2 {
		most = max(most, Decimals(largest, 3))
	}
	decimals := most
	if slices.Sort(own); len(own) > 0 {
		decimals = min(most, own[len(own)/2])
	}
	for _, c := range cells {
		if c.Value == nil {
			continue
		}
		n := decimals
		if c.Value.Std > 0 {
			n = min(most, max(n, Decimals(c.Value.Std, 1)))
			if two := Decimals(c.Value.Std, 2); two < n-1 {
				n = two
			}
		}
		if c.Theirs {
			n = min(n, c.Value.Decimals)
		}
		c.Text = Value{c.Value.Mean, c.Value.Std, n}.String() + c.note
	}
}

// Noted is the cell with a note after its number.
func (c Cell) Noted(note string) Cell {
	c.note = note
	c.Text += note
	return c
}

// NotSignificant is the verdict on a difference that other data of the same kind may well reverse.
const NotSignificant = "not significant"
