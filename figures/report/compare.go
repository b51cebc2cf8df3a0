package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/figures/results"
)

// A Number is a mean with its spread: one of ours with the decimals that are asked for, or a published one with those that
// it was printed with. Without a number Mean is NaN.
type Number struct {
	Mean, Std float64 // Std, a standard deviation, is NaN for a single run and where none is known
	Decimals  int
}

// String is "2.593 ± 0.067", the mean alone where there is no standard deviation, and a dash where there is no mean.
func (n Number) String() string {
	if math.IsNaN(n.Mean) {
		return "–"
	}
	if math.IsNaN(n.Std) {
		return fmt.Sprintf("%.*f", n.Decimals, n.Mean)
	}
	return fmt.Sprintf("%.*f ± %.*f", n.Decimals, n.Mean, n.Decimals, n.Std)
}

// Printed is a published number as a cell of its own, with the decimals that it was printed with.
func (n Number) Printed() Cell { return Cell{Text: n.String(), Theirs: true} }

// NumberCell is a cell with a mean and its spread, which Align gives the decimals of the numbers beside it.
func NumberCell(mean, std float64, decimals int) Cell {
	n := Number{mean, std, decimals}
	if math.IsNaN(mean) {
		return Cell{Text: n.String()}
	}
	return Cell{Text: n.String(), Number: &n}
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
// numbers are the better ones; see HigherIsBetter.
func Difference(ours results.Summary, theirs Number) (inStd float64, verdict string) {
	if ours.Scale != results.Full || ours.Diverged > 0 || ours.N == 0 || math.IsNaN(theirs.Mean) {
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

// HigherIsBetter turns round a verdict of Difference or Compare, for a metric that is better when higher.
func HigherIsBetter(verdict string) string {
	switch verdict {
	case Better:
		return Worse
	case Worse:
		return Better
	}
	return verdict
}

// Compare is a cell with ours and the verdict of Difference.
func Compare(ours results.Summary, theirs Number, decimals int) Cell {
	c := SummaryCell(ours, decimals)
	_, c.Verdict = Difference(ours, theirs)
	return c
}

// mostDecimals is the number of decimals beyond which numbers differ by rounding alone.
const mostDecimals = 6

// Decimals are those that show x with so many significant digits.
func Decimals(x float64, digits int) int {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return min(max(0, digits-1-int(math.Floor(math.Log10(math.Abs(x))))), mostDecimals)
}

// Align gives the numbers of cells that are compared with each other the same decimals: those with which the middle one of
// their spreads has two significant digits, but not more than are asked for or, if all numbers are small, than show three
// digits of the largest. A number whose own spread is at least ten times too large or too small for them has fewer or more,
// and one that is not ours never has more than it was given with.
func Align(cells ...*Cell) {
	var own []int
	most := 0
	largest := 0.0
	for _, c := range cells {
		if c.Number != nil {
			largest, most = max(largest, math.Abs(c.Number.Mean)), max(most, c.Number.Decimals)
			if c.Number.Std > 0 {
				own = append(own, Decimals(c.Number.Std, 2))
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
		if c.Number == nil {
			continue
		}
		n := decimals
		if c.Number.Std > 0 {
			n = min(most, max(n, Decimals(c.Number.Std, 1)))
			if two := Decimals(c.Number.Std, 2); two < n-1 {
				n = two
			}
		}
		if c.Theirs {
			n = min(n, c.Number.Decimals)
		}
		c.Text = Number{c.Number.Mean, c.Number.Std, n}.String() + c.note
	}
}

// Align is the function Align for the cells of a row.
func (r Row) Align() {
	var cells []*Cell
	for i := range r.Cells {
		cells = append(cells, &r.Cells[i])
	}
	Align(cells...)
}

// AlignColumns is the function Align for each column, in each group of rows.
func (t Table) AlignColumns() {
	for column := range t.Columns[1:] {
		var cells []*Cell
		for i, row := range t.Rows {
			if t.begins(i) {
				Align(cells...)
				cells = nil
			}
			cells = append(cells, &row.Cells[column])
		}
		Align(cells...)
	}
}

// SummaryCell prints a summary, and in brackets what is odd about it: that it is a quick run's, that only n of the runs
// were made, or that some diverged.
func SummaryCell(s results.Summary, decimals int) Cell {
	if s.Scale == "" || s.N == 0 && s.Diverged == 0 && s.Unmeasured == 0 {
		return Cell{NotRun: true}
	}
	var odd []string
	if s.Scale == results.Quick {
		of := ""
		if s.Images > 0 {
			of = fmt.Sprintf(" of %d images", s.Images)
		}
		odd = append(odd, fmt.Sprintf("quick: %d epochs%s", s.Epochs, of))
	} else if missing := s.Wanted - s.N - s.Diverged - s.Unmeasured; missing > 0 && s.N > 0 {
		odd = append(odd, fmt.Sprintf("n=%d of %d", s.N, s.Wanted))
	}
	if s.Diverged > 0 {
		odd = append(odd, fmt.Sprintf("%d of %d diverged", s.Diverged, s.N+s.Unmeasured+s.Diverged))
	}
	c := Cell{}
	switch {
	case s.N > 0:
		c = NumberCell(s.Mean, s.Std, decimals)
	case s.Unmeasured > 0:
		c.Text = "not measured"
	default:
		c.Text = odd[0]
		return c
	}
	if len(odd) > 0 {
		c.note = " (" + strings.Join(odd, ", ") + ")"
		c.Text += c.note
	}
	return c
}

// Undecided is the verdict on a difference that other data of the same kind may well turn round.
const Undecided = "undecided"

// Verdicts are those, Better, Worse or Undecided, of differences of numbers that are better when lower, of all of them together: any wrong verdict
// is as rare as 1 - confidence (metrics.Holm).
func Verdicts(list []metrics.Difference, confidence float64) ([]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	p := make([]float64, len(list))
	for i, d := range list {
		p[i] = d.P
	}
	adjusted, err := metrics.Holm(p)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	verdicts := make([]string, len(list))
	for i, p := range adjusted {
		switch {
		case p > 1-confidence:
			verdicts[i] = Undecided
		case list[i].Mean < 0:
			verdicts[i] = Better
		default:
			verdicts[i] = Worse
		}
	}
	return verdicts, nil
}
