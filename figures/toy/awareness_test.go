package inspect_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"densityuncertainty/environment"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/inspect"
	"densityuncertainty/figures/render"
	"densityuncertainty/figures/results"
	"densityuncertainty/figures/tables"
)

// made are made-up lines of every full-scale experiment of a set.
func made(t *testing.T, set string, metrics func(e experiment.Experiment) map[string]float64) []results.Result {
	t.Helper()
	s, ok := experiment.SetByName(set)
	if !ok {
		t.Fatalf("no set %s", set)
	}
	var lines []results.Result
	for _, e := range s.At(experiment.Full) {
		lines = append(lines, results.Result{ID: e.ID(), Experiment: e, Metrics: metrics(e)})
	}
	return lines
}

func texts(row tables.Row) []string {
	var all []string
	for _, cell := range row.Cells {
		var parts []string
		for _, line := range cell {
			parts = append(parts, line.Text)
		}
		all = append(all, strings.Join(parts, "; "))
	}
	return all
}

func TestAwareness(t *testing.T) {
	lines := made(t, "distance", func(e experiment.Experiment) map[string]float64 {
		return map[string]float64{"entropy_data": 0.1 * float64(e.Seed), "entropy_far": 0.5}
	})
	for i, line := range lines {
		if line.Experiment.Dataset != experiment.ToyCubic {
			continue
		}
		scale := 1 + float64(line.Experiment.Seed)
		std := []float64{4, 99, 1, 2, 2, 1, 99, 8}
		if line.Experiment.Method == experiment.Deterministic {
			scale = 0
		}
		floats.Scale(scale, std)
		lines[i].Series = map[string][]float64{render.SeriesX: {-6, -4.5, -3, 0, 0.5, 3, 4.5, 5}, render.SeriesStd: std}
	}
	table, err := inspect.Awareness(lines)
	if err != nil {
		t.Fatal(err)
	}
	for i, method := range experiment.DistanceMethods() {
		want := []string{"0.100 (0.000 to 0.200)", "0.500 (0.500 to 0.500)", "2.0 (2.0 to 2.0)", "6.0 (6.0 to 6.0)"}
		if method == experiment.Deterministic {
			want[2], want[3] = "no spread", "no spread"
		}
		if got := texts(table.Rows[i]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", method, got, want)
		}
	}
	table, err = inspect.Awareness(lines[1:])
	if err != nil || texts(table.Rows[0])[0] != "not run" {
		t.Errorf("a run is missing: %q, %v", texts(table.Rows[0]), err)
	}
}

func TestPaired(t *testing.T) {
	// Density has 10 and 11 in turn; DUE 10.5, better on every other split.
	value := func(e experiment.Experiment) map[string]float64 {
		v := map[string]float64{experiment.Density: 10 + float64(e.Split%2), experiment.DUE: 10.4}[e.Method]
		if v == 0 {
			v = 20
		}
		return map[string]float64{tables.MetricRMSE: v, tables.MetricNLL: -v}
	}
	lines := append(made(t, "uci", value), made(t, "uci-gp", value)...)
	for i, line := range lines {
		// One of DUE's splits diverged.
		lines[i].Diverged = line.Experiment.Method == experiment.DUE && line.Experiment.Split == 1
	}
	for _, c := range []struct {
		make  func([]results.Result) (tables.Table, error)
		cells map[string]string
		best  string
	}{
		{inspect.PairedRMSE, map[string]string{"Density Uncertainty": "10.500 ± 0.513", "DUE": "10.400 ± 0.000; better on 9 of 19", "Rank-1 BNN": "20.000 ± 0.000; better on 0 of 20"}, "DUE"},
		{inspect.PairedNLL, map[string]string{"Density Uncertainty": "-10.500 ± 0.513", "DUE": "-10.400 ± 0.000; better on 10 of 19"}, "Rank-1 BNN"},
	} {
		table, err := c.make(lines)
		if err != nil {
			t.Fatal(err)
		}
		if len(table.Rows) != len(experiment.ProcessDatasets()) {
			t.Errorf("%d rows", len(table.Rows))
		}
		for _, row := range table.Rows {
			for i, got := range texts(row) {
				column := table.Columns[i+1]
				if want, has := c.cells[column]; has && got != want {
					t.Errorf("%s, %s: %q, want %q", row.Name, column, got, want)
				}
				if row.Cells[i][0].Bold != (column == c.best) {
					t.Errorf("%s, %s: bold %t, want only %s", row.Name, column, row.Cells[i][0].Bold, c.best)
				}
			}
		}
	}
	none, err := inspect.PairedRMSE(nil)
	if err != nil || texts(none.Rows[0])[0] != "not run" {
		t.Errorf("no lines: %v, %v", none.Rows, err)
	}
}

func TestStepCosts(t *testing.T) {
	t.Setenv(environment.ConfigVariable, environment.GoSequential)
	backend, _, err := environment.Open()
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	table, err := inspect.StepCosts(t.Context(), backend, func(done float64, note string) {
		if done < last || done > 1 || note == "" {
			t.Errorf("progress %v after %v, %q", done, last, note)
		}
		last = done
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != 1 {
		t.Errorf("progress ends at %v", last)
	}
	// The parameters are those of nets.Parameters, and with heads: SNGP has in the
	// place of 64*10 + 10 numbers 2*128 of the normalisation and 1024*10 + 10, DUE
	// for 10 classes 10 points of 64, and 10*10 + 10 + 3 of each.
	for i, want := range [][]string{
		{"175,178", "0.160"}, {"875,890", "0.800"}, {"185,034", "0.160"}, {"176,298", "0.160"}, {"341,266", "0.276"},
	} {
		if got := texts(table.Rows[i]); !reflect.DeepEqual(got[:2], want) {
			t.Errorf("%s: %q, want %q", table.Rows[i].Name, got[:2], want)
		}
	}
	// Five networks keep five times as much; SNGP a matrix of 1024 x 1024 more.
	for i, least := range []float64{1.2, 6, 1.2 + 4.1, 1.2, 2.5} {
		var kept float64
		if _, err := fmt.Sscan(texts(table.Rows[i])[2], &kept); err != nil || kept < least || kept > least+2 {
			t.Errorf("%s keeps %v MB, want at least %v; %v", table.Rows[i].Name, kept, least, err)
		}
	}
}
