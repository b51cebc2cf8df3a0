package claims

import (
	"testing"

	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/results"
)

// Without results every claim is not run.
func TestNothingRun(t *testing.T) {
	table, err := Table(nil)
	if err != nil {
		t.Fatal(err)
	}
	figtest.Renders(t, table)
	for _, row := range table.Rows {
		if got := figtest.Cell(t, table, row.Name, "Ours"); got != report.NotRun {
			t.Errorf("%s: %s", row.Name, got)
		}
	}
}

// What was run of the toy and of UCI says something: no claim about them is left open.
func TestCommitted(t *testing.T) {
	lines, err := results.Committed()
	if err != nil {
		t.Fatal(err)
	}
	table, err := Table(lines)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ claim, want string }{
		{"That of density uncertainty is higher in the gap", report.Holds},
		{"The other methods are not less certain in the gap than at the data", report.Holds},
		{"That of variational dropout and Rank-1 BNN is flat (within a fifth of that at the data)", report.DoesNotHold},
		{"Density uncertainty outperforms the other methods in NLL on 6 of the 9 data sets (settings: paper)", report.DoesNotHold},
		{"Density uncertainty outperforms the other methods in NLL on 6 of the 9 data sets (settings: released)", report.Undecided}, // worse on one set alone
		{"It is better than as much variance on average that does not (settings: paper)", report.Undecided},                         // whose runs on Naval diverged
	} {
		if got := figtest.Cell(t, table, c.claim, "Ours"); got != c.want {
			t.Errorf("%s: %s, want %s", c.claim, got, c.want)
		}
	}
}
