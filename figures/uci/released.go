package uci

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

// releasedCSV are measurements of the authors' code, over the random splits 0 to splits-1.
//
//go:embed released.csv
var releasedCSV []byte

// releasedTable compares our runs with the settings of the authors' code with measurements of the authors' code, both over the same
// splits.
func releasedTable(x *tables.Index) (report.Table, error) {
	s := tables.Sheet{Table: begun("uci-released", "Method", report.LegendPaper), Down: true}
	s.Columns = append(s.Columns, "n", "NLL, ours", "NLL, their code", "RMSE, ours", "RMSE, their code")
	for _, r := range tables.ReadChoices(releasedCSV, "dataset,method,splits,nll_mean,nll_std,rmse_mean,rmse_std") {
		splits, printed := 0, [2]report.Value{{Decimals: 4}, {Decimals: 4}}
		if _, err := fmt.Sscan(strings.Join(r[2:], " "), &splits, &printed[0].Mean, &printed[0].Std, &printed[1].Mean, &printed[1].Std); err != nil {
			panic(err)
		}
		i := slices.IndexFunc(paperMethods, func(m experiment.Method) bool { return m.Key == r[1] })
		m := paperMethods[i]
		runs := experiment.Grid{Preset: Released, Splits: splits}.Of(Data{Name: r[0]}, m)
		cells := []tables.Cell{tables.Words("%s", r[2])}
		for k, n := range tableNumbers {
			theirs := report.NumberCell(printed[k].Mean, printed[k].Std, printed[k].Decimals)
			theirs.Theirs = true
			cells = append(cells, tables.Printed{Mean: n.Over(runs), Paper: &printed[k]}, tables.Done(theirs))
		}
		s.Add(DatasetTitle(r[0]), m.Name, cells...)
	}
	return s.Make(x)
}
