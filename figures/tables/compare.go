package tables

import (
	"fmt"
	"math"

	"densityuncertainty/figures/experiment"
)

// Published is a number to compare with.
type Published struct {
	Mean, Std float64 // Std is NaN when none is known
	Decimals  int     // decimals with which it was published
}

// The verdicts on a cell. NLL, RMSE and ECE are better when lower, accuracy and the areas under curves
// when higher.
const (
	Agrees    = "agrees" // at most one standard deviation away
	Better    = "better" // by more than that
	Worse     = "worse"  // by more than that
	NoUnit    = "no sd"  // fewer than two runs, so there is no unit
	Unsettled = ""       // no full-scale number, or some runs diverged
)

// Difference is (ours - theirs) in units of OUR standard deviation over the splits, which is the spread
// that one split's number has, and a verdict. Our own spread is the unit because some of the paper's are
// not credible: those of the Yacht RMSE look ten times too small. The part of the difference that the
// rounding of the published number can explain, half a unit of its last decimal, is taken off first, so
// that 0.0006 against a printed 0.001 does not count as far away. NaN when there is no verdict. Lower
// numbers are the better ones.
func Difference(ours Summary, theirs Published) (inStd float64, verdict string) {
	if ours.Scale != experiment.Full || ours.Diverged > 0 || ours.N == 0 || math.IsNaN(theirs.Mean) {
		return math.NaN(), Unsettled
	}
	if math.IsNaN(ours.Std) || ours.Std == 0 {
		return math.NaN(), NoUnit
	}
	away := ours.Mean - theirs.Mean
	rounding := 0.5 * math.Pow10(-theirs.Decimals)
	if math.Abs(away) <= rounding {
		return 0, Agrees
	}
	inStd = (away - math.Copysign(rounding, away)) / ours.Std
	switch {
	case inStd < -1:
		return inStd, Better
	case inStd > 1:
		return inStd, Worse
	}
	return inStd, Agrees
}

// DifferenceUp is Difference where higher numbers are the better ones.
func DifferenceUp(ours Summary, theirs Published) (inStd float64, verdict string) {
	inStd, verdict = Difference(ours, theirs)
	switch verdict {
	case Better:
		return inStd, Worse
	case Worse:
		return inStd, Better
	}
	return inStd, verdict
}

// compare prints ours, theirs and the verdict, a line each. source is the word before their number.
func compare(ours Summary, theirs Published, source string) Cell {
	return compareBy(Difference, ours, theirs, source, 3)
}

// compareBy is compare with a way to judge, and ours with so many decimals.
func compareBy(judge func(Summary, Published) (float64, string), ours Summary, theirs Published, source string, decimals int) Cell {
	c := ours.lines(decimals)
	if math.IsNaN(theirs.Mean) {
		return append(c, Line{Text: source + " –"})
	}
	number := fmt.Sprintf("%.*f", theirs.Decimals, theirs.Mean)
	if !math.IsNaN(theirs.Std) {
		number += fmt.Sprintf(" ± %.*f", theirs.Decimals, theirs.Std)
	}
	c = append(c, Line{Text: source + " " + number})
	switch inStd, verdict := judge(ours, theirs); verdict {
	case Unsettled:
	case NoUnit:
		c = append(c, Line{Text: fmt.Sprintf("%+.*f, no sd", decimals, ours.Mean-theirs.Mean)})
	default:
		c = append(c, Line{Text: fmt.Sprintf("%+.1f sd, %s", inStd, verdict)})
	}
	return c
}
