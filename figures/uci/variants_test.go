package tables

import (
	"slices"
	"strings"
	"testing"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/results"
)

// variant gives the lines another option, so that they are no longer in the catalogue.
func variant(list []results.Result, noise string) []results.Result {
	list = slices.Clone(list)
	for i := range list {
		list[i].Experiment.Options = map[string]string{"noise": noise}
		list[i].ID = list[i].Experiment.ID()
	}
	return list
}

func TestVariants(t *testing.T) {
	yacht := lines(t, "uci", only(experiment.Density, "yacht"), spread(2.5, 0.001, 0.1))
	broken := variant(yacht[:3], "uniform01")
	broken[1].Diverged = true
	table, err := Variants(append(variant(yacht, "gaussian"), broken...))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ row, column, want string }{
		{"density noise=gaussian", "NLL", "2.500 ± 0.103"},
		{"density noise=gaussian", "RMSE", "0.00100 ± 0.10260"},
		{"density noise=gaussian", "n", "20"},
		{"density noise=gaussian", "Data set", "Yacht Hydrodynamics"},
		{"density noise=uniform01", "NLL", "2.600 ± 0.000"},
		{"density noise=uniform01", "n", "2, 1 diverged"},
	} {
		if got := cell(t, table, c.row, c.column); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.row, c.column, got, c.want)
		}
	}
	if _, err := table.Render(Markdown); err != nil {
		t.Error(err)
	}
	for i := range broken {
		broken[i].Diverged = true
	}
	if table, err := Variants(broken); err != nil || cell(t, table, "density noise=uniform01", "NLL") != "diverged" {
		t.Errorf("all diverged: %v, %v", table.Rows, err)
	}
	yacht[4].Metrics = nil
	if _, err := Variants(yacht); err == nil || !strings.Contains(err.Error(), "no metric") {
		t.Errorf("a line without metrics: %v", err)
	}
}

func TestUCIAgreement(t *testing.T) {
	// Yacht as the paper has it, Boston far better in NLL and far worse in RMSE.
	list := append(lines(t, "uci", only(experiment.Density, "yacht"), spread(2.593, 2.505, 0.1)),
		lines(t, "uci", only(experiment.Density, "boston"), spread(1, 9, 0.1))...)
	table, err := UCIAgreement(list)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 2*len(paperMethods) {
		t.Fatalf("%d rows, want one for each method and metric", len(table.Rows))
	}
	for _, row := range table.Rows {
		want := "0 0 0 10"
		if row.Name == Title(experiment.Density) {
			want = map[string]string{"NLL": "1 1 0 8", "RMSE": "0 1 1 8"}[row.Cells[0][0].Text]
		}
		var got []string
		for _, c := range row.Cells[1:] {
			got = append(got, c[0].Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s %s: %v, want %s", row.Name, row.Cells[0][0].Text, got, want)
		}
	}
}
