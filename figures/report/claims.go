package report

// The verdicts on a claim of the paper.
const (
	Holds       = "holds"
	DoesNotHold = "does not hold"
	NotRun      = "not run"
)

// A Claim is a sentence of the paper that can be checked, in our words, and what came of it.
type Claim struct {
	Where    string // in the paper
	Claim    string
	Verdict  string // Holds, DoesNotHold, Undecided or NotRun
	Evidence string
}

// ClaimsTable lists claims, a row for each.
func ClaimsTable(name, caption string, claims []Claim) Table {
	rows := make([][]string, len(claims))
	for i, c := range claims {
		rows[i] = []string{c.Claim, c.Where, c.Verdict, c.Evidence}
	}
	return PlainTable(name, caption, []string{"Claim", "Where", "Ours", "Evidence"}, rows)
}
