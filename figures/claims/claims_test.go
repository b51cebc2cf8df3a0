package claims

import (
	"errors"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/tables"
)

// The table has the claims of all studies in their order; an error of one is an error of the table.
func TestTable(t *testing.T) {
	before := studies
	t.Cleanup(func() { studies = before })
	of := func(claim string, err error) func(*tables.Index) ([]tables.Claim, error) {
		return func(*tables.Index) ([]tables.Claim, error) {
			return []tables.Claim{{Where: "section 4", Claim: claim, Verdict: tables.Holds}}, err
		}
	}
	studies = []func(*tables.Index) ([]tables.Claim, error){of("one", nil), of("two", nil)}
	table, err := made(tables.Of(nil))
	if err != nil || len(table.Rows) != 2 || table.Rows[1].Name != "two" || figtest.Cell(t, table, "one", "Verdict") != tables.Holds {
		t.Errorf("%+v, %v", table, err)
	}
	studies = append(studies, of("three", errors.New("torn")))
	must.GetErr(made(tables.Of(nil)))(t, "torn")
}
