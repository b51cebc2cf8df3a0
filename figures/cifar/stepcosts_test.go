package cifar

import (
	"densityuncertainty/figures/report"
	"fmt"
	"reflect"
	"testing"

	"densityuncertainty/environment/backendtest"
	"densityuncertainty/environment/must"
)

func TestStepCosts(t *testing.T) {
	last := 0.0
	table := must.Get(stepCosts(t.Context(), backendtest.Open(t), 4, 2, func(done float64, note string) {
		if done < last || done > 1 || note == "" {
			t.Errorf("progress %v after %v, %q", done, last, note)
		}
		last = done
	}))(t)
	if last != 1 {
		t.Errorf("progress ends at %v", last)
	}
	// The parameters are those of nets.Parameters, and with heads: SNGP has in the
	// place of 64*10 + 10 numbers 2*128 of the normalisation and 1024*10 + 10, DUE
	// for 10 classes 10 points of 64, and 10*10 + 10 + 3 of each.
	for i, want := range [][]string{
		{"175,178", "0.160"}, {"875,890", "0.800"}, {"185,034", "0.160"}, {"176,298", "0.160"}, {"341,266", "0.333"},
	} {
		if got := table.Rows[i].Cells[:2]; !reflect.DeepEqual(got, report.TextCells(want...)) {
			t.Errorf("%s: %+v, want %q", table.Rows[i].Name, got, want)
		}
	}
	// Five networks keep five times as much; SNGP a matrix of 1024 x 1024 more.
	for i, least := range []float64{1.2, 6, 1.2 + 4.1, 1.2, 2.5} {
		var kept float64
		if _, err := fmt.Sscan(table.Rows[i].Cells[2].Text, &kept); err != nil || kept < least || kept > least+2 {
			t.Errorf("%s keeps %v MB, want at least %v; %v", table.Rows[i].Name, kept, least, err)
		}
	}
}
