package tables

// The verdicts on claims, besides report.NotSignificant.
const (
	Holds       = "holds"
	DoesNotHold = "fails"
	Mixed       = "mixed"
	NotRun      = "not run"
)

// A Claim is a sentence of the paper that can be checked, in our words, with its verdict.
type Claim struct {
	Group string // what it is about, such as "UCI regression"
	Claim string
	Where string // in the paper
	// In is what it was checked in, such as "authors' code"; "" for a claim that was checked once. A claim that was checked in
	// several settings is several Claims, one after the other.
	In       string
	Verdict  string // Holds, DoesNotHold, Mixed, report.NotSignificant or NotRun
	Evidence string // one line
}
