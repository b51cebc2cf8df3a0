package claims

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/report"
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

// Claims that nobody checked are no rows. A claim that was checked in several settings is one row.
func TestAddClaims(t *testing.T) {
	in := func(claim, setting, verdict string) tables.Claim {
		return tables.Claim{Group: "UCI", Claim: claim, Where: "section 4", In: setting, Verdict: verdict, Evidence: "on 8 of 9"}
	}
	var table report.Table
	addClaims(&table, []tables.Claim{
		{Group: "Images", Claim: "better", Where: "table 3", Verdict: tables.NotRun},
		in("once", "", report.NotSignificant),
		in("for it", "a", tables.Holds), in("for it", "b", tables.Holds), in("for it", "c", tables.NotRun), in("for it", "d", tables.NotRun),
		in("against it", "a", tables.DoesNotHold), in("against it", "b", report.NotSignificant),
		in("either way", "a", tables.DoesNotHold), in("either way", "b", tables.Holds),
		in("in one setting", "a", report.NotSignificant), in("in one setting", "b", tables.Holds),
		in("in itself", "a", tables.Mixed), in("in itself", "b", tables.DoesNotHold),
	})
	row := func(claim, verdict, evidence string) report.Row {
		return report.Row{Group: "UCI", Name: claim, Cells: report.TextCells(verdict, evidence, "section 4")}
	}
	want := []report.Row{
		row("once", report.NotSignificant, "on 8 of 9"), row("for it", tables.Holds, "a: on 8 of 9; b: on 8 of 9"),
		row("against it", tables.DoesNotHold, "a: on 8 of 9; b: on 8 of 9"), row("either way", tables.Mixed, "a: on 8 of 9; b: on 8 of 9"),
		row("in one setting", tables.Mixed, "a: on 8 of 9; b: on 8 of 9"), row("in itself", tables.Mixed, "a: on 8 of 9; b: on 8 of 9"),
	}
	if !reflect.DeepEqual(table.Rows, want) || !slices.Equal(table.NotRun, []string{"the claim “better” (table 3)", "the claim “for it” (section 4: c, d)"}) {
		t.Errorf("%+v", table)
	}
}
